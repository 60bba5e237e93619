"""The verifier of views: the algebra's name and arguments, and what it gives on the layout of the source.

Leaves of run time are `Multiple`s here: equal ones are not known to be equal, so only what both sides know statically
is compared.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import TilewrightError
from tilewright.ir import build, layout_text
from tilewright.ir.accessors import text_of
from tilewright.layout import ComposedLayout, Layout, runtime_checks, sym_int, views
from tilewright.layout.dynamic import DynamicInt, add, divisibility, is_multiple
from tilewright.passes.verify.operation import Invalid, Memory, OpSummary, Undecided, check_leaves, leaf, tensor
from tilewright.passes.verify.table import decides, verifies

if TYPE_CHECKING:
    from mlir import ir

_FAILS = (
    TilewrightError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError,
    RecursionError,
)  # fmt: skip
"""What functions of the algebra raise where arguments make no sense to them."""


@verifies("view")
def _view(op: OpSummary) -> None:
    (source_type,), arguments32, arguments64, leaves32, leaves64 = op.groups
    source, made = tensor(source_type), tensor(op.results[0])
    algebra, moves = op.one_of("algebra", sorted(views.NAMES)), op.one_of("moves", ("pointer", "swizzle"))
    if op.number("width") not in (32, 64):
        raise Invalid("an offset is computed in 32 or 64 bits", width=op.number("width"))
    written = op.text("arguments")
    check_leaves("arguments", written, arguments32, arguments64)
    check_leaves("layout", made.outer_text, leaves32, leaves64)
    arguments = _arguments(written)
    _same_memory(source, made, algebra, arguments)
    kept, start = _cut(source, algebra, arguments)
    inside = moves == "swizzle"
    swizzled = isinstance(source.layout, ComposedLayout)
    if inside and not swizzled:
        raise Invalid("the offset moves only inside a swizzle", 'moves is "pointer"', source=source.text)
    if swizzled and not inside and not is_multiple(start, source.layout.inner.period):
        raise Invalid(
            "under a swizzle the pointer moves by multiples of its period only",
            'moves is "swizzle"',
            start=start,
            period=source.layout.inner.period,
        )
    wanted = _placed(source.layout, kept, start, inside)
    if wanted is not None:
        _compare(wanted, made)
    _check_alignment(source, made, start, inside)


def _arguments(written: str) -> tuple[Any, ...]:
    try:
        found = layout_text.decode_arguments(written, leaf)
        again = layout_text.encode_arguments(found)[0]
    except _FAILS as error:
        raise Invalid("the arguments cannot be read", arguments=written, reason=f"{error}") from error
    if again != written:
        raise Invalid("the arguments are not written as layouts are", arguments=written, read=again)
    return found


def _same_memory(source: Memory, made: Memory, algebra: str, arguments: tuple[Any, ...]) -> None:
    if made.space != source.space:
        raise Invalid("a view lies in the space of its tensor", tensor=source.type, view=made.type)
    if algebra != "recast":
        if made.element != source.element:
            raise Invalid("only a recast changes the type of elements", tensor=source.type, view=made.type)
        return
    if arguments != (made.bits, source.bits):
        raise Invalid(
            "a recast is given the bits of the new elements and of the old",
            arguments=arguments,
            bits=(made.bits, source.bits),
        )


def _cut(source: Memory, algebra: str, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """The layout that is kept, None where that hangs on numbers of run time, and what is known of the start."""
    with runtime_checks(lambda fact: None):
        try:
            cut = views.cut(source.layout, algebra, arguments)
            start = views.start_divisor(cut)
        except _FAILS as error:
            if _hangs_on_run_time(source, arguments):
                raise Undecided from error
            reason = getattr(error, "message", error)
            raise Invalid(
                f"{algebra} has no result", layout=source.text, arguments=arguments, reason=f"{reason}"
            ) from error
        _check_registers(source, cut, algebra)
        try:
            return cut.kept, start
        except _FAILS as error:
            if _hangs_on_run_time(source, arguments):
                return None, start
            raise Invalid(f"{algebra} has no result", layout=source.text, reason=f"{error}") from error


@decides("cute.view")
def _view_of_values(op: ir.Operation) -> None:
    """Whether the algebra has a result when equal operands are known to be equal."""
    _, arguments32, arguments64, _, _ = build.groups(op)
    source = tensor(op.operands[0].type)
    names: dict[Any, str] = {}

    def symbols(leaves32: Any, leaves64: Any) -> Any:
        queues = {32: iter(leaves32), 64: iter(leaves64)}

        def symbol(width: int, divisibility: int) -> Any:
            value = next(queues[width])
            return sym_int(divisibility, width, names.setdefault(value, f"v{len(names)}"))

        return symbol

    layout = layout_text.decode_layout(source.text, symbols(*_leaves_of(op.operands[0], source.text)))
    arguments = layout_text.decode_arguments(text_of(op, "arguments"), symbols(arguments32, arguments64))
    with runtime_checks(lambda fact: None):
        try:
            _ = views.cut(layout, text_of(op, "algebra"), arguments).start
        except _FAILS as error:
            reason = getattr(error, "message", error)
            raise Invalid(
                f"{text_of(op, 'algebra')} has no result", layout=source.text, arguments=arguments, reason=f"{reason}"
            ) from error


def _leaves_of(value: ir.Value, text: str) -> tuple[Any, Any]:
    """What stands for the leaves of a tensor: its operands, or places in it."""
    owner = value.owner
    name = getattr(owner, "name", "")
    if name == "cute.make_tensor" or (name == "cute.view" and " o " not in text):
        *_, leaves32, leaves64 = build.groups(owner.operation)
        return leaves32, leaves64
    widths = layout_text.widths(text)
    places = [(width, (value, place)) for place, width in enumerate(widths)]
    return [place for width, place in places if width == 32], [place for width, place in places if width == 64]


def _hangs_on_run_time(source: Memory, arguments: tuple[Any, ...]) -> bool:
    return "?" in source.text or "?" in layout_text.encode_arguments(arguments)[0]


def _check_registers(source: Memory, cut: views.Cut, algebra: str) -> None:
    """Registers have no elements outside: what is not of the tensor is no memory at all."""
    if source.space == "rmem" and algebra != "domain_offset" and cut.coord is not None:
        if not inside(cut.coord, cut.layout.shape):
            raise Invalid("the coordinate is outside the tensor", layout=source.text, coordinate=cut.coord)


def inside(coord: Any, shape: Any) -> bool:
    """False where a number of the coordinate is known to be outside its extent."""
    if coord is None or isinstance(coord, DynamicInt):
        return True
    if isinstance(coord, tuple):
        modes = shape if isinstance(shape, tuple) else (shape,)
        return len(coord) == len(modes) and all(map(inside, coord, modes))
    extent = _extent(shape)
    return int(coord) >= 0 and (extent is None or coord < extent)


def _extent(shape: Any) -> int | None:
    if isinstance(shape, tuple):
        extents = [_extent(mode) for mode in shape]
        return None if None in extents else math.prod(extent for extent in extents if extent is not None)
    return shape if isinstance(shape, int) else None


def _placed(before: Any, kept: Any, start: Any, inside: bool) -> Layout | ComposedLayout | None:
    """The layout that the result's type shall have."""
    if kept is None or isinstance(kept, ComposedLayout) or isinstance(before, Layout):
        return kept  # type: ignore[no-any-return]
    offset = add(start, views.known(before.offset)) if inside else before.offset
    return ComposedLayout(before.inner, offset, kept)


