"""The protocol of passes: order, dependencies, options, times, views, and the errors of each."""

import numpy as np
import pytest

from tilewright import epilogue
from tilewright.base.errors import EpilogueError, PassError
from tilewright.epilogue import (
    DAGIR,
    EVTPassBase,
    EVTPassManager,
    PassNoOpElimination,
    PassPreprocessRed,
    PassShapeTypePropagation,
    create_test_dag,
    parse,
    passes,
    relu,
)


class Noting(EVTPassBase):
    """Writes its name down."""

    log: list[str] = []  # noqa: RUF012

    def requires(self):
        self.log.append(f"{self.get_name()}.requires")

    def call(self):
        self.log.append(self.get_name())

    def ensures(self):
        self.log.append(f"{self.get_name()}.ensures")


class A(Noting):
    pass


class B(Noting):
    dependencies = (A,)


class C(Noting):
    dependencies = (B,)


class Free(Noting):
    options = {"n": 1, "name": "x"}  # noqa: RUF012

    def call(self):
        self.log.append(f"Free {self.values['n']} {self.values['name']}")


@pytest.fixture(autouse=True)
def empty_log():
    Noting.log.clear()


def names():
    return [entry for entry in Noting.log if "." not in entry]


def untraced():
    """A graph on which no pass has run."""

    def function(accum):
        D = relu(accum)
        return D

    return parse(function, {"accum": np.zeros((2, 4, 8), np.float32), "D": np.zeros((2, 4, 8), np.float32)})


def test_requires_call_ensures():
    EVTPassManager(create_test_dag(), [A])()
    assert Noting.log == ["A.requires", "A", "A.ensures"]


@pytest.mark.parametrize(
    "listed, order",
    [
        ([C, B, A], ["A", "B", "C"]),
        ([Free, C, A, B], ["Free 1 x", "A", "B", "C"]),
        ([B, Free, A], ["Free 1 x", "A", "B"]),
        ([A, B, A], ["A", "B", "A"]),
        ([Free, A, Free], ["Free 1 x", "A", "Free 1 x"]),
    ],
)
def test_passes_run_after_their_dependencies_else_as_listed(listed, order):
    EVTPassManager(create_test_dag(), listed)()
    assert names() == order


def test_a_missing_dependency_is_refused_in_the_words_of_the_tutorial():
    with pytest.raises(PassError) as caught:
        EVTPassManager(untraced(), [C, A])
    assert str(caught.value).splitlines()[0] == "Error: Pass C requires B but B was not run"
    assert "add_missing=True" in str(caught.value)
    assert names() == []


def test_missing_dependencies_are_added_on_request_all_the_way():
    EVTPassManager(untraced(), [C], add_missing=True)()
    assert names() == ["A", "B", "C"]


def test_a_dependency_that_ran_before_counts():
    dag = untraced()
    EVTPassManager(dag, [A])()
    EVTPassManager(dag, [B])()
    assert names() == ["A", "B"]
    assert dag.passes_run == ["A", "B"]


def test_a_pass_runs_alone_without_its_dependencies():
    """As a test of a pass does: `PassMyCustom(dag_ir)()`."""
    B(untraced())()
    assert names() == ["B"]


def test_a_circle_is_named():
    class First(Noting):
        pass

    class Second(Noting):
        dependencies = (First,)

    First.dependencies = (Second,)
    with pytest.raises(PassError, match=r"Passes depend on each other in a circle: (First -> Second -> First)"):
        EVTPassManager(untraced(), [A, First, Second])


def test_options():
    EVTPassManager(create_test_dag(), [(Free, {"n": 5}), Free, (Free, {"name": "y", "n": 2})])()
    assert names() == ["Free 5 x", "Free 1 x", "Free 2 y"]
    with pytest.raises(PassError, match="Pass Free has no option 'm'") as caught:
        Free(create_test_dag(), m=1)
    assert "its options: n, name" in str(caught.value)


