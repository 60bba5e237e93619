"""`make_tiled_tma_atom`: from a tensor, a layout of shared memory and a tile to a tensor map and its coordinates.

The copy engine fills a box in the order of its modes, the contiguous one first. So the layout of shared memory, read
backwards, says which coordinates of the tile follow each other; as many of these modes as are different modes of the
tensor, step 1, and within the limits of a box, make the box. All other modes of the tensor follow with extent 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import layout as algebra
from tilewright.base.errors import CompileError, LayoutError
from tilewright.hw.atoms import async_copy
from tilewright.ir import build, types
from tilewright.lang import trace
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric, TFloat32, number_type
from tilewright.lang.nvgpu.tma import TmaAtom
from tilewright.lang.nvgpu.tma_ops import TmaOp
from tilewright.lang.printing.runtime_print import assert_
from tilewright.lang.tensors.pointer import AddressSpace, Held
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import ComposedLayout, Layout, ScaledBasis, Swizzle, basis_value
from tilewright.layout.dynamic import is_multiple
from tilewright.layout.inttuple import flat

Path = tuple[int, ...]
_TYPES: dict[str, str] = {
    "f64": "f64", "f32": "f32", "tf32": "tf32", "f16": "f16", "bf16": "bf16", "i32": "s32", "u32": "u32", "i64": "s64",
    "u64": "u64", "i16": "u16", "u16": "u16",
}  # fmt: skip
"""Types of tensor maps by the short name of the element's; others of 8 bits are bytes."""


