"""`cutlass.utils.sm90` (also `hopper_helpers`): tiled MMAs, layouts of shared memory and stores for Hopper.

Choices of layouts and tiles are those of CUTLASS' collective builders (`sm90_common.inl`, `sm90_builder.inl`).
"""

from __future__ import annotations

from math import gcd
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.atoms import CopyAtom, CopyUniversalOp, TiledMma, make_copy_atom, make_tiled_mma
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Int8,
    Numeric,
    TFloat32,
    Uint8,
)
from tilewright.lang.nvgpu.warp import StMatrix8x8x16bOp
from tilewright.lang.nvgpu.warpgroup import (
    MmaF8Op,
    MmaF16BF16Op,
    MmaI8Op,
    MmaTF32Op,
    OperandMajorMode,
    OperandSource,
    SmemLayoutAtomKind,
    make_smem_layout_atom,
)
from tilewright.layout import ComposedLayout, product, tile_to_shape
from tilewright.utils.layout_enum import LayoutEnum

_SWIZZLE_BITS = ((1024, "SW128"), (512, "SW64"), (256, "SW32"), (128, "INTER"))


def make_trivial_tiled_mma(
    a_dtype: type[Numeric],
    b_dtype: type[Numeric],
    a_leading_mode: OperandMajorMode,
    b_leading_mode: OperandMajorMode,
    acc_dtype: type[Numeric],
    atom_layout_mnk: tuple[int, int, int],
    tiler_mn: tuple[int, int],
    a_source: OperandSource = OperandSource.SMEM,
    *,
    loc: object = None,
    ip: object = None,
) -> TiledMma:
    """A tiled MMA of `atom_layout_mnk` warpgroups, each with instructions of `tiler_mn` (64, N).

    Raises:
        CompileError: there is no `wgmma` of these types.
    """
    modes = (a_source, a_leading_mode, b_leading_mode)
    m, n = tiler_mn
    op: Any
    if a_dtype in (Float16, BFloat16) and a_dtype is b_dtype:
        op = MmaF16BF16Op(a_dtype, acc_dtype, (m, n, 16), *modes)
    elif {a_dtype, b_dtype} <= {TFloat32, Float32}:
        op = MmaTF32Op((m, n, 8), *modes)
    elif {a_dtype, b_dtype} <= {Float8E4M3FN, Float8E5M2}:
        op = MmaF8Op(a_dtype, b_dtype, acc_dtype, (m, n, 32), *modes)
    elif {a_dtype, b_dtype} <= {Int8, Uint8}:
        op = MmaI8Op(a_dtype, b_dtype, acc_dtype, (m, n, 32), *modes)
    else:
        raise CompileError(f"no wgmma of {a_dtype} and {b_dtype}", location=user_location())
    return make_tiled_mma(op, atom_layout_mnk)


def get_smem_layout_atom(
    layout: LayoutEnum, element_type: type[Numeric], major_mode_size: int, *, loc: object = None, ip: object = None
) -> SmemLayoutAtomKind:
    """The widest swizzle whose rows divide the contiguous mode of `major_mode_size` elements.

    Raises:
        CompileError: it is no multiple of 16 bytes.
    """
    bits = int(major_mode_size) * element_type.width
    major = "MN" if layout is LayoutEnum.COL_MAJOR else "K"
    for width, name in _SWIZZLE_BITS:
        if bits % width == 0:
            return SmemLayoutAtomKind[f"{major}_{name}"]
    raise CompileError(
        f"{major_mode_size} elements of {element_type} are no multiple of 16 bytes", location=user_location()
    )


