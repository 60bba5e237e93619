"""The graph: EVT's interface, its orders and its errors."""

import subprocess
import sys

import numpy as np
import pytest

from tilewright.base.errors import EpilogueError, EpilogueSyntaxError
from tilewright.epilogue import (
    DAGIR,
    ComputeNode,
    LoadNode,
    NodeBase,
    StoreNode,
    Tensor,
    create_communication_node,
    create_test_arrays,
    create_test_dag,
    debug_pass,
    validate,
)

SHAPE = (2, 4, 8)


def example(*shape):
    return Tensor.of(np.float32, shape or SHAPE)


def load(name, *shape):
    return LoadNode(name, example(*shape))


def small():
    """D = accum C + accum."""
    dag = DAGIR(90)
    for name in ("accum", "C"):
        dag.add_node(load(name))
    dag.add_node(ComputeNode("product", "multiplies"))
    dag.add_node(ComputeNode("total", "plus"))
    store = StoreNode("D")
    store.is_output, store.store_tensor = True, example()
    dag.add_node(store)
    for source, target in (("accum", "product"), ("C", "product"), ("product", "total"), ("accum", "total")):
        dag.add_edge(source, target)
    dag.add_edge("total", "D")
    return dag


def test_operands_come_in_the_order_of_their_edges_or_weights():
    dag = small()
    assert dag.get_all_inputs("total") == ["product", "accum"]
    assert [meta.name for meta in dag.get_all_inputs_meta("product")] == ["accum", "C"]
    other = DAGIR(90)
    for meta in (load("a"), load("b"), ComputeNode("c", "minus")):
        other.add_node(meta)
    other.add_edge("a", "c", weight=1)
    other.add_edge("b", "c", weight=0)
    assert other.get_all_inputs("c") == ["b", "a"] and other.get_edge_weight("a", "c") == 1


def test_the_order_is_lexicographical_and_topological_however_the_graph_was_built():
    dag = small()
    assert dag.nodes == ["C", "accum", "product", "total", "D"]
    assert [meta.name for meta in dag.nodes_meta] == dag.nodes == dag.nodes_topological_order()
    assert [type(meta).__name__ for meta in dag.node_metas_topological_order()][-1] == "StoreNode"


def test_users_degrees_edges_and_paths():
    dag = small()
    assert dag.get_users("accum") == ["product", "total"]
    assert (dag.in_degree("total"), dag.out_degree("accum"), dag.out_degree("D")) == (2, 2, 0)
    assert dag.in_edges("total") == [("product", "total"), ("accum", "total")]
    assert dag.out_edges("accum") == [("accum", "product"), ("accum", "total")]
    assert dag.all_reachable_nodes("product") == ["D", "total"]
    assert dag.has_path("C", "D") and not dag.has_path("D", "C")
    assert dag.has_node("C") and not dag.has_node("E") and dag.has_edge("C", "product")


def test_a_second_edge_goes_through_an_identity():
    dag = DAGIR(90)
    dag.add_node(load("z"))
    dag.add_node(ComputeNode("sum", "plus"))
    dag.add_edge("z", "sum")
    dag.add_edge("z", "sum")
    assert dag.get_all_inputs("sum") == ["z", "autogen_identity"]
    assert dag.get_node_meta("autogen_identity").fn == "identity"
    assert dag.get_all_inputs("autogen_identity") == ["z"]


def test_uses_are_replaced_with_their_positions():
    dag = small()
    dag.add_node(load("other"))
    dag.replace_all_uses_with("accum", "other")
    assert dag.get_all_inputs("product") == ["other", "C"] and dag.get_all_inputs("total") == ["product", "other"]
    assert dag.get_users("accum") == []


def test_two_operands_become_one_node():
    dag = small()
    dag.replace_all_uses_with("C", "accum")
    dag.remove_node("C")
    assert validate(dag)
    array = np.arange(64, dtype=np.float32).reshape(SHAPE)
    np.testing.assert_array_equal(dag.evaluate(accum=array)["D"], array * array + array)


def test_a_name_is_defined_once():
    dag = small()
    with pytest.raises(SyntaxError) as caught:
        dag.add_node(load("C"))
    assert caught.value.message == "Variable 'C' cannot be defined twice."


@pytest.mark.parametrize(
    "use",
    [
        lambda dag: dag.get_node_meta("E"),
        lambda dag: dag.add_edge("E", "D"),
        lambda dag: dag.add_edge("D", "E"),
        lambda dag: dag.remove_node("E"),
        lambda dag: dag.get_users("E"),
        lambda dag: dag.in_degree("E"),
        lambda dag: dag.replace_all_uses_with("E", "D"),
    ],
)
def test_a_name_is_defined_before_it_is_used(use):
    with pytest.raises(EpilogueSyntaxError) as caught:
        use(small())
    assert caught.value.message == "Variable 'E' is undefined."
    assert "the graph has accum, C, product, total, D" in str(caught.value)


def test_a_cycle_is_named():
    dag = small()
    dag.add_edge("total", "product", weight=1)
    with pytest.raises(EpilogueError, match=r"The epilogue's graph has a cycle: (product -> total|total -> product)\."):
        _ = dag.nodes
    dag.remove_edge("total", "product")
    assert dag.nodes[-1] == "D"