def test_passes_are_known_by_name_once_imported():
    EVTPassManager(create_test_dag(), ["A", ("Free", {"n": 3})])()
    assert names() == ["A", "Free 3 x"]
    assert passes.Free is Free and epilogue.Free is Free
    with pytest.raises(PassError, match="No pass is named PassNowhere"):
        EVTPassManager(create_test_dag(), ["PassNowhere"])
    with pytest.raises(AttributeError, match="PassNowhere"):
        _ = passes.PassNowhere


def test_what_is_no_pass():
    with pytest.raises(PassError, match=r"The list of passes has a type, which is no pass\."):
        EVTPassManager(create_test_dag(), [DAGIR])


def test_call_must_be_written():
    class N(EVTPassBase):
        pass

    with pytest.raises(NotImplementedError) as caught:
        N(create_test_dag())()
    assert caught.value.message == "__call__ is not overwritten in Pass N"


@pytest.mark.parametrize(
    "cc, arch", [(80, 80), (86, 80), (89, 80), (90, 90), (100, 100), (101, 100), (103, 100), (120, 100)]
)
def test_methods_by_architecture(cc, arch):
    class ByArchitecture(EVTPassBase):
        def go(self):
            """By architecture."""

        def sm80_go(self):
            return 80

        def sm90_go(self):
            return 90

        def sm100_go(self):
            return 100

    assert ByArchitecture(create_test_dag(cc)).cc_specific_method(ByArchitecture.go)() == arch


def test_a_method_that_is_not_there():
    class OnlyOld(EVTPassBase):
        def go(self):
            """By architecture."""

        def sm80_go(self):
            return 80

    with pytest.raises(NotImplementedError) as caught:
        OnlyOld(create_test_dag(90)).cc_specific_method(OnlyOld.go)
    assert caught.value.message == "func go is not overwritten for Sm90"
    assert "sm90_go" in str(caught.value)


def test_an_exception_of_a_pass_names_the_pass():
    class Failing(EVTPassBase):
        def call(self):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        EVTPassManager(create_test_dag(), [Failing])()
    assert caught.value.__notes__ == ["in Failing, a pass over the epilogue's graph"]


def test_a_pass_that_breaks_the_graph_is_found_at_once():
    class Breaking(EVTPassBase):
        def call(self):
            self.dag_ir.remove_edge("C", "compute_1")

    with pytest.raises(EpilogueError, match=r"Node compute_1 has operands \[0\]") as caught:
        EVTPassManager(create_test_dag(), [Breaking, A])()
    assert "Breaking" in caught.value.__notes__[0] and names() == []


def test_times_and_views():
    dag = create_test_dag()
    manager = EVTPassManager(dag, [A, PassNoOpElimination], views=True)
    manager()
    assert [run.name for run in manager.runs] == ["A", "PassNoOpElimination"]
    assert all(run.seconds > 0 for run in manager.runs)
    assert not manager.runs[0].changed and manager.runs[1].changed
    assert "scaled (not stored)" in manager.runs[1].before and "scaled" not in manager.runs[1].after
    assert "-store   scaled (not stored)(compute_1)" in manager.runs[1].difference()
    assert manager.runs[0].difference() == ""
    assert [line.split()[0] for line in manager.report().splitlines()] == ["A", "PassNoOpElimination"]
    assert all(line.endswith(" us") for line in manager.report().splitlines())


def test_the_seed_s_list():
    class PassMyCustom(EVTPassBase):
        dependencies = [PassShapeTypePropagation]  # noqa: RUF012

        def call(self):
            for node_meta in self.dag_ir.nodes_meta:
                node_meta.seen = True

    dag_ir = untraced()
    pass_manager = EVTPassManager(dag_ir, [PassMyCustom, PassShapeTypePropagation, PassPreprocessRed])
    pass_manager()
    assert [run.name for run in pass_manager.runs] == ["PassPreprocessRed", "PassShapeTypePropagation", "PassMyCustom"]
    assert all(meta.seen for meta in dag_ir.nodes_meta)