def _compare(wanted: Layout | ComposedLayout, made: Memory) -> None:
    found = made.layout
    fits = type(found) is type(wanted)
    if fits and isinstance(wanted, ComposedLayout):
        fits = wanted.inner == found.inner and _agree(wanted.offset, found.offset)
    outer, given = views.outer_of(wanted), views.outer_of(found)
    if not (
        fits and isinstance(outer, Layout) and _agree(outer.shape, given.shape) and _agree(outer.stride, given.stride)
    ):
        raise Invalid(
            "the layout is not that of the view",
            "the type of a view has the layout that its algebra gives",
            layout=made.text,
            expected=layout_text.encode(wanted)[0],
        )


def _agree(wanted: Any, found: Any) -> bool:
    """The same profile, the same numbers where both are known, and no divisor that is not known."""
    if isinstance(wanted, tuple) or isinstance(found, tuple):
        same = isinstance(wanted, tuple) and isinstance(found, tuple) and len(wanted) == len(found)
        return same and all(map(_agree, wanted, found))
    if isinstance(found, DynamicInt):
        known = divisibility(wanted)
        return not isinstance(wanted, int) and known % found.divisibility == 0
    return isinstance(wanted, DynamicInt) or bool(wanted == found)


def _check_alignment(source: Memory, made: Memory, start: Any, inside: bool) -> None:
    bits = divisibility(start) * made.bits
    step = 1 if bits % 8 else bits // 8
    known = source.align if inside else math.gcd(source.align, step)
    if made.align > known:
        raise Invalid(
            f"an alignment to {made.align} bytes is not known of the view",
            view=made.type,
            tensor=source.type,
            known=f"{known} bytes",
        )
