"""`reduce_sum` in its variants, on the emulator. Values are small integers, whose sums are exact in float32."""

import ml_dtypes
import numpy as np
import pytest

from tilewright.base import settings
from tilewright.base.errors import ArgumentError, DimensionError
from tilewright.emulate import observe
from tilewright.ops.reduce_sum import VARIANTS, reduce_sum

torch = pytest.importorskip("torch", reason="the ops are tested with torch's tensors too")

SHAPES = (((3, 1000), -1), ((2, 3, 517), 1), ((1, 9001), 1))


@pytest.fixture(autouse=True)
def on_emulator():
    with settings.scope(target="emu"):
        yield


def numbers(shape, dtype):
    return (np.arange(np.prod(shape)) * 7 % 5).reshape(shape).astype(dtype)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int8], ids=lambda dtype: np.dtype(dtype).name)
def test_reduce_sum_correctness(dtype, variant):
    for shape, dim in SHAPES:
        x = numbers(shape, dtype)
        out = reduce_sum(x, dim, variant=variant)
        expected = x.astype(np.int64).sum(dim).astype(np.int64 if dtype is np.int8 else dtype)
        np.testing.assert_array_equal(out, expected)
        assert out.dtype == expected.dtype
    assert reduce_sum(numbers((4, 6), dtype), 0, keepdim=True, variant=variant).shape == (1, 6)


def test_the_variants_are_what_they_say():
    x = numbers((2, 4096), np.float32)
    reports = {}
    for variant in VARIANTS:
        with observe(counters=True) as seen:
            reduce_sum(x, variant=variant)
        reports[variant] = seen
    assert {variant: len(seen) for variant, seen in reports.items() if len(seen) > 1} == {"split": 2}
    loads = {variant: sum(item.requests for item in seen[0].traffic if "ld.global" in item.instruction)
             for variant, seen in reports.items()}  # fmt: skip
    assert loads["vectorized"] * 4 == loads["shuffle"] == loads["naive"]


def test_bad_input():
    x = torch.zeros(2, 3)
    with pytest.raises(ArgumentError, match=r"no variant 'fast'[\s\S]*split"):
        reduce_sum(x, variant="fast")
    with pytest.raises(DimensionError, match=r"range of \[-2, 1\], but got 5"):
        reduce_sum(x, 5)
    with pytest.raises(ArgumentError, match="without dimensions"):
        reduce_sum(torch.tensor(1.0))


def test_gradients_and_vmap():
    x = torch.arange(12, dtype=torch.float64).reshape(3, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: reduce_sum(x, 0, True), x)
    assert torch.autograd.gradgradcheck(reduce_sum, x)
    assert torch.equal(torch.func.vmap(reduce_sum, in_dims=1)(x), x.sum(0))


def test_reduce_sum_compile():
    x = torch.arange(12.0).reshape(3, 4)
    compiled = torch.compile(lambda x: reduce_sum(x, variant="multi_row") + 1, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), x.sum(-1) + 1)
    torch.library.opcheck(torch.ops.tilewright._reduce_sum.default, (torch.empty(3), x, -1, "split"))


def test_empty_tensors():
    assert reduce_sum(torch.zeros(2, 0)).tolist() == [0, 0]
    assert reduce_sum(np.zeros((0, 2))).shape == (0,)
