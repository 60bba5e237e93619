"""Random small changes of valid modules: each is refused with the pass, the operation and the line, or gives what an
interpreter of stage `cute` gives. The interpreter itself is held to the emulator on the unchanged modules."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.passes.cute_interpreter import Fault, Undefined, run
from tests.passes.mutant_run import end_of
from tests.passes.mutants import Snapshot
from tests.passes.mutated_kernels import CASES

QUICK = 60
ALL = 500
PLACES = ("promote-register-tensors", "annotate-loops")


def _check(seeds, at_least):
    endings = [end_of(seed) for seed in seeds]
    wrong = [ending for ending in endings if ending.wrong]
    shown = [f"{ending.kind}: {ending.case}, {ending.change}\n{ending.detail}" for ending in wrong[:3]]
    assert not wrong, f"{len(wrong)} of {len(endings)}:\n" + "\n".join(shown)
    kinds = collections.Counter(ending.kind for ending in endings)
    assert all(kinds[kind] >= most for kind, most in at_least.items()), kinds  # both outcomes are tried


@pytest.mark.parametrize("start", range(0, QUICK, 20))
def test_random_changes_are_refused_or_mean_what_they_say(start):
    _check(range(start, start + 20), {"verifier": 5, "equal": 2})


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, ALL, 100))
def test_more_random_changes(start):
    _check(range(start, start + 100), {"verifier": 30, "equal": 15})


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", sorted(CASES))
def test_the_interpreter_gives_what_the_emulator_gives(case, place):
    function, arrays, numbers = CASES[case]
    x, y = arrays()
    snapshot = Snapshot()
    compiled = cute.compile(
        function, x, y, *map(cutlass.Int32, numbers.values()), passes=[cutlass.before(place, snapshot)]
    )
    wanted = run(snapshot.text, {"x": x, "y": y}, numbers)
    compiled(x, y, *numbers.values())
    assert np.array_equal(wanted["y"], y) and np.array_equal(wanted["x"], x) and y.any()


BODY = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) : i32 args(%t : TI)
    return
  }
  gpu.module @k {
    gpu.func @k(%t: TI) kernel {
      %i = "cute.index"() {name = "thread_idx.x"} : () -> i32
      %c = arith.constant 1 : i32
      BODY
      gpu.return
    }
  }
}"""
LOAD = '"cute.load"(%t, {}) {{coord = "?", operandSegmentSizes = array<i32: 1, 1, 0>}} : (TI, i32) -> i32'
STORE = '"cute.store"({}, %t, {}) {{coord = "?", operandSegmentSizes = array<i32: 1, 1, 1, 0>}} : (i32, TI, i32) -> ()'


def _interpreted(body, x):
    text = """module attributes {gpu.container_module} {
  func.func @f(%p: !cute.ptr<i32, "gmem", 4 : i32> {tilewright.name = "x"}) {
    %t = "cute.make_tensor"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!cute.ptr<i32, "gmem", 4 : i32>) -> TI
""" + BODY.replace("BODY", body)
    return run(text.replace("TI", '!cute.tensor<i32, "gmem", "(32):(1)", 4 : i32>'), {"x": x}, {})["x"]


def test_the_interpreter_counts_as_machines_do():
    x = np.array([2**31 - 1, -7, 5, 0] * 8, np.int32)
    body = f"%v = {LOAD.format('%i')}\n%w = arith.addi %v, %c : i32\n%s = arith.shrui %w, %c : i32"
    body += f"\n{STORE.format('%s', '%i')}"
    assert (_interpreted(body, x) == ((x.astype(np.int64) + 1) % 2**32 // 2).astype(np.int32)).all()


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (f"%j = arith.addi %i, %c : i32\n%v = {LOAD.format('%j')}", Fault, "bounds"),
        (STORE.format("%i", "%c"), Undefined, "race"),
        (f"%j = arith.xori %i, %c : i32\n%v = {LOAD.format('%j')}\n{STORE.format('%v', '%i')}", Undefined, "race"),
        (f"%z = arith.subi %c, %c : i32\n%v = arith.divsi %i, %z : i32\n{STORE.format('%v', '%i')}", Undefined, "zero"),
        (f"%v = arith.shli %c, %i : i32\n%w = arith.shli %v, %i : i32\n%u = arith.addi %i, %i : i32\n"
         f"%s = arith.shli %c, %u : i32\n{STORE.format('%s', '%i')}", Undefined, "shift"),
        ('%p = "cute.alloc"() {bytes = 4 : i32} : () -> !cute.ptr<i32, "rmem", 4 : i32>\n%r = "cute.make_tensor"(%p) '
         '{operandSegmentSizes = array<i32: 1, 0, 0>} : (!cute.ptr<i32, "rmem", 4 : i32>) -> !cute.tensor<i32, "rmem", '
         '"1:0", 4 : i32>\n%v = "cute.load_tensor"(%r) : (!cute.tensor<i32, "rmem", "1:0", 4 : i32>) -> vector<1xi32>',
         Undefined, "uninitialised"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_told_apart(body, error, words):
    with pytest.raises(error, match=words):
        _interpreted(body, np.arange(32, dtype=np.int32))
