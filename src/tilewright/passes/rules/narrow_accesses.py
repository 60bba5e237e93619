"""Why an access of memory is not wider: what layout and alignment do not say."""

from __future__ import annotations

from tilewright.layout import ComposedLayout, Layout, coalesce, size
from tilewright.passes.lowering import TensorView
from tilewright.passes.remarks import WIDEST_BITS


def why_narrow(way: str, view: TensorView, width: int, bits: int) -> str | None:
    """Why accesses of `width` elements of `bits` bits are not twice as wide; None where nothing more would be gained.

    `way` names the access, such as `load from`.
    """
    count = size(view.layout)
    if width * bits >= WIDEST_BITS or not isinstance(count, int) or count <= width:
        return None
    reason = _reason(view, width * 2, bits, count)
    return reason and f"each {way} {view.info.space} moves {width * bits} of up to {WIDEST_BITS} bits: {reason}"


def _reason(view: TensorView, wanted: int, bits: int, count: int) -> str | None:
    needed = wanted * bits // 8
    if count % wanted:
        return f"its {count} elements are no multiple of {wanted}"
    layout = view.layout.outer if isinstance(view.layout, ComposedLayout) else view.layout
    found = _of_layout(layout, wanted)
    if found is not None:
        return found
    if view.info.align % needed:
        return (
            f"its address is known to be a multiple of {view.info.align} bytes, not of {needed}: from_dlpack("
            "assumed_align=16) says it of a tensor, `cute.assume` and divisibilities of extents and offsets of a part"
        )
    return "the swizzle moves parts of such a vector" if isinstance(view.layout, ComposedLayout) else None


def _of_layout(layout: Layout, wanted: int) -> str | None:
    flat = coalesce(layout)
    shape = flat.shape if isinstance(flat.shape, tuple) else (flat.shape,)
    stride = flat.stride if isinstance(flat.stride, tuple) else (flat.stride,)
    if not isinstance(stride[0], int):
        return "the stride of its first mode is known only at run time: mark_layout_dynamic(leading_dim=) keeps it 1"
    if stride[0] != 1:
        return f"its elements lie {stride[0]} apart"
    if not isinstance(shape[0], int):
        return "the extent of its first mode is known only at run time: tile it by a static extent"
    if shape[0] % wanted:
        return f"{shape[0]} elements lie together, which is no multiple of {wanted}"
    if any((step if isinstance(step, int) else step.divisibility) % wanted for step in stride[1:]):
        return (
            f"a stride is not known to be a multiple of {wanted}: mark_compact_shape_dynamic(divisibility=) and "
            "`cute.assume` say so"
        )
    return None
