"""What no output needs is dropped."""

from tests.lib.epilogue.passes.cases import graph, whole
from tilewright.epilogue import (
    EVTPassManager,
    PassLayoutManipulateElimination,
    PassNoOpElimination,
    create_communication_node,
)

TEXT = """
def f(accum, C, unused):
    F = accum + C
    dead = F * unused
    deader = dead + 1
    D = F
    return D
"""
EXAMPLES = {"C": whole(), "unused": whole()}


def test_variables_and_dead_nodes_go():
    dag = graph(TEXT, EXAMPLES, PassLayoutManipulateElimination, PassNoOpElimination)
    assert dag.nodes == ["C", "accum", "compute_0", "D"]


def test_the_accumulator_stays():
    dag = graph("def f(accum, C):\n    D = C + 1\n    return D", EXAMPLES, PassNoOpElimination)
    assert dag.has_node("accum") and dag.out_degree("accum") == 0


def test_a_communication_is_needed():
    dag = graph(TEXT, EXAMPLES, PassLayoutManipulateElimination)
    dag.add_node(create_communication_node("sent", "allreduce"))
    dag.add_edge("dead", "sent")
    EVTPassManager(dag, [PassNoOpElimination])()
    assert dag.has_node("sent") and dag.has_node("unused") and dag.get_all_inputs("sent") == ["compute_1"]
