"""Operations of a warp: matrix copies (`ldmatrix`, `stmatrix`) and products (`mma.sync`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.hw.atoms import matrix_copy, mma_sync
from tilewright.ir import atom_text
from tilewright.lang.atoms.copy_atom import CopyOp, CopyTraits
from tilewright.lang.atoms.mma_atom import MmaOp, MmaTraits
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Float64,
    Int8,
    Int32,
    Numeric,
    TFloat32,
    Uint8,
)
from tilewright.lang.nvgpu.cpasync import expect_space
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout

WARP = Layout(32, 1)
REGISTER_BITS = 32  # of an 8x8 matrix, which a lane holds
_PTX: dict[type[Numeric], str] = {
    Float16: "f16", BFloat16: "bf16", TFloat32: "tf32", Float32: "f32", Float64: "f64", Int8: "s8", Uint8: "u8",
    Int32: "s32", Float8E4M3FN: "e4m3", Float8E5M2: "e5m2",
}  # fmt: skip


@dataclass(frozen=True)
class _MatrixCopyOp(CopyOp):
    """Base of the copies of 8x8 matrices of 16-bit elements by a warp."""

    transpose: bool = False
    num_matrices: int = 1

    def __post_init__(self) -> None:
        if self.num_matrices not in matrix_copy.MATRICES:
            raise CompileError(
                f"{type(self).__name__} of {self.num_matrices} matrices", location=user_location(), hint="1, 2 or 4"
            )

    def _check_type(self, dtype: type[Numeric], num_bits: int, width: int) -> None:
        if num_bits not in (0, width * 8):
            raise CompileError(f"{type(self).__name__} of {num_bits} bits", location=user_location())
        if dtype.width > REGISTER_BITS or (self.transpose and dtype.width != width):
            raise CompileError(
                f"{type(self).__name__} moves elements of {width} bits, not {dtype}",
                location=user_location(),
                hint=f"without transpose, elements of up to {REGISTER_BITS} bits",
            )


@dataclass(frozen=True)
class LdMatrix8x8x16bOp(_MatrixCopyOp):
    """`ldmatrix`: one, two or four 8x8 matrices of 16-bit elements from shared memory, `transpose`d if asked.

    Each row is 16 contiguous, aligned bytes. Without `transpose` their elements may also have 8 or 32 bits: a lane
    holds 32 bits of each matrix, so what it holds of TFloat32 is what `mma.sync` takes.
    """

    def traits(self, dtype: type[Numeric], num_bits: int) -> CopyTraits:
        self._check_type(dtype, 0, 16)
        rows = matrix_copy.row_addresses(self.num_matrices)
        held = matrix_copy.registers(self.num_matrices, self.transpose)
        return CopyTraits(WARP, rows, held, held)

    def text(self, num_bits: int) -> str:
        return atom_text.write("ldmatrix", num=self.num_matrices, transpose=int(self.transpose))

    def check(self, src: Tensor, dst: Tensor) -> None:
        super().check(src, dst)
        expect_space("ldmatrix", "source", src, AddressSpace.smem)
        expect_space("ldmatrix", "destination", dst, AddressSpace.rmem)


@dataclass(frozen=True)
class LdMatrix8x16x8bOp(LdMatrix8x8x16bOp):
    """`ldmatrix` of matrices of 8 rows of 16 elements of 8 bits: rows of 16 bytes, as `LdMatrix8x8x16bOp`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.transpose:
            raise CompileError(
                "LdMatrix8x16x8bOp has no transposed form",
                location=user_location(),
                hint="copy elements of 8 bits with CopyUniversalOp, or store the matrix the other way round",
            )


@dataclass(frozen=True)
class StMatrix8x8x16bOp(_MatrixCopyOp):
    """`stmatrix`: one, two or four 8x8 matrices of 16-bit elements to shared memory (sm_90 and up)."""

    def traits(self, dtype: type[Numeric], num_bits: int) -> CopyTraits:
        self._check_type(dtype, 0, 16)
        rows = matrix_copy.row_addresses(self.num_matrices)
        held = matrix_copy.registers(self.num_matrices, self.transpose)
        return CopyTraits(WARP, held, rows, held)

    def text(self, num_bits: int) -> str:
        return atom_text.write("stmatrix", num=self.num_matrices, transpose=int(self.transpose))

    def check(self, src: Tensor, dst: Tensor) -> None:
        super().check(src, dst)
        expect_space("stmatrix", "source", src, AddressSpace.rmem)
        expect_space("stmatrix", "destination", dst, AddressSpace.smem)


