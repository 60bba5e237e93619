"""Where communication takes place."""

import numpy as np
import pytest

from tests.lib.epilogue.passes.cases import graph, whole, zeros
from tilewright.epilogue import (
    DEFAULT_PASSES,
    EpilogueError,
    EVTPassBase,
    EVTPassManager,
    PassCommunicationPlacement,
    PassShapeTypePropagation,
    create_test_arrays,
    create_test_dag,
    sum,
    trace,
)


class PassGradientAllReduce(EVTPassBase):
    """As the tutorial has it."""

    def call(self):
        gradient_nodes = self.find_gradient_nodes()

        for node in gradient_nodes:
            # Insert all-reduce after gradient computation
            self.insert_allreduce_after(node)

    def find_gradient_nodes(self):
        return [n for n in self.dag_ir.nodes_meta if "grad" in n.name.lower()]

    def insert_allreduce_after(self, node):
        # Create communication node
        comm_node = self.create_communication_node(f"{node.name}_allreduce", "allreduce", node.output_tensor)
        # Add to DAG
        self.dag_ir.add_node(comm_node)
        self.dag_ir.add_edge(node.name, comm_node.name)


def test_the_tutorial_s_pass_runs_alone():
    dag_ir = create_test_dag()
    pass_instance = PassGradientAllReduce(dag_ir)
    pass_instance()
    node = dag_ir.get_node_meta("grad_bias_allreduce")
    assert node.op == "comm" and dag_ir.get_all_inputs("grad_bias_allreduce") == ["grad_bias"]
    assert node.tensor is dag_ir.get_node_meta("grad_bias").tensor


def test_an_output_is_shared_after_the_kernel():
    def function(accum, C):
        grad_row = sum(accum, dim=(0, 1))
        D = accum + C
        return D, grad_row

    examples = {"accum": whole(), "C": whole(), "D": zeros(), "grad_row": zeros(1, 8)}
    dag = trace(function, examples, additional_passes=[PassGradientAllReduce])
    node = dag.get_node_meta("grad_row_allreduce")
    assert (node.placement, node.scope, node.underlying_impl) == ("output", "node", "communication")
    ranks = [whole() for _ in range(3)]
    local = [dag.evaluate(accum=rank, C=examples["C"])["grad_row"] for rank in ranks]
    shared = dag.evaluate(collective=lambda node, array: np.add.reduce(local), accum=ranks[0], C=examples["C"])
    np.testing.assert_array_equal(shared["grad_row"], np.concatenate(ranks).sum((0, 1))[None])


def test_a_value_is_shared_inside_the_kernel():
    class PassShareValues(PassGradientAllReduce):
        dependencies = (PassShapeTypePropagation,)

    def function(accum, C):
        grad = accum * C
        D = grad + 1
        return D

    dag = graph(function, {"C": whole()}, *DEFAULT_PASSES[:2], PassShareValues)
    assert dag.get_users("grad") == ["grad_allreduce"] and dag.get_users("grad_allreduce") == ["compute_1"]
    EVTPassManager(dag, DEFAULT_PASSES)()
    node = dag.get_node_meta("grad_allreduce")
    assert (node.placement, node.scope, node.underlying_impl) == ("value", "grid", "communication")
    accum, c = whole(), whole()
    found = dag.evaluate(collective=lambda node, array: 2 * array, accum=accum, C=c)
    np.testing.assert_array_equal(found["D"], 2 * accum * c + 1)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"kind": "allgossip"}, "Communication sent is of an unknown sort: allgossip."),
        ({"scope": "planet"}, "Communication sent is of an unknown sort: planet."),
    ],
)
def test_what_is_unknown(change, message):
    dag = create_test_dag()
    made = PassGradientAllReduce(dag).create_communication_node("sent", "allreduce", scope="node")
    for name, value in change.items():
        setattr(made, name, value)
    dag.add_node(made)
    dag.add_edge("grad_bias", "sent")
    with pytest.raises(EpilogueError) as caught:
        EVTPassManager(dag, DEFAULT_PASSES)()
    assert caught.value.message == message


def test_nothing_in_the_kernel_uses_what_others_share_later():
    def function(accum):
        grad = accum * 2
        D = grad + 1
        return D, grad

    with pytest.raises(EpilogueError, match="uses the stored tensor grad after communication grad_allreduce") as caught:
        graph(function, {"grad": zeros()}, *DEFAULT_PASSES[:2], PassGradientAllReduce, PassCommunicationPlacement)
    assert "insert the communication before the store" in str(caught.value)


def test_the_other_outputs_stay():
    dag = create_test_dag()
    before = dag.evaluate(**create_test_arrays())
    PassGradientAllReduce(dag)()
    EVTPassManager(dag, DEFAULT_PASSES)()
    after = dag.evaluate(**create_test_arrays())
    for name, wanted in before.items():
        np.testing.assert_array_equal(after[name], wanted)