def test_a_shape_is_unknown_before_it_is_propagated():
    with pytest.raises(EpilogueError, match="The shape of node total is unknown") as caught:
        _ = small().get_node_meta("total").shape
    assert "PassShapeTypePropagation" in str(caught.value)


def test_a_copy_is_its_own():
    dag = small()
    made = dag.copy()
    made.remove_node("D")
    made.get_node_meta("total").fn = "minus"
    assert dag.has_node("D") and dag.get_node_meta("total").fn == "plus"


def test_networkx_is_imported_with_the_first_graph():
    program = (
        "import sys, tilewright.ops, tilewright.cute, tilewright.epilogue\n"
        "print('networkx' in sys.modules)\n"
        "tilewright.epilogue.create_test_dag()\n"
        "print('networkx' in sys.modules)"
    )
    # PyTorch imports networkx for its own ends.
    program = f"import sys\nsys.modules['torch'] = None\n{program}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_the_networkx_graph_is_read_only():
    dag = small()
    assert sorted(dag.graph.nodes) == sorted(dag.nodes)
    with pytest.raises(Exception, match="Frozen graph"):
        dag.graph.add_node("E")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda dag: dag.remove_edge("C", "product"), "Node product has operands [0]."),
        (lambda dag: dag.add_edge("C", "total", weight=5), "Node total has operands [0, 1, 5]."),
        (lambda dag: dag.add_edge("D", "C"), "The epilogue's graph has a cycle"),
        (lambda dag: setattr(dag.get_node_meta("D"), "store_tensor", None), "Output D has no tensor to store to."),
    ],
)
def test_what_a_graph_must_be_like(change, message):
    dag = small()
    assert validate(dag)
    change(dag)
    with pytest.raises(EpilogueError) as caught:
        validate(dag)
    assert caught.value.message.startswith(message)


# Communication


def test_users_move_to_a_communication_node():
    dag = small()
    dag.add_node(create_communication_node("shared", "allreduce", dag.get_node_meta("product").output_tensor))
    dag.add_edge("product", "shared")
    assert dag.get_users("product") == ["shared"] and dag.get_users("shared") == ["total"]
    assert dag.get_all_inputs("total") == ["shared", "accum"]
    ones = np.ones(SHAPE, np.float32)
    assert dag.evaluate(accum=ones, C=ones)["D"][0, 0, 0] == 2
    assert dag.evaluate(collective=lambda node, array: array * 4, accum=ones, C=ones)["D"][0, 0, 0] == 5


def test_after_an_output_a_communication_works_on_what_is_stored():
    dag = create_test_dag()
    node = dag.get_node_meta("grad_bias")
    dag.add_node(create_communication_node("sent", "allreduce", node.output_tensor, scope="node", group=[0, 1]))
    dag.add_edge("grad_bias", "sent")
    arrays = create_test_arrays()
    alone = dag.evaluate(**arrays)
    seen = []

    def twice(node, array):
        seen.append((node.kind, node.scope, node.group, node.reduce_op))
        return array * 2

    together = dag.evaluate(collective=twice, **arrays)
    np.testing.assert_array_equal(together["grad_bias"], 2 * alone["grad_bias"])
    np.testing.assert_array_equal(together["D"], alone["D"])
    assert seen == [("allreduce", "node", [0, 1], "sum")]


def test_a_communication_node_has_the_tensor_it_was_given():
    tensor = example()
    node = create_communication_node("x", "allreduce", tensor)
    assert (node.op, node.scope, node.group, node.tensor, node.output_tensor) == ("comm", "auto", None, tensor, tensor)


# Evaluation


def test_evaluation_says_what_is_missing():
    with pytest.raises(EpilogueError, match="No array is given for C"):
        small().evaluate(accum=np.ones(SHAPE))
    with pytest.raises(EpilogueError, match="C has another shape than its example") as caught:
        small().evaluate(accum=np.ones(SHAPE), C=np.ones((3, 3)))
    assert "(2, 4, 8)" in str(caught.value) and "(3, 3)" in str(caught.value)


def test_a_node_without_evaluate_says_so():
    dag = small()

    class Mine(NodeBase):
        op = "mine"

    dag.add_node(Mine("mine"))
    dag.add_edge("C", "mine")
    with pytest.raises(EpilogueError, match="Node mine cannot be evaluated"):
        dag.evaluate(accum=np.ones(SHAPE), C=np.ones(SHAPE))


def test_the_test_graph_is_what_its_epilogue_says():
    arrays = create_test_arrays()
    scaled = arrays["alpha"] * arrays["accum"] + arrays["C"]
    found = create_test_dag().evaluate(**arrays)
    np.testing.assert_array_equal(found["D"], np.maximum(scaled + arrays["bias"], 0))
    np.testing.assert_array_equal(found["grad_bias"], scaled.sum((0, 1))[None])


def test_debug_pass_prints_names_and_ops(capsys):
    debug_pass(create_test_dag())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Nodes: 11" and "  accum: load" in lines and "  grad_bias: store" in lines