class _WarpProduct(MmaOp):
    """A product by one warp. Types and shape are those of a dataclass that derives from this."""

    a_dtype: Any
    b_dtype: Any
    acc_dtype: Any
    shape_mnk: Any

    def _check(self) -> None:
        object.__setattr__(self, "shape_mnk", tuple(self.shape_mnk))
        if self._key() not in mma_sync.FORMS:
            inputs = (_PTX.get(self.a_dtype), _PTX.get(self.b_dtype))
            shapes = [f"{key[0]} into {key[3]}" for key in mma_sync.FORMS if key[1:3] == inputs]
            raise CompileError(
                f"no mma.sync of {self.a_dtype} and {self.b_dtype} into {self.acc_dtype} of shape {self.shape_mnk}",
                location=user_location(),
                hint=f"for these inputs: {', '.join(shapes)}" if shapes else "see tilewright.hw.atoms.mma_sync",
            )

    def _key(self) -> tuple[tuple[int, int, int], str, str, str]:
        a, b, c = (_PTX.get(dtype, "") for dtype in (self.a_dtype, self.b_dtype, self.acc_dtype))
        return self.shape_mnk, a, b, c

    def traits(self) -> MmaTraits:
        form = mma_sync.FORMS[self._key()]
        return MmaTraits(form.shape, WARP, form.a, form.b, form.c, self.a_dtype, self.b_dtype, self.acc_dtype)

    def text(self) -> str:
        (m, n, k), a, b, c = self._key()
        return atom_text.write("mma.sync", shape=f"{m}x{n}x{k}", a=a, b=b, c=c)


@dataclass(frozen=True)
class MmaSyncOp(_WarpProduct):
    """`mma.sync` of one warp: A (M,K) of `a_dtype`, B (N,K) of `b_dtype`, C and D (M,N) of `acc_dtype`.

    Raises:
        CompileError: there is no such instruction.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int]

    def __post_init__(self) -> None:
        self._check()

    @property
    def ab_dtype(self) -> type[Numeric]:
        return self.a_dtype


class MmaF16BF16Op(MmaSyncOp):
    """`mma.sync` of Float16 or BFloat16 into Float32 (Float16 also into Float16), shape (16,8,8) or (16,8,16)."""

    def __init__(self, ab_dtype: type[Numeric], acc_dtype: type[Numeric], shape_mnk: tuple[int, int, int]) -> None:
        _expect_type(self, ab_dtype, (Float16, BFloat16))
        super().__init__(ab_dtype, ab_dtype, acc_dtype, shape_mnk)


@dataclass(frozen=True)
class MmaFP8Op(_WarpProduct):
    """`mma.sync` of Float8E4M3FN or Float8E5M2 into Float32, shape (16,8,32) (sm_89 and up).

    A dataclass that derives from it may have a field `b_dtype` of its own.
    """

    ab_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int]

    def __post_init__(self) -> None:
        _expect_type(self, self.ab_dtype, (Float8E4M3FN, Float8E5M2))
        self._check()

    @property
    def a_dtype(self) -> type[Numeric]:
        return self.ab_dtype

    @property
    def b_dtype(self) -> type[Numeric]:
        return self.ab_dtype


class MmaTF32Op(MmaSyncOp):
    """`mma.sync` of TFloat32 into Float32, shape (16,8,4) or (16,8,8)."""

    def __init__(self, shape_mnk: tuple[int, int, int]) -> None:
        super().__init__(TFloat32, TFloat32, Float32, shape_mnk)


class MmaI8Op(MmaSyncOp):
    """`mma.sync` of Int8 or Uint8 into Int32, shape (16,8,16) or (16,8,32)."""

    def __init__(self, ab_dtype: type[Numeric], shape_mnk: tuple[int, int, int]) -> None:
        _expect_type(self, ab_dtype, (Int8, Uint8))
        super().__init__(ab_dtype, ab_dtype, Int32, shape_mnk)


class MmaF64Op(MmaSyncOp):
    """`mma.sync` of Float64, shape (8,8,4)."""

    def __init__(self) -> None:
        super().__init__(Float64, Float64, Float64, (8, 8, 4))


def _expect_type(op: MmaOp, dtype: type[Numeric], allowed: tuple[type[Numeric], ...]) -> None:
    if dtype not in allowed:
        raise CompileError(
            f"{type(op).__name__} of {dtype}",
            location=user_location(),
            hint=f"it takes {', '.join(map(str, allowed))}",
        )
