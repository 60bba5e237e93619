"""`cute.gemm` of single numbers: without the mode of values, and with operands in shared and global memory."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.base.errors import CompileError

ALL = pytest.mark.parametrize


class Product:
    """C = A * B by one thread; A and B are views of global memory, of shared memory, or copies in registers."""

    def __init__(self, place, dtype=cutlass.Float32):
        self.place, self.dtype = place, dtype

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        if cutlass.const_expr(self.place == "smem"):
            allocator = cutlass.utils.SmemAllocator()
            inside = [allocator.allocate_tensor(self.dtype, cute.make_layout(t.shape)) for t in (a, b)]
            for source, target in zip((a, b), inside, strict=True):
                cute.autovec_copy(source, target)
            a, b = inside
        if cutlass.const_expr(self.place == "rmem"):
            inside = [cute.make_rmem_tensor_like(t) for t in (a, b)]
            for source, target in zip((a, b), inside, strict=True):
                cute.autovec_copy(source, target)
            a, b = inside
        sums = cute.make_rmem_tensor(c.shape, self.dtype)
        sums.fill(1)
        cute.gemm(cute.make_mma_atom(cute.nvgpu.MmaUniversalOp(self.dtype)), sums, a, b, sums)
        cute.autovec_copy(sums, c)

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        self.kernel(a, b, c).launch(grid=1, block=1)


def _numbers(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).integers(-9, 10, shape).astype(dtype)


def _run(product, a, b, c):
    tensors = [cute.runtime.from_dlpack(x) for x in (a, b, c)]
    cute.compile(product, *tensors)(*tensors)
    return c


@ALL("place", ("gmem", "smem", "rmem"))
@ALL(("dtype", "number"), ((cutlass.Float32, np.float32), (cutlass.Float16, np.float16)))
def test_products_of_matrices_without_the_mode_of_values(place, dtype, number):
    a, b, c = _numbers(3, 5, dtype=number), _numbers(4, 5, dtype=number), np.zeros((3, 4), number)
    exact = 1 + a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_array_equal(_run(Product(place, dtype), a, b, c), exact)


@ALL("place", ("gmem", "smem", "rmem"))
def test_outer_products(place):
    a, b, c = _numbers(3), _numbers(4), np.zeros((3, 4), np.float32)
    np.testing.assert_array_equal(_run(Product(place), a, b, c), 1 + np.outer(a, b))


@ALL("place", ("gmem", "smem"))
def test_operands_with_the_mode_of_values_in_memory(place):
    a, b, c = _numbers(1, 3, 2), _numbers(1, 4, 2), np.zeros((1, 3, 4), np.float32)
    np.testing.assert_array_equal(_run(Product(place), a, b, c)[0], 1 + a[0] @ b[0].T)


@ALL("place", ("gmem", "smem", "rmem"))
def test_operands_that_do_not_fit_are_refused(place):
    with pytest.raises(CompileError, match=r"fragments of cute.gemm do not fit each other"):
        _run(Product(place), _numbers(3, 5), _numbers(4, 6), np.zeros((3, 4), np.float32))


def test_accumulators_lie_in_registers():
    class InMemory:
        @cute.kernel
        def kernel(self, a: cute.Tensor, c: cute.Tensor):
            cute.gemm(cute.make_mma_atom(cute.nvgpu.MmaUniversalOp(cutlass.Float32)), c, a, a, c)

        @cute.jit
        def __call__(self, a: cute.Tensor, c: cute.Tensor):
            self.kernel(a, c).launch(grid=1, block=1)

    tensors = [cute.runtime.from_dlpack(x) for x in (_numbers(2, 2), np.zeros((2, 2), np.float32))]
    with pytest.raises(CompileError, match=r"operand C of cute.gemm must lie in registers"):
        cute.compile(InMemory(), *tensors)