def make_tiled_tma_atom(
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Any,
    cta_tiler: Any,
    num_multicast: int = 1,
    *,
    internal_type: type[Numeric] | None = None,
    loc: object = None,
    ip: object = None,
) -> tuple[TmaAtom, Tensor]:
    """The TMA atom that copies tiles `cta_tiler` of `gmem_tensor`, and the tensor of coordinates to tile in its place.

    Args:
        op: CopyBulkTensorTileG2SOp, its multicast form, CopyBulkTensorTileS2GOp or CopyReduceBulkTensorTileS2GOp.
        gmem_tensor: in global memory; one mode has stride 1, the other strides are multiples of 16 bytes.
        smem_layout: of one tile in shared memory, with its swizzle of bytes.
        cta_tiler: the tile, by the modes of `gmem_tensor`.
        num_multicast: blocks of the cluster that share a tile; each copies a part of it to all.
        internal_type: the type by which elements are copied, such as TFloat32 for Float32.

    Raises:
        CompileError: it is called in a kernel, or no box fits the tensor, the layout and the tile.
    """
    op = op() if isinstance(op, type) else op
    _check_arguments(op, gmem_tensor)
    dtype = number_type(internal_type) if internal_type is not None else gmem_tensor.element_type
    layout, swizzle = _parts(smem_layout)
    order = _order_of_tile(gmem_tensor, layout, cta_tiler)
    try:
        plan = _plan(gmem_tensor, order, dtype, swizzle, int(algebra.size(layout)) // num_multicast)
        async_copy.check_box(plan.box, dtype.width, swizzle)
    except LayoutError as error:
        raise CompileError(
            f"no tensor map copies this tile: {error.message}",
            location=user_location(),
            values={"tensor": gmem_tensor, "shared memory": smem_layout, "tile": cta_tiler, **error.values},
            hint=error.hint,
        ) from error
    _check_sizes(gmem_tensor, plan, dtype)
    type_ = types.tensor_map(dtype.facts.name, plan.box, swizzle)
    kind = map_type(dtype) if not op.kind else _reduced_type(op.kind, dtype)
    attributes = {"modes": build.i32_array(plan.leaves), "type": build.string(kind)}
    made = build.cute("make_tensor_map", (type_,), ((gmem_tensor.value,),), **attributes).results[0]
    modes = len(flat(gmem_tensor.shape))
    atom = TmaAtom(op, dtype, Held(made), plan.box, swizzle, num_multicast, plan.leaves, modes)
    return atom, Tensor((0,) * len(plan.box), Layout(gmem_tensor.shape, plan.strides), gmem_tensor.element_type)


def _check_arguments(op: Any, tensor: Any) -> None:
    if not isinstance(op, TmaOp):
        raise CompileError(
            f"make_tiled_tma_atom takes a TMA operation, not {type(op).__name__}",
            location=user_location(3),
            hint="such as cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp()",
        )
    if not trace.tracing() or trace.current().side == "device":
        raise CompileError(
            "make_tiled_tma_atom is called in a kernel",
            location=user_location(3),
            hint="call it in the @cute.jit function and pass the atom and the tensor to the kernel",
        )
    space = getattr(tensor, "memspace", None)
    if not isinstance(tensor, Tensor) or space not in (AddressSpace.gmem, AddressSpace.generic):
        raise CompileError(
            "make_tiled_tma_atom takes a tensor in global memory", location=user_location(3), values={"got": tensor}
        )


def _parts(layout: Any) -> tuple[Layout, int]:
    """The layout before the swizzle, and the bytes of the swizzle."""
    if not isinstance(layout, ComposedLayout):
        return (layout if isinstance(layout, Layout) else Layout(layout)), 0
    inner = layout.inner
    if not isinstance(inner, Swizzle) or (inner.bits and (inner.base, inner.shift) != (4, 3)):
        raise CompileError(
            "the layout of shared memory has a swizzle that the copy engine does not know",
            location=user_location(3),
            values={"layout": layout},
            hint="swizzles are of bytes: S<1,4,3>, S<2,4,3>, S<3,4,3>",
        )
    return layout.outer, (16 << inner.bits if inner.bits else 0)


def _order_of_tile(tensor: Tensor, layout: Layout, tiler: Any) -> list[tuple[int, Any]]:
    """The tile's modes in the order of shared memory: the extent of each, and its step along a mode of the tensor."""
    whole = algebra.make_identity_layout(tensor.shape)
    tile = next(iter(algebra.zipped_divide(whole, tiler)))
    if algebra.size(tile) != algebra.size(layout):
        raise CompileError(
            "the tile and the layout of shared memory are of different sizes",
            location=user_location(3),
            values={"tile": tile.shape, "shared memory": layout},
            hint="give the layout of one stage: cute.slice_(layout, (None, None, 0))",
        )
    found = algebra.coalesce(algebra.composition(tile, algebra.right_inverse(layout)))
    return list(zip(flat(found.shape), flat(found.stride), strict=True))


@dataclass(frozen=True)
class _Plan:
    """The box, innermost first; the leaf of the tensor's layout that each mode is; the strides of the coordinates."""

    box: tuple[int, ...]
    leaves: tuple[int, ...]
    strides: Any


def _plan(tensor: Tensor, order: list[tuple[int, Any]], dtype: type[Numeric], swizzle: int, most: int) -> _Plan:
    """The largest box of at most `most` elements."""
    paths = _paths(tensor.shape)
    box: dict[Path, int] = {}
    size = 1
    for extent, step in order:
        if extent == 1:
            continue
        path = step.mode if isinstance(step, ScaledBasis) else None
        if path is None or path in box or basis_value(step) != 1:
            break
        limit = min(async_copy.BOX_EXTENT, most // size)
        if not box and swizzle:
            limit = min(limit, swizzle * 8 // dtype.width)
        taken = _divisor(extent, limit)
        box[path], size = taken, size * taken
        if taken < extent or size == most:
            break
    if not box:
        box[_contiguous(tensor, paths)] = 1
    return _completed(tensor, paths, box)


def _completed(tensor: Tensor, paths: list[Path], box: dict[Path, int]) -> _Plan:
    """The plan with the other modes of the tensor, which have a box of 1. A mode of stride 0 or extent 1 has none."""
    strides = dict(zip(paths, flat(tensor.layout.stride), strict=True))
    extents = dict(zip(paths, flat(tensor.layout.shape), strict=True))
    modes = [*box, *(path for path in paths if path not in box and not _is(strides[path], 0))]
    if len(modes) > max(async_copy.TENSOR_RANKS):
        modes = [path for path in modes if path in box or not _is(extents[path], 1)]
    if len(modes) > max(async_copy.TENSOR_RANKS):
        raise LayoutError("a tensor map has 1 to 5 modes", values={"modes": len(modes)}, hint="group or fix modes")
    if not _is(strides[modes[0]], 1):
        raise LayoutError(
            "what lies together in shared memory does not lie together in the tensor",
            values={"stride of the tensor": strides[modes[0]]},
            hint="give the layout of shared memory the order of the tensor: K-major or M-major",
        )
    places = {path: place for place, path in enumerate(modes)}
    steps = [ScaledBasis(1, places[path]) if path in places else 0 for path in paths]
    full = tuple(box.get(path, 1) for path in modes)
    return _Plan(full, tuple(paths.index(path) for path in modes), _nested(tensor.shape, iter(steps)))


def _contiguous(tensor: Tensor, paths: list[Path]) -> Path:
    for path, step in zip(paths, flat(tensor.layout.stride), strict=True):
        if _is(step, 1):
            return path
    raise LayoutError("no mode of the tensor has stride 1", hint="see mark_layout_dynamic(leading_dim=...)")


def _is(number: Any, wanted: int) -> bool:
    return isinstance(number, int) and number == wanted


def _divisor(extent: int, limit: int) -> int:
    """The largest divisor of `extent` up to `limit`."""
    return max(size for size in range(1, max(min(extent, limit), 1) + 1) if extent % size == 0)


def _paths(shape: Any, path: Path = ()) -> list[Path]:
    """The path to each leaf of a shape."""
    if not isinstance(shape, tuple):
        return [path or (0,)]
    return [found for place, part in enumerate(shape) for found in _paths(part, (*path, place))]


def _nested(shape: Any, leaves: Any) -> Any:
    return tuple(_nested(part, leaves) for part in shape) if isinstance(shape, tuple) else next(leaves)


def map_type(dtype: type[Numeric]) -> str:
    """What a tensor map calls the type of its elements."""
    name = dtype.facts.name
    if dtype is TFloat32:
        return "tf32"
    if name not in _TYPES and dtype.width != 8:
        raise CompileError(f"tensor maps have no elements of type {dtype}", location=user_location(3))
    return _TYPES.get(name, "u8")


def _reduced_type(kind: str, dtype: type[Numeric]) -> str:
    """The type of maps by which elements are reduced: sums and bits of Int64 are those of Uint64."""
    name = map_type(dtype)
    if name == "s64" and kind in ("add", "and", "or", "xor"):
        name = "u64"
    if name not in async_copy.TENSOR_REDUCTIONS[kind]:
        raise CompileError(
            f"a tensor copy has no reduction {kind} of {dtype}",
            location=user_location(3),
            hint=f"types of {kind}: {', '.join(async_copy.TENSOR_REDUCTIONS[kind])}",
        )
    return name


def _check_sizes(tensor: Tensor, plan: _Plan, dtype: type[Numeric]) -> None:
    """Strides and address are multiples of 16 bytes: refused where it is known, else checked at each call."""
    strides = flat(tensor.layout.stride)
    wanted = max(8 * async_copy.GLOBAL_STRIDE_BYTES // dtype.width, 1)
    for leaf in plan.leaves[1:]:
        if isinstance(strides[leaf], int) and strides[leaf] % wanted:
            raise CompileError(
                f"a stride of the tensor is {strides[leaf]} elements, no multiple of 16 bytes",
                location=user_location(3),
                values={"tensor": tensor, "multiple of": f"{wanted} elements"},
                hint="pad the rows: tensor copies (TMA) step by 16 bytes",
            )
        if not is_multiple(strides[leaf], wanted):
            assert_(strides[leaf] % wanted == 0, "a stride of a tensor for TMA is no multiple of 16 bytes")
    pointer = tensor.iterator
    if pointer.alignment % async_copy.GLOBAL_ADDRESS_ALIGNMENT:
        aligned = pointer.toint() % async_copy.GLOBAL_ADDRESS_ALIGNMENT == 0
        assert_(aligned, "the address of a tensor for TMA is no multiple of 16 bytes")
