"""Matrix descriptors: how `wgmma` is told where a tile lies in shared memory, and in which canonical layout.

Source: PTX ISA 9.0, "Matrix Descriptor Format" and "Strides" of wgmma.mma_async. A descriptor is a word of 64 bits, in
units of 16 bytes: start (bits 0 to 13), leading offset (16 to 29), stride offset (32 to 45), swizzle (62 and 63). With
T elements in 16 bytes, S elements in a row of the swizzle, R rows of M (or N) in units of 8:

    K-major, swizzled   rows (8, R) : (S, stride)        K contiguous
    K-major, none       rows (8, R) : (T, stride)        K (T, 2) : (1, leading)
    MN-major, swizzled  rows (S, R) : (1, leading)       K (8, k) : (S, stride)
    MN-major, none      rows (T, R) : (1, stride)        K (8, k) : (T, leading)

The swizzle is of the address, so a tile that begins inside its pattern is told by its address before the swizzle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.hw.atoms import async_copy
from tilewright.ir import build, types
from tilewright.ir.int_value import IntValue, materialize
from tilewright.layout import ComposedLayout, Layout, Swizzle, coalesce
from tilewright.layout.inttuple import flat
from tilewright.passes.lowering import TensorView
from tilewright.passes.rules.memory import element_bits

if TYPE_CHECKING:
    from mlir import ir

_UNIT = 16
"""Bytes that descriptors count."""
_ROWS = 8
_SWIZZLE_MODES = {0: 0, 128: 1, 64: 2, 32: 3}
_Modes = list[tuple[int, int]]


class Descriptors:
    """The descriptors of a tensor in shared memory whose first mode is (M or N, K) of one instruction.

    Raises:
        CompileError: the layout is none that the instruction reads, or lies at no multiple of its swizzle's pattern.
    """

    def __init__(self, view: TensorView, k_major: bool) -> None:
        self._view = view
        self._bits = element_bits(view.info.element)
        self._swizzle, self._offset, outer = _parts(view)
        first, *self._further = list(outer) if isinstance(outer.shape, tuple) else [outer]
        rows, columns = (_flat(mode) for mode in _two(first, view))
        leading, stride = self._offsets(rows, columns, k_major)
        self._high = stride | _SWIZZLE_MODES[self._swizzle] << 30
        self._leading = leading
        self._start = self._low_word()

    def _offsets(self, rows: _Modes, columns: _Modes, k_major: bool) -> tuple[int, int]:
        """Leading and stride offset, in units."""
        unit = _UNIT * 8 // self._bits
        span = self._swizzle * 8 // self._bits or unit
        found: tuple[Any, Any]
        if k_major:
            across, along = _split(rows, _ROWS, span), _split(columns, unit, 1)
            found = (along, across) if not self._swizzle else (_inside(columns), across)
        else:
            across, along = _split(rows, span, 1), _split(columns, _ROWS, span)
            found = (along, across) if not self._swizzle else (across, along)
        steps = [step * self._bits for step in found if step is not None]
        if len(steps) < len(found) or any(step % (8 * _UNIT) for step in steps):
            raise self._wrong("the layout in shared memory is none that wgmma reads")
        leading, stride = (step // (8 * _UNIT) & 0x3FFF for step in steps)
        return leading, stride

    def _wrong(self, message: str) -> CompileError:
        return CompileError(
            message,
            values={"layout": self._view.layout, "alignment known": f"{self._view.info.align} bytes"},
            hint="make it with utils.sm90.make_smem_layout_a or _b, and allocate it at a multiple of 1024 bytes",
        )

    def _low_word(self) -> ir.Value:
        """The lower half for the tensor's first tile: start and leading offset."""
        if self._view.info.align % async_copy.SWIZZLE_ALIGNMENT[self._swizzle] and self._swizzle:
            raise self._wrong("a swizzled tile does not begin where its pattern does")
        word = types.parse("i32")
        address = build.value("llvm.ptrtoint", word, (self._view.ptr,))
        if not isinstance(self._offset, int):
            address = build.value("arith.addi", word, (address, self._bytes(self._offset)))
        shifted = build.value("arith.shrui", word, (address, build.constant(4, word)))
        start = build.value("arith.andi", word, (shifted, build.constant(0x3FFF, word)))
        return build.value("arith.ori", word, (start, build.constant(self._leading << 16, word)))

    def _bytes(self, offset: IntValue) -> ir.Value:
        moved = offset * self._bits // 8
        return materialize(moved, 32)

    def of(self, row: int, step: int, rows: int) -> list[ir.Value]:
        """The descriptor of the instruction at `row` along M or N and `step` along K."""
        offset = self._offset if isinstance(self._offset, int) else 0
        for mode, index in zip(self._further, (row, step), strict=False):
            offset += mode(index)
        if not isinstance(offset, int) or offset * self._bits % (8 * _UNIT):
            raise self._wrong("tiles of an operand do not lie at multiples of 16 bytes known while compiling")
        low, long = types.parse("i32"), types.parse("i64")
        moved = build.constant(offset * self._bits // (8 * _UNIT), low)
        word = build.value("arith.addi", low, (self._start, moved)) if offset else self._start
        wide = build.value("arith.extui", long, (word,))
        return [build.value("arith.ori", long, (wide, build.constant(self._high << 32, long)))]


def _parts(view: TensorView) -> tuple[int, Any, Layout]:
    """Bytes of the swizzle, the offset inside it, and the layout before it."""
    layout = view.layout
    if not isinstance(layout, ComposedLayout):
        return 0, 0, layout
    inner, bits = layout.inner, element_bits(view.info.element)
    if not isinstance(inner, Swizzle):
        raise CompileError("wgmma reads swizzled tiles", values={"layout": layout})
    step = max(bits // 8, 1).bit_length() - 1
    if inner.bits and (inner.base + step, inner.shift) != (4, 3):
        raise CompileError("wgmma has no such swizzle", values={"layout": layout}, hint="swizzles of bytes: S<n,4,3>")
    return (_UNIT << inner.bits if inner.bits else 0), layout.offset, layout.outer


def _two(first: Layout, view: TensorView) -> list[Layout]:
    modes = list(first) if isinstance(first.shape, tuple) else []
    if len(modes) != 2:
        raise CompileError(
            "an operand of wgmma in shared memory has the modes of one instruction first",
            values={"layout": view.layout},
            hint="partition it with partition_A or partition_B",
        )
    return modes


def _flat(mode: Layout) -> _Modes:
    merged = coalesce(mode)
    return [(extent, step) for extent, step in zip(flat(merged.shape), flat(merged.stride), strict=True) if extent != 1]


def _split(modes: _Modes, extent: int, step: int) -> int | None:
    """What a mode `(extent, rest) : (step, found)` steps by: 0 where there is no rest, None of other modes."""
    if not modes or modes[0][1] != step:
        return 0 if not modes else None
    first, *rest = modes
    if not rest:
        return 0 if first[0] <= extent else extent * step if first[0] % extent == 0 else None
    return rest[0][1] if first[0] == extent and len(rest) == 1 else None


def _inside(columns: _Modes) -> int | None:
    """0 where K is contiguous: the leading offset counts for nothing then."""
    return 0 if len(columns) <= 1 and (not columns or columns[0][1] == 1) else None
