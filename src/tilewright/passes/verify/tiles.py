"""Verifiers of copies and products of tiles: the atom's name, its parameters, and what it asks of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import TilewrightError
from tilewright.hw.atoms import async_copy, matrix_copy, mma_sync
from tilewright.ir import atom_text
from tilewright.ir.atom_text import AtomText
from tilewright.layout import product, size, views
from tilewright.passes.rules.copying import ROW_HINT, required_width
from tilewright.passes.verify.operation import Invalid, Memory, OpSummary, fragment, tensor, tensor_or_fragment
from tilewright.passes.verify.table import verifies

if TYPE_CHECKING:
    from mlir import ir

_WORD_BITS = 32
_PTX_ELEMENT = {
    "f64": "f64", "f32": "f32", "tf32": "f32", "s32": "i32", "f16": "f16", "bf16": "bf16", "e4m3": "f8E4M3FN",
    "e5m2": "f8E5M2", "s8": "i8", "u8": "i8",
}  # fmt: skip


_FORMS: dict[tuple[str, ...], mma_sync.MmaSync] = {
    ("x".join(map(str, form.shape)), form.a_type, form.b_type, form.c_type): form for form in mma_sync.FORMS.values()
}


@verifies("copy")
def _copy(op: OpSummary) -> None:
    (source,), (target,), masks = op.groups
    _check_copy(op, tensor_or_fragment(source), tensor(target), masks)


@verifies("copy_value")
def _copy_value(op: OpSummary) -> None:
    (source,), masks, old = op.groups
    _check_copy(op, tensor(source), fragment(op.results[0]), masks)
    if len(old) != len(masks):
        raise Invalid(
            "what the registers held is given where there is a predicate", old=len(old), predicates=len(masks)
        )
    for type_ in old:
        if type_ != op.results[0]:
            raise Invalid("the registers held a vector of the result's type", old=type_, result=op.results[0])


def _check_copy(op: OpSummary, src: Memory, dst: Memory, masks: Sequence[ir.Type]) -> None:
    atom = _atom(op, tuple(_COPIES))
    counts = src.count("a copy"), dst.count("a copy")
    instructions = _COPIES[atom.name](atom, src, dst, counts)
    if len(masks) > 1:
        raise Invalid("a copy has one predicate", predicates=len(masks))
    for mask in masks:
        _check_mask(tensor_or_fragment(mask), counts[0], instructions)


def _check_mask(mask: Memory, count: int, instructions: int) -> None:
    """Each entry stands for equally many elements, and for whole instructions."""
    if str(mask.element) != "i1":
        raise Invalid("a predicate has Booleans", predicate=mask.type)
    entries = mask.count("a predicate")
    if entries < 1 or count % entries or (instructions and instructions % entries):
        raise Invalid(
            f"a predicate of {entries} entries does not fit a copy of {count} elements",
            "each entry stands for one run of elements, of whole instructions",
            predicate=mask.text,
            instructions=instructions or "as wide as the predicate allows",
        )


def _atom(op: OpSummary, known: Sequence[str]) -> AtomText:
    text = op.text("atom")
    try:
        atom = atom_text.read(text)
    except ValueError as error:
        raise Invalid(str(error)) from error
    if str(atom) != text or atom.name not in known:
        raise Invalid(f"there is no atom {text!r}", f"atoms: {', '.join(sorted(known))}")
    return atom


def _parameter(atom: AtomText, key: str, allowed: Sequence[int], default: int = 0) -> int:
    text = atom.parameters.get(key)
    if text is None and default:
        return default
    if text is None or not text.isdigit() or int(text) not in allowed:
        raise Invalid(f"{key} of atom {atom.name} is one of {', '.join(map(str, allowed))}", atom=atom)
    return int(text)


def _only(atom: AtomText, *keys: str) -> None:
    unknown = sorted(atom.parameters.keys() - set(keys))
    if unknown:
        raise Invalid(f"atom {atom.name} has no {unknown[0]}", f"it has {', '.join(keys) or 'none'}", atom=atom)


def _widths(bits: int, *sides: Memory, hint: str = "") -> int:
    try:
        return required_width(bits, *[side.view for side in sides], hint=hint)
    except TilewrightError as error:
        raise Invalid(error.message, error.hint or "", **error.values) from error


def _universal(atom: AtomText, src: Memory, dst: Memory, counts: tuple[int, int]) -> int:
    _only(atom, "bits", "l1", "l2", "invariant")
    _hints(atom, src, dst)
    _same_elements(src, dst, counts)
    if "bits" not in atom.parameters:
        return 0
    bits = _parameter(atom, "bits", (1, 4, 6, 8, 16, 32, 64, 128))
    return _instructions(bits, counts[0], src, dst)


_PRIORITIES = ("evict_first", "evict_last", "evict_unchanged", "no_allocate")


def _hints(atom: AtomText, src: Memory, dst: Memory) -> None:
    """Hints are for global memory: `l1` of either side, the others of the source."""
    if atom.parameters.get("l1", _PRIORITIES[0]) not in _PRIORITIES:
        raise Invalid(f"l1 of atom {atom.name} is one of {', '.join(_PRIORITIES)}", atom=atom)
    for key, allowed in (("l2", (64, 128, 256)), ("invariant", (1,))):
        if key in atom.parameters:
            _parameter(atom, key, allowed)
            if src.space != "gmem":
                raise Invalid(f"{key} is for loads from global memory", source=src.space, atom=atom)
    if "l1" in atom.parameters and "gmem" not in (src.space, dst.space):
        raise Invalid("l1 is for global memory", source=src.space, destination=dst.space, atom=atom)


def _instructions(bits: int, count: int, src: Memory, dst: Memory) -> int:
    width = _widths(bits, src, dst)
    if count % width:
        raise Invalid(f"instructions of {width} elements do not fill a copy of {count}", bits=bits)
    return count // width


def _cp_async(atom: AtomText, src: Memory, dst: Memory, counts: tuple[int, int]) -> int:
    _only(atom, "bits", "cache", "l2")
    _hints(atom, src, dst)
    _same_elements(src, dst, counts)
    _spaces(atom, src, ("gmem", "generic"), dst, ("smem",))
    cache = atom.parameters.get("cache", "always")
    if cache not in ("always", "global"):
        raise Invalid("cache of cp.async is always or global", atom=atom)
    sizes = async_copy.CP_ASYNC_BYTES["cg" if cache == "global" else "ca"]
    bits = _parameter(atom, "bits", [8 * size for size in sizes], src.bits)
    if bits // 8 not in sizes:
        raise Invalid(f"cp.async copies {', '.join(map(str, sizes))} bytes, not {bits // 8}", atom=atom)
    return _instructions(bits, counts[0], src, dst)


def _ldmatrix(atom: AtomText, src: Memory, dst: Memory, counts: tuple[int, int]) -> int:
    _spaces(atom, src, ("smem",), dst, ("rmem",))
    return _matrices(atom, src, dst, counts)


def _stmatrix(atom: AtomText, src: Memory, dst: Memory, counts: tuple[int, int]) -> int:
    _spaces(atom, src, ("rmem",), dst, ("smem",))
    return _matrices(atom, dst, src, counts[::-1])


def _matrices(atom: AtomText, rows: Memory, registers: Memory, counts: tuple[int, int]) -> int:
    _only(atom, "num", "transpose")
    number = _parameter(atom, "num", matrix_copy.MATRICES)
    _parameter(atom, "transpose", (0, 1))
    row = _widths(matrix_copy.ROW_BITS, rows, hint=ROW_HINT)
    each = number * (_WORD_BITS // registers.bits)
    if counts[0] % row or counts[0] // row * each != counts[1]:
        raise Invalid(
            f"{counts[0]} elements of rows and {counts[1]} of registers do not fit {atom.name}",
            rows=rows.type,
            registers=registers.type,
            atom=atom,
        )
    return counts[0] // row


def _same_elements(src: Memory, dst: Memory, counts: tuple[int, int]) -> None:
    if src.bits != dst.bits:
        raise Invalid("a copy keeps the width of elements", source=src.type, destination=dst.type)
    if counts[0] != counts[1]:
        raise Invalid(
            f"the source has {counts[0]} elements and the destination {counts[1]}",
            source=src.text,
            destination=dst.text,
        )


def _spaces(atom: AtomText, src: Memory, sources: Sequence[str], dst: Memory, targets: Sequence[str]) -> None:
    if src.space not in sources or dst.space not in targets:
        raise Invalid(
            f"{atom.name} copies from {' or '.join(sources)} to {' or '.join(targets)}",
            source=src.space,
            destination=dst.space,
        )


_COPIES: dict[str, Callable[[AtomText, Memory, Memory, tuple[int, int]], int]] = {
    "universal": _universal,
    "cp.async": _cp_async,
    "ldmatrix": _ldmatrix,
    "stmatrix": _stmatrix,
}
"""How each atom checks a copy. Gives the number of instructions; 0 where the copy decides."""


@verifies("gemm")
def _gemm(op: OpSummary) -> None:
    sides = {name: tensor(group[0]) for name, group in zip("DABC", op.groups, strict=True)}
    wanted, held = _product(_atom(op, ("universal", "mma.sync")), str(sides["A"].element))
    for name, side in sides.items():
        if side.space != "rmem":
            raise Invalid(f"operand {name} lies in registers", **{name: side.type})
        side.count("a fragment")
        _check_element(name, side, wanted)
        takes = held["C" if name == "D" else name]
        if _extents(side)[0] != takes:
            raise Invalid(
                f"the first mode of operand {name} is not what an instruction takes", got=side.text, takes=takes
            )
    _check_extents({name: _extents(side)[1:] for name, side in sides.items()}, sides)


@verifies("gemm_value")
def _gemm_value(op: OpSummary) -> None:
    sides = {name: fragment(group[0]) for name, group in zip("ABC", op.groups, strict=True)}
    sides["D"] = fragment(op.results[0])
    wanted, held = _product(_atom(op, ("universal", "mma.sync")), str(sides["A"].element))
    extents = op.numbers("extents")
    if len(extents) != len("mnk") or min(extents) < 1:
        raise Invalid("extents are the instructions along M, N and K", extents=extents)
    m, n, k = extents
    steps = {"A": m * k, "B": n * k, "C": m * n, "D": m * n}
    for name, side in sides.items():
        _check_element(name, side, wanted)
        takes = held["C" if name == "D" else name] * steps[name]
        if side.count("a fragment") != takes:
            raise Invalid(f"operand {name} has {takes} elements", got=side.type, extents=extents)


def _check_element(name: str, side: Memory, wanted: dict[str, str]) -> None:
    element = wanted["C" if name == "D" else name]
    if str(side.element) != element:
        raise Invalid(f"operand {name} has elements of type {element} for this atom", got=side.type)


def _check_extents(extents: dict[str, list[Any]], sides: dict[str, Memory]) -> None:
    """Modes after the first must be those of one product: A (M, K), B (N, K), C and D (M, N)."""
    padded = {name: (*modes, 1, 1)[:2] for name, modes in extents.items()}
    (m, k), (n, again), c, d = padded["A"], padded["B"], padded["C"], padded["D"]
    if any(len(modes) > 2 for modes in extents.values()) or c != (m, n) or d != c or again != k:
        raise Invalid(
            "the fragments do not fit each other",
            "A is (V, M, K), B (V, N, K), C and D (V, M, N)",
            **{name: side.text for name, side in sides.items()},
        )


def _extents(side: Memory) -> list[Any]:
    shape = views.outer_of(side.layout).shape
    return [product(mode) for mode in (shape if isinstance(shape, tuple) and shape else (shape,))]


def _product(atom: AtomText, element: str) -> tuple[dict[str, str], dict[str, int]]:
    """The element types of A, B and C, and how many values of a thread one instruction takes of each."""
    if atom.name == "universal":
        _only(atom)
        if element not in ("f16", "bf16", "f32", "f64"):
            raise Invalid("the universal product multiplies floats of 16 to 64 bits", element=element)
        return dict.fromkeys("ABC", element), dict.fromkeys("ABC", 1)
    _only(atom, "shape", "a", "b", "c")
    shape, *types = (atom.parameters.get(name, "") for name in ("shape", "a", "b", "c"))
    form = _FORMS.get((shape, *types))
    if form is None:
        raise Invalid(f"there is no instruction for atom {atom}")
    kinds = {"A": form.a_type, "B": form.b_type, "C": form.c_type}
    layouts = {"A": form.a, "B": form.b, "C": form.c}
    held = {name: int(size(layout, mode=[1])) for name, layout in layouts.items()}
    return {name: _PTX_ELEMENT[kind] for name, kind in kinds.items()}, held