def make_smem_layout(
    dtype: type[Numeric], layout: LayoutEnum, tile: Any, stage: int | None = None, *,
    major_mode_size: int | None = None, loc: object = None, ip: object = None,
) -> ComposedLayout:  # fmt: skip
    """The layout of a tile in shared memory, swizzled as widely as it can be, `stage` times where it is given."""
    shape = tuple(product(mode) for mode in tile)
    contiguous = layout is LayoutEnum.ROW_MAJOR
    size = major_mode_size if major_mode_size is not None else shape[1] if contiguous else shape[0]
    atom = make_smem_layout_atom(get_smem_layout_atom(layout, dtype, size), dtype)
    order = (0, 1, 2) if contiguous else (1, 0, 2)
    staged = shape if stage is None else (*shape, stage)
    made: ComposedLayout = tile_to_shape(atom, staged, order[: len(staged)])
    return made


def make_smem_layout_a(
    a_layout: LayoutEnum, mma_tiler_mnk: Any, a_dtype: type[Numeric], num_stages: int, *, loc: object = None,
    ip: object = None,
) -> ComposedLayout:  # fmt: skip
    """The layout of `num_stages` tiles (M, K) of A."""
    return make_smem_layout(a_dtype, a_layout, (mma_tiler_mnk[0], mma_tiler_mnk[2]), num_stages)


def make_smem_layout_b(
    b_layout: LayoutEnum, mma_tiler_mnk: Any, b_dtype: type[Numeric], num_stages: int, *, loc: object = None,
    ip: object = None,
) -> ComposedLayout:  # fmt: skip
    """The layout of `num_stages` tiles (N, K) of B."""
    return make_smem_layout(b_dtype, b_layout, (mma_tiler_mnk[1], mma_tiler_mnk[2]), num_stages)


def make_smem_layout_epi(
    epi_dtype: type[Numeric], epi_layout: LayoutEnum, epi_tile: Any, epi_stage: int, smem_trg_shape: Any = None,
    smem_order: tuple[int, ...] | None = None, *, loc: object = None, ip: object = None,
) -> ComposedLayout:  # fmt: skip
    """The layout of `epi_stage` tiles of the output, on their way to global memory.

    `smem_trg_shape` and `smem_order` are the whole shape and its order, where it has more modes than a stage.
    """
    if smem_trg_shape is None:
        return make_smem_layout(epi_dtype, epi_layout, epi_tile, epi_stage)
    shape = tuple(product(mode) for mode in epi_tile)
    contiguous = shape[1] if epi_layout is LayoutEnum.ROW_MAJOR else shape[0]
    atom = make_smem_layout_atom(get_smem_layout_atom(epi_layout, epi_dtype, contiguous), epi_dtype)
    first = (0, 1) if epi_layout is LayoutEnum.ROW_MAJOR else (1, 0)
    order = smem_order or (*first, *range(2, len(smem_trg_shape)))
    made: ComposedLayout = tile_to_shape(atom, smem_trg_shape, order)
    return made


def compute_tile_shape_or_override(
    tile_shape_mnk: tuple[int, int, int],
    element_type: type[Numeric],
    is_cooperative: bool = False,
    epi_tile_override: tuple[int, int] | None = None,
    *,
    loc: object = None,
    ip: object = None,
) -> tuple[int, int]:
    """The tile of the output that is stored at a time: `epi_tile_override`, or one that fits the warpgroups.

    Cooperative warpgroups share 128 rows and 32 columns; others take 64 rows, and 64 columns of 8-bit elements.
    """
    if epi_tile_override is not None:
        return epi_tile_override
    m, n = int(product(tile_shape_mnk[0])), int(product(tile_shape_mnk[1]))
    wide = 64 if element_type.width == 8 and not is_cooperative else 32
    return min(128 if is_cooperative else 64, m), gcd(wide, n)


def sm90_get_smem_store_op(
    layout_d: LayoutEnum, elem_ty_d: type[Numeric], elem_ty_acc: type[Numeric], *, loc: object = None, ip: object = None
) -> CopyAtom:
    """The atom by which accumulators, converted to `elem_ty_d`, go to shared memory: `stmatrix` for 16 bits."""
    if elem_ty_d.width == 16:
        return make_copy_atom(StMatrix8x8x16bOp(layout_d.is_m_major_c(), 4), elem_ty_d)
    return make_copy_atom(CopyUniversalOp(), elem_ty_d)
