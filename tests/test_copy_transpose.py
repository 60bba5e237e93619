"""`copy_transpose`: values are moved, so results are equal bit for bit. Kernels run on the emulator."""

import ml_dtypes
import numpy as np
import pytest

from tilewright.base import settings
from tilewright.base.errors import ArgumentError
from tilewright.emulate import observe
from tilewright.kernels import copy_transpose as kernels
from tilewright.ops.copy_transpose import copy_transpose

torch = pytest.importorskip("torch", reason="the ops are tested with torch's tensors too")

DTYPES = (
    np.float32,
    ml_dtypes.bfloat16,
    np.float16,
    np.float64,
    np.int8,
    np.uint8,
    np.int16,
    np.int32,
    np.int64,
    np.bool_,
)
VIEWS = {
    "plain": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "every other column": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "every other row": lambda x: np.repeat(x, 2, axis=-2)[..., ::2, :],
    "an offset": lambda x: np.concatenate([x[..., :3], x], axis=-1)[..., 3:],
    "one row repeated": lambda x: np.broadcast_to(x[..., :1, :], x.shape),
}


@pytest.fixture(autouse=True)
def on_emulator():
    with settings.scope(target="emu"):
        yield


def numbers(shape, dtype):
    """Numbers that differ from their neighbours in every direction, and fit the type."""
    return (np.arange(np.prod(shape)) * 7 % 125).reshape(shape).astype(dtype)


CASES = [(dtype, None) for dtype in DTYPES]
CASES += [(dtype, size) for dtype in (np.float32, ml_dtypes.bfloat16, np.int8) for size in (16, 32, 64, 128)]


@pytest.mark.parametrize(
    ("dtype", "tile_size"), CASES, ids=lambda item: str(np.dtype(item)) if isinstance(item, type) else str(item)
)
def test_copy_transpose_correctness(dtype, tile_size):
    for shape in ((64, 128), (2, 33, 17)):
        x = numbers(shape, dtype)
        out = copy_transpose(x, tile_size=tile_size)
        np.testing.assert_array_equal(out, x.swapaxes(-1, -2))
        assert out.flags.c_contiguous and out.dtype == x.dtype


@pytest.mark.parametrize("view", VIEWS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=lambda dtype: np.dtype(dtype).name)
def test_copy_transpose_correctness_of_views(dtype, view):
    for shape in ((40, 72), (1, 9), (9, 1), (2, 2, 8, 16)):
        x = VIEWS[view](numbers(shape, dtype))
        np.testing.assert_array_equal(copy_transpose(x), x.swapaxes(-1, -2))


@pytest.mark.parametrize(
    ("dtype", "tile_size"), [(np.float32, 32), (np.float32, 64), (np.float64, 64), (np.float16, 16), (np.float16, 128)]
)
def test_each_sector_is_moved_once_and_no_bank_is_waited_for(dtype, tile_size):
    with observe(counters=True) as reports:
        copy_transpose(numbers((128, 256), dtype), tile_size=tile_size)
    (report,) = reports
    assert report.sectors == report.sectors_ideal == 2 * 128 * 256 * np.dtype(dtype).itemsize // 32
    assert report.bank_conflicts == 0


def test_each_sector_of_bytes_is_moved_once_and_no_bank_is_waited_for():
    with observe(counters=True) as reports:
        copy_transpose(numbers((256, 128), np.int8))
    assert reports[0].sectors == reports[0].sectors_ideal == 2 * 256 * 128 // 32
    assert reports[0].bank_conflicts == 0


def test_compiled_kernels_are_kept_by_dtype_and_tile_size():
    def count():
        return len(kernels._compiled)

    copy_transpose(numbers((64, 64), np.float32), tile_size=32)
    before = count()
    copy_transpose(numbers((128, 64), np.float32), tile_size=32)
    assert count() == before
    copy_transpose(numbers((64, 64), np.float32), tile_size=16)
    copy_transpose(numbers((64, 64), np.float64), tile_size=16)
    assert count() <= before + 2


def test_the_64_bit_form_compiles():
    x, out = numbers((64, 64), np.float32), np.empty((64, 64), np.float32)
    assert kernels.prepare(out, x).wide_form.get() is not None


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (2, 0, 3)])
def test_empty_tensors(shape):
    assert copy_transpose(np.zeros(shape)).shape == (*shape[:-2], shape[-1], shape[-2])
    assert copy_transpose(torch.zeros(shape)).shape == (*shape[:-2], shape[-1], shape[-2])


def test_tensors_of_the_host_go_to_the_reference_unless_the_emulator_is_asked_for(monkeypatch):
    called = []
    monkeypatch.setattr(kernels, "prepare", lambda y, x, tile_size: lambda y, x: called.append(x))
    x = torch.arange(6.0).reshape(2, 3)
    with settings.scope(target=None):
        assert torch.equal(copy_transpose(x), x.t())
    assert not called
    copy_transpose(x)
    assert len(called) == 1


@pytest.mark.parametrize(
    ("x", "tile_size", "message"),
    [
        (np.zeros(3), None, r"at least two dimensions[\s\S]*\(3,\)"),
        (np.zeros((3, 3)), 48, r"no tiles of 48[\s\S]*16, 32, 64, 128"),
        (np.zeros((3, 3), complex), None, r"dtype complex128"),
        ([[1.0]], None, r"a tensor of PyTorch or an array of NumPy, not list"),
    ],
    ids=["a vector", "a tile", "complex", "a list"],
)
def test_bad_input(x, tile_size, message):
    with pytest.raises(ArgumentError, match=message):
        copy_transpose(x, tile_size=tile_size)


def test_gradients():
    x = torch.arange(24, dtype=torch.float64).reshape(2, 3, 4).requires_grad_()
    assert torch.autograd.gradcheck(copy_transpose, x)
    assert torch.autograd.gradgradcheck(copy_transpose, x)


def test_vmap():
    x = torch.arange(60.0).reshape(3, 4, 5)
    assert torch.equal(torch.func.vmap(copy_transpose, in_dims=2)(x), x.permute(2, 1, 0))
    out = torch.zeros(3, 5, 4)
    torch.func.vmap(torch.ops.tilewright._copy_transpose, out_dims=None)(out, x)
    assert torch.equal(out, x.mT)


def test_copy_transpose_compile():
    x = torch.arange(48.0).reshape(6, 8).requires_grad_()
    compiled = torch.compile(lambda x: copy_transpose(x * 2, tile_size=16), fullgraph=True, backend="aot_eager")
    out = compiled(x)
    assert torch.equal(out, 2 * x.t())
    out.backward(torch.ones(8, 6))
    assert torch.equal(x.grad, torch.full((6, 8), 2.0))


def test_opcheck():
    torch.library.opcheck(torch.ops.tilewright._copy_transpose.default, (torch.empty(4, 6), torch.randn(6, 4), 16))
