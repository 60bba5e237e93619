"""Register tensors written in branches and read under another type: all bits, some bits, or none of them written."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import BFloat16, Float16, Float32, Int8, Int16, Int32, Uint8, Uint32, Uint64
from tilewright.base.errors import EmulationError
from tilewright.cute.runtime import from_dlpack

BYTES, THREADS = 16, 32
LEVELS = (0, 1, 3)
TYPES = [
    (Float16, Uint32), (BFloat16, Int32), (Int8, Uint32), (Uint8, Float16), (Int16, Uint64), (Float16, Float32),
    (Uint32, Float16), (Uint64, Int8), (Float32, Int16),
]  # fmt: skip


def places(x, dtype):
    """A thread's bytes of an array as elements of `dtype`."""
    t, _, _ = cute.arch.thread_idx()
    there = cute.recast_ptr(x.iterator + t * BYTES, dtype=dtype)
    return cute.make_tensor(there, cute.make_layout(8 * BYTES // dtype.width))


@cute.jit
def write(part: cute.Tensor, source: cute.Tensor, n: cute.Int32, padded: cutlass.Constexpr):
    """All of `part` before byte n of the array; of the thread whose bytes lie across it, elements one by one."""
    t, _, _ = cute.arch.thread_idx()
    count = cutlass.const_expr(cute.size(part))
    if (t + 1) * count <= n:
        cute.autovec_copy(source, part)
    else:
        for k in cutlass.range_constexpr(count):
            if t * count + k < n:
                part[k] = source[k]
            elif cutlass.const_expr(padded):
                part[k] = part.element_type(0)


@cute.kernel
def whole_or_by_elements(x: cute.Tensor, out: cute.Tensor, n: cute.Int32, types: cutlass.Constexpr):
    held = cute.make_rmem_tensor(8 * BYTES // types[0].width, types[0])
    write(held, places(x, types[0]), n, True)
    cute.autovec_copy(cute.recast_tensor(held, types[1]), places(out, types[1]))


@cute.kernel
def through_the_view(x: cute.Tensor, out: cute.Tensor, n: cute.Int32, types: cutlass.Constexpr):
    held = cute.make_rmem_tensor(8 * BYTES // types[0].width, types[0])
    view = cute.recast_tensor(held, types[1])
    write(view, places(x, types[1]), n, True)
    target = places(out, types[0])
    for k in cutlass.range_constexpr(cute.size(held)):
        target[k] = held[k]


@cute.kernel
def in_a_loop(x: cute.Tensor, out: cute.Tensor, n: cute.Int32, types: cutlass.Constexpr):
    """The last turn writes what counts; nested in a branch that is taken always."""
    target = places(out, types[1])
    for turn in range(n, n + 2):
        held = cute.make_rmem_tensor(8 * BYTES // types[0].width, types[0])
        if turn >= 0:
            write(held, places(x, types[0]), n, True)
        else:
            held.fill(types[0](1))
        view = cute.recast_tensor(held, types[1])
        for k in cutlass.range_constexpr(cute.size(view)):
            target[k] = view[k]


@cute.kernel
def not_padded(x: cute.Tensor, out: cute.Tensor, n: cute.Int32, types: cutlass.Constexpr):
    held = cute.make_rmem_tensor(8 * BYTES // types[0].width, types[0])
    write(held, places(x, types[0]), n, False)
    cute.autovec_copy(cute.recast_tensor(held, types[1]), places(out, types[1]))


@cute.jit
def launch(kernel: cutlass.Constexpr, x: cute.Tensor, out: cute.Tensor, n: cute.Int32, types: cutlass.Constexpr):
    kernel(x, out, n, types).launch(grid=1, block=THREADS)


def run(kernel, types, level):
    """(output, what it should be, the executor) of a launch on bytes."""
    x = np.random.default_rng(0).integers(1, 60, BYTES * THREADS).astype(np.uint8)
    out = np.zeros_like(x)
    written = types[1] if kernel is through_the_view else types[0]
    n = 14 * (8 * BYTES // written.width) + 1  # within the elements of thread 14
    views = [from_dlpack(array, assumed_align=16) for array in (x, out)]
    compiled = cute.compile[cute.OptLevel(level)](launch, kernel, *views, n, types, target="emu")
    compiled(*views, n)
    wanted = np.where(np.arange(x.size) < n * written.width // 8, x, 0)
    return out, wanted, compiled


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("types", TYPES, ids=lambda types: f"{types[0].__name__}-{types[1].__name__}")
@pytest.mark.parametrize("kernel", [whole_or_by_elements, through_the_view, in_a_loop], ids=lambda k: k.__name__)
def test_what_every_branch_writes_is_no_finding(kernel, types, level):
    out, wanted, compiled = run(kernel, types, level)
    np.testing.assert_array_equal(out, wanted)
    assert "// unwritten" not in compiled.stages["ptx"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("types", [(Float16, Uint32), (Int8, Uint32), (BFloat16, Uint64)], ids=str)
def test_elements_that_one_branch_forgets_are_found(types, level):
    with pytest.raises(EmulationError, match="never written") as caught:
        run(not_padded, types, level)
    assert caught.value.kind == "uninitialised" and "test_unwritten_views.py" in str(caught.value)
