"""Pins: a debug build says what the variables of the source hold, and computes the same."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tests.lang.test_tma_pipelines import Gemm
from tilewright.base import settings
from tilewright.emulate import Debugger, observe
from tilewright.tools.debugger.variables import Variables


class Pins(Debugger):
    """Keeps what each variable of the first warp held, in order: (function.name, kind, words by lane)."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def pin(self, instruction, L, values):
        held = Variables(1024)
        held.bind(instruction, L, values)
        ((function, name),) = held.names(int(L.ids[0]))
        found = [held.value(function, name, int(lane)) for lane in L.ids]
        self.seen.append((f"{function}.{name}", found[0][0].text, [words for _, words in found]))

    def of(self, name):
        """The kinds and words of a variable each time that it got a value."""
        return [(kind, words) for seen, kind, words in self.seen if seen == name]


def pins_of(body, *arrays, **options):
    pins = Pins()
    with settings.scope(pin_variables=True), observe(debugger=pins):
        on_device(body, *arrays, no_cache=True, **options)
    return pins


@pytest.mark.parametrize("level", [0, 3])
def test_numbers(level):
    def body(x: cute.Tensor):
        lane = cute.arch.lane_idx()
        doubled = x[lane] * 2.0
        half = doubled.to(cutlass.Float16)  # noqa: F841
        brain = doubled.to(cutlass.BFloat16)  # noqa: F841
        small = lane < 3  # noqa: F841
        byte = (lane - 5).to(cutlass.Int8)  # noqa: F841
        large = cutlass.Int64(lane) << 40  # noqa: F841
        three = 3  # noqa: F841
        x[lane] = doubled

    x = np.linspace(-2, 3, 32, dtype=np.float32)
    before = x.copy()
    pins = pins_of(body, x, options=f"--opt-level {level}")
    np.testing.assert_array_equal(x, before * 2)
    lanes = np.arange(32)

    def bits(name):
        ((kind, words),) = pins.of(f"body.{name}")
        return kind, np.array(words, np.uint64)[:, 0]

    assert bits("lane")[0] == "i32" and (bits("lane")[1] == lanes).all()
    kind, words = bits("doubled")
    assert kind == "f32" and (words.astype(np.uint32).view(np.float32) == before * 2).all()
    kind, words = bits("half")
    assert kind == "f16" and (words.astype(np.uint16).view(np.float16) == (before * 2).astype(np.float16)).all()
    assert bits("brain")[0] == "bf16"
    kind, words = bits("small")
    assert kind == "bool" and (words == (lanes < 3)).all()
    kind, words = bits("byte")
    assert kind == "i8" and (words.astype(np.uint8).view(np.int8) == lanes - 5).all()
    kind, words = bits("large")
    assert kind == "i64" and (words == lanes.astype(np.uint64) << np.uint64(40)).all()
    assert pins.of("body.three") == [("constant 3", [[]] * 32)]


def test_loops_and_branches():
    def body(x: cute.Tensor):
        total = cutlass.Int32(0)
        for step in cutlass.range(x[0]):
            if step % 2 == 1:
                total = total + step
        x[1] = total

    x = np.array([6, 0], np.int32)
    pins = pins_of(body, x, block=1, options="--opt-level 0")
    assert x[1] == 1 + 3 + 5
    assert [words[0][0] for _, words in pins.of("body.step")] == [0, 1, 2, 3, 4, 5]
    sums = [words[0][0] for kind, words in pins.of("body.total") if kind == "i32"]
    assert {1, 4, 9} <= set(sums) <= {0, 1, 4, 9}


def test_tensors_and_vectors():
    def body(x: cute.Tensor):
        part = cute.local_tile(x, (2, 2), (1, None))
        kept = cute.make_rmem_tensor((2, 2), cutlass.Float32)
        kept.store(part[None, None, 1].load())
        values = kept.load() + 1.0
        part[None, None, 0].store(values)

    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    pins = pins_of(body, x, block=1, options="--opt-level 0")
    ((kind, words),) = pins.of("body.part")
    assert kind == "tensor f32 gmem (2,2,2):(4,1,2)" and words[0][0] == x.ctypes.data + 4 * 8
    ((kind, _),) = pins.of("body.kept")
    assert kind == "tensor f32 rmem (2,2):(1,2)"
    ((kind, words),) = pins.of("body.values")
    assert kind == "vector f32 4"
    assert np.array(words[0], np.uint32).view(np.float32).tolist() == [11, 15, 12, 16]


def test_functions_have_variables_of_their_own():
    @cute.jit
    def square(value):
        result = value * value
        return result

    def body(x: cute.Tensor):
        result = square(x[0])
        x[0] = result + 1

    x = np.array([3], np.int32)
    pins = pins_of(body, x, block=1, options="--opt-level 0")
    assert [words[0][0] for _, words in pins.of("square.value")] == [3]
    assert [words[0][0] for _, words in pins.of("square.result")] == [9]
    assert [words[0][0] for _, words in pins.of("body.result")] == [9] and x[0] == 10


def test_other_builds_have_no_pins():
    def body(x: cute.Tensor):
        doubled = x[0] * 2
        x[0] = doubled

    kernel = cute.kernel(body)

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    x = np.array([3], np.int32)
    texts = {}
    for pinned in (False, True):
        with settings.scope(pin_variables=pinned):
            texts[pinned] = cute.compile(host, x, target="emu").stages["ptx"]
    assert "// pin body.doubled i32 : %r" in texts[True] and "// pin" not in texts[False]


def test_pins_count_as_no_instructions():
    def body(x: cute.Tensor):
        lane = cute.arch.lane_idx()
        x[lane] = x[lane] * 2.0

    counts = []
    for pinned in (False, True):
        x = np.ones(32, np.float32)
        with settings.scope(pin_variables=pinned), observe() as reports:
            on_device(body, x, no_cache=True)
        counts.append(reports[0].by_class)
    assert "pin" not in counts[1]
    assert {name: counts[1][name] for name in ("ld", "st", "mul")} == {
        name: counts[0][name] for name in ("ld", "st", "mul")
    }


def test_accumulators_of_warpgroups_stay_registers():
    a, b = (np.random.default_rng(n).integers(-3, 4, (64, 64)).astype(np.float16) for n in (1, 2))
    c = np.zeros((64, 64), np.float32)
    tensors = [cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, b, c)]
    pins = Pins()
    with settings.scope(pin_variables=True):
        compiled = cute.compile(Gemm(), *tensors, target="emu", options="--opt-level 0")
    with observe(debugger=pins):
        compiled(*tensors)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T)
    kinds = {name: kind for name, kind, _ in pins.seen}
    assert kinds["kernel.sa"].startswith("tensor f16 smem S<2,3,3> o 0 o ") and "kernel.sums" not in kinds
    assert not any("mlir" in kind or "rmem" in kind for kind in kinds.values())
