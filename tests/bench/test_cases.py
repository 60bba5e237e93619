"""Suites as they are read: what a file may say, and what `bench/suites.yaml` says."""

import importlib
from pathlib import Path

import pytest

from tilewright import ops
from tilewright.base.errors import ArgumentError
from tilewright.tools.benching import cases
from tilewright.tools.benching.cases import Case

SUITES = Path(__file__).resolve().parents[2] / "bench" / "suites.yaml"
GOOD = """
suites:
  quick:
    warmup: 1
    iterations: 7
    backends: [kernel, quack]
    cases:
      - {op: a, shapes: [[2, 3], [4]], dtypes: [float32, bfloat16]}
      - {op: b, shapes: [[5]], dtypes: [float64], options: {op: max, dim: 0}}
  plain:
    cases: [{op: a, shapes: [[1]], dtypes: [float16]}]
emulated:
  a: [[3, 7]]
  b: [[9]]
"""


def read(tmp_path, text):
    path = tmp_path / "suites.yaml"
    path.write_text(text)
    return cases.read_suites(path)


def test_cases_take_turns_between_ops(tmp_path):
    suite = read(tmp_path, GOOD)["quick"]
    options = (("op", "max"), ("dim", 0))
    assert suite.cases == (
        Case("a", (2, 3), "float32"), Case("b", (5,), "float64", options), Case("a", (2, 3), "bfloat16"),
        Case("a", (4,), "float32"), Case("a", (4,), "bfloat16"),
    )  # fmt: skip
    assert (suite.warmup, suite.iterations, suite.backends) == (1, 7, ("kernel", "quack"))


def test_a_slow_backend_is_measured_for_some_shapes_which_come_first(tmp_path):
    suite = read(tmp_path, GOOD.replace("iterations: 7", "iterations: 7\n    only: {quack: [[4]]}"))["quick"]
    assert [(case.op, case.shape) for case in suite.cases] == [
        ("a", (4,)), ("b", (5,)), ("a", (4,)), ("a", (2, 3)), ("a", (2, 3)),
    ]  # fmt: skip
    wanted = [["kernel", "quack"], ["kernel"], ["kernel", "quack"], ["kernel"], ["kernel"]]
    assert [suite.backends_of(case) for case in suite.cases] == wanted


def test_a_suite_of_host_times(tmp_path):
    assert read(tmp_path, GOOD.replace("iterations: 7", "iterations: 7\n    clock: host"))["quick"].clock == "host"


@pytest.mark.parametrize(
    ("line", "message"),
    [("clock: sun", "there is no clock 'sun'"), ("only: {jax: [[4]]}", "there is no backend 'jax'")],
)
def test_what_a_suite_cannot_say(tmp_path, line, message):
    with pytest.raises(ArgumentError, match=message):
        read(tmp_path, GOOD.replace("iterations: 7", f"iterations: 7\n    {line}"))


def test_every_op_of_the_peers_meets_its_slow_peers_in_the_first_turns():
    suite = cases.read_suites(SUITES)["peers"]
    kinds = {(case.op, case.options) for case in suite.cases}
    for op, options in kinds:
        own = [case for case in suite.cases if (case.op, case.options) == (op, options)]
        slow = ["torch.compile" in suite.backends_of(case) for case in own]
        assert slow == sorted(slow, reverse=True)
        assert slow[0] or op.startswith("l2_normalize")  # which is of docs/adding-an-op.md


def test_what_is_left_out_has_the_documented_values(tmp_path):
    suite = read(tmp_path, GOOD)["plain"]
    assert (suite.warmup, suite.iterations, suite.backends) == (
        10,
        100,
        tuple(name for name in cases.BACKENDS if name != "torch.ops"),
    )
    assert suite.clock == "device"


def test_a_case_as_text():
    case = Case("reduce", (32768, 1024), "float32", (("op", "max"), ("dim", 0)))
    assert str(case) == "reduce(op=max, dim=0) 32768x1024 float32"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("suites: [", "is no YAML"),
        ("3", "has no suites"),
        ("suites: {quick: {}}", "suite quick has no list of cases"),
        ("suites: {quick: {cases: [], size: 3}}", "suite quick has an unknown key 'size'"),
        ("suites: {quick: {cases: [{op: a}]}}", "a case of suite quick is not understood"),
        (
            "suites: {quick: {cases: [{op: a, shapes: [[0]], dtypes: [float32]}]}}",
            "list of positive integers, not \\[0\\]",
        ),
        ("suites: {quick: {cases: [{op: a, shapes: [[1]], dtypes: [float]}]}}", "there is no dtype 'float'"),
        ("suites: {quick: {cases: [], backends: [cudnn]}}", "there is no backend 'cudnn'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    with pytest.raises(ArgumentError, match=message):
        read(tmp_path, text)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ArgumentError, match=r"there is no file .*nothing\.yaml"):
        cases.read_suites(tmp_path / "nothing.yaml")


def test_an_op_comes_with_its_backward():
    all_cases = [Case(op, (1,), "float32") for op in ("norm", "norm_backward", "normal")]
    assert [case.op for case in cases.of_op(all_cases, "norm")] == ["norm", "norm_backward"]
    with pytest.raises(ArgumentError, match="the suite has no case of 'nor'") as caught:
        cases.of_op(all_cases, "nor")
    assert "norm, norm_backward, normal" in str(caught.value)


def test_the_emulator_gets_small_shapes_each_once(tmp_path):
    path = tmp_path / "suites.yaml"
    path.write_text(GOOD)
    suite, shapes = cases.read_suites(path)["quick"], cases.read_emulated(path)
    found = cases.emulated(suite.cases, shapes)
    assert found == (
        Case("a", (3, 7), "float32"), Case("b", (9,), "float64", (("op", "max"), ("dim", 0))),
        Case("a", (3, 7), "bfloat16"),
    )  # fmt: skip
    with pytest.raises(ArgumentError, match="c has no shapes for the emulator"):
        cases.emulated([Case("c", (1,), "float32")], shapes)


def test_the_checkouts_suites_have_every_op_and_know_what_they_name():
    subjects = pytest.importorskip("tilewright.tools.benching.subjects").SUBJECTS
    suites, shapes = cases.read_suites(SUITES), cases.read_emulated(SUITES)
    assert set(suites) == {"smoke", "standard", "full", "peers", "host", "products"}
    assert {name for name, suite in suites.items() if suite.clock == "host"} == {"host"}
    public = {name for name in ops.__all__ if not name.startswith("set_")}
    for name, suite in suites.items():
        named = {case.op for case in suite.cases}
        wanted = {"gemm"} if name == "products" else public
        assert wanted <= named, f"{name} lacks {sorted(wanted - named)}"
        assert named <= set(subjects) and named <= set(shapes)
    assert len(suites["peers"].backends) == 5


def test_every_operator_with_a_backward_is_measured_backward():
    subjects = pytest.importorskip("tilewright.tools.benching.subjects").SUBJECTS
    for name in (name for name in ops.__all__ if not name.startswith("set_")):
        module = importlib.import_module(f"tilewright.ops.{name}")
        if hasattr(module, "BACKWARD"):
            assert f"{name}_backward" in subjects
