"""Mistakes that users make in kernels: an error of ours, of the right line, in time, that names what is wrong."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.fuzz.harness import code_of
from tests.lang.fuzz.kernels import KERNELS, SLIPS
from tests.lang.fuzz.mistakes import changed

SECONDS = 1.0  # of the processor
SHAPES = {
    "copy": ((16, 32), (16, 32)),
    "tiled": ((8, 16), (8, 16)),
    "reduce": ((8, 16), (8, 1)),
    "matmul": ((8, 8), (16, 8)),
}


@pytest.fixture(scope="module", autouse=True)
def what_a_process_does_once():
    """The first compilation loads LLVM, and the first launch the emulator: mistakes are timed after that."""
    run("matmul", KERNELS["matmul"], "<first>")


def arrays(kernel):
    a, b = SHAPES[kernel]
    return np.arange(np.prod(a), dtype=np.float32).reshape(a) % 13, np.zeros(b, np.float32)


def run(kernel, text, name):
    """The result of a kernel, in NumPy memory."""
    names = {"cute": cute, "cutlass": cutlass, "const_expr": cutlass.const_expr}
    names |= {kind: getattr(cutlass, kind) for kind in ("Float16", "Float32", "Int32")}
    exec(code_of(text, name), names)
    a, b = arrays(kernel)
    tensors = [cute.runtime.from_dlpack(array, assumed_align=16) for array in (a, b)]
    cute.compile(names["launch"], *tensors)(*tensors)
    return b


def expected(kernel):
    a, _ = arrays(kernel)
    if kernel == "reduce":  # each warp sums both halves of all rows, four times
        return np.full((8, 1), 2 * a.sum(dtype=np.float64), np.float32)
    if kernel == "matmul":
        rows = np.zeros((16, 16))
        for lane in range(32):
            for i in range(8):
                rows[lane % 16, i * 2 + lane // 16] = a[lane % 8, i]
        return np.tile(rows.sum(1)[:, None], (1, 8)).astype(np.float32)
    return 2 * a


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_kernels_are_right(kernel):
    assert run(kernel, KERNELS[kernel], f"<{kernel}>").tolist() == expected(kernel).tolist()


def slipped(slip):
    """The text with the mistake, and the lines that an error may name."""
    text = KERNELS[slip.kernel]
    assert text.count(slip.old) == 1, slip
    first = text[: text.index(slip.old)].count("\n") + 1
    count = 1 + max(slip.new.count("\n"), slip.old.count("\n"))
    text = text.replace(slip.old, slip.new)
    marks = [mark for mark in (slip.at or slip.says,) if mark]
    marked = {n for n, line in enumerate(text.splitlines(), 1) for mark in marks if mark in line}
    return text, marked if slip.at else marked | set(range(first, first + count))


@pytest.mark.parametrize("number", range(len(SLIPS)))
def test_a_mistake_is_named(number):
    slip = SLIPS[number]
    text, lines = slipped(slip)
    name = f"<slip {number}>"
    start = time.process_time()
    with pytest.raises(cutlass.TilewrightError) as caught:
        run(slip.kernel, text, name)
    assert time.process_time() - start < SECONDS
    error = caught.value
    places = {place.line for place in error.location.chain() if place.file == name} if error.location else set()
    assert places & lines, f"line {lines}, names {places}\n{error}"
    assert slip.says in str(error), error


def test_a_kernel_that_is_never_launched_is_named():
    text = KERNELS["tiled"].replace("(a, b, tiled).launch(grid=(1, 1, 1), block=(32, 1, 1))", "(a, b, tiled)")
    with pytest.warns(UserWarning, match=r"tiled_kernel is called at <unlaunched>:\d+, but never launched"):
        run("tiled", text, "<unlaunched>")


def complaint(seed):
    """What is wrong with how a kernel with a random change ended; a result may be another one."""
    r = random.Random(seed)
    kernel = r.choice(list(KERNELS))
    case, name = changed(KERNELS[kernel], r), f"<changed {seed}>"
    try:
        code_of(case.text, name)
    except SyntaxError:
        return ""
    start = time.process_time()
    try:
        run(kernel, case.text, name)
    except cutlass.TilewrightError as error:
        places = [place.line for place in error.location.chain() if place.file == name] if error.location else []
        if not places or (case.exact and case.line not in places):
            return f"seed {seed}, line {case.line}, names {places}\n{error}"
    except (RuntimeError, AssertionError):
        return ""  # `raise` and `assert` are among the changes
    seconds = time.process_time() - start
    return f"seed {seed}: {seconds} s" if seconds > SECONDS else ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", [0, 20])
def test_random_changes(first):
    problems = [complaint(seed) for seed in range(first, first + 20)]
    assert not any(problems), "\n".join(filter(None, problems))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_many_random_changes(first):
    problems = [complaint(seed) for seed in range(first, first + 50)]
    assert not any(problems), "\n".join(filter(None, problems))
