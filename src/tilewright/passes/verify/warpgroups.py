"""Verifiers of products of a warpgroup and of their accumulators."""

from __future__ import annotations

from tilewright.base.errors import LayoutError
from tilewright.hw.atoms import wgmma
from tilewright.ir import atom_text
from tilewright.ir.atom_text import AtomText
from tilewright.passes.verify.operation import Invalid, Memory, OpSummary, tensor, tensor_or_fragment, vector_of
from tilewright.passes.verify.table import verifies

_ELEMENTS = {
    "f16": "f16", "bf16": "bf16", "tf32": "f32", "f32": "f32", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "s8": "i8",
    "u8": "i8", "s32": "i32",
}  # fmt: skip
_MAJORS = ("k", "mn")
_REGISTERS = range(24, 257, 8)


@verifies("wgmma")
def _wgmma(op: OpSummary) -> None:
    (d,), (a,), (b,), _, metadata = op.groups
    atom, (m, n, k) = _atom(op)
    sums = tensor(d)
    if sums.space != "rmem" or str(sums.element) != _ELEMENTS[atom.parameters["c"]]:
        raise Invalid("the accumulator lies in registers, of the atom's type", accumulator=d, atom=atom)
    if sums.count("an accumulator") % (m * n // wgmma.WARPGROUP):
        raise Invalid("the accumulator holds whole instructions", accumulator=sums.text, atom=atom)
    _operand("A", tensor_or_fragment(a), atom, m * k // _packed(atom))
    _operand("B", tensor(b), atom, n * k)
    if bool(metadata) != (_packed(atom) > 1):
        raise Invalid("a sparse A has words, and no other", words=len(metadata), atom=atom)


@verifies("wgmma_named")
def _wgmma_named(op: OpSummary) -> None:
    (a,), (b,), _, metadata = op.groups
    atom, (m, n, k) = _atom(op)
    extents = op.numbers("extents")
    if len(extents) != len("mnk") or min(extents) < 1:
        raise Invalid("extents are the instructions along M, N and K", extents=extents)
    if len(_places(op)) != m * n // wgmma.WARPGROUP * extents[0] * extents[1]:
        raise Invalid("places are the elements of all instructions", places=len(op.numbers("places")), extents=extents)
    _operand("A", tensor_or_fragment(a), atom, m * k // _packed(atom))
    _operand("B", tensor(b), atom, n * k)
    if len(metadata) != (extents[0] * extents[2] if _packed(atom) > 1 else 0):
        raise Invalid("a sparse A has a word for each instruction along M and K", words=len(metadata), extents=extents)


def _packed(atom: AtomText) -> int:
    """Elements along K for each that A holds."""
    return 2 if "sparse" in atom.parameters else 1


def _operand(name: str, side: Memory, atom: AtomText, tile: int) -> None:
    if str(side.element) != _ELEMENTS[atom.parameters[name.lower()]]:
        raise Invalid(f"operand {name} has the elements of the atom", got=side.type, atom=atom)
    if side.space not in (("smem", "rmem") if name == "A" else ("smem",)):
        raise Invalid(f"operand {name} lies in shared memory{', or in registers' * (name == 'A')}", got=side.type)
    each = tile if side.space == "smem" else tile // wgmma.WARPGROUP
    if side.count("an operand") % each:
        raise Invalid(f"operand {name} holds whole tiles of an instruction", got=side.text, takes=each)


def _atom(op: OpSummary) -> tuple[AtomText, tuple[int, int, int]]:
    text = op.text("atom")
    try:
        atom = atom_text.read(text)
        shape = tuple(int(extent) for extent in atom.parameters["shape"].split("x"))
        given = {name: atom.parameters[name] for name in ("a", "b", "c", "a_major", "b_major")}
    except (ValueError, KeyError) as error:
        raise Invalid(f"there is no atom {text!r}", "wgmma{shape=64x128x16,a=f16,b=f16,c=f32,...}") from error
    if atom.name != "wgmma" or str(atom) != text or not {given["a_major"], given["b_major"]} <= set(_MAJORS):
        raise Invalid(f"there is no atom {text!r}", "wgmma{shape=64x128x16,a=f16,b=f16,c=f32,...}")
    try:
        wgmma.check_form(given["a"], given["b"], given["c"], shape, _packed(atom) > 1)  # type: ignore[arg-type]
        for name in "ab":
            wgmma.check_major(given[name], given[f"{name}_major"] == "k", name.upper())
    except LayoutError as error:
        raise Invalid(error.message, error.hint or "", atom=text) from error
    return atom, shape  # type: ignore[return-value]


def _places(op: OpSummary) -> list[int]:
    places = op.numbers("places")
    if not places or min(places) < 0 or len(set(places)) != len(places):
        raise Invalid("places are different elements of the accumulator", places=places)
    if op.number("accumulator") < 0:
        raise Invalid("accumulators count from 0", accumulator=op.number("accumulator"))
    return places


@verifies("accumulator")
def _accumulator(op: OpSummary) -> None:
    if op.number("accumulator") < 0 or op.number("count") < 1:
        raise Invalid("an accumulator has a number and elements", count=op.number("count"))
    op.one_of("element", ("f16", "f32", "i32"))


@verifies("accumulator_read")
def _read(op: OpSummary) -> None:
    _, length = vector_of(op.results[0])
    if max(length, 1) != len(_places(op)):
        raise Invalid("the result has a number for each place", result=op.results[0])


@verifies("accumulator_write")
def _write(op: OpSummary) -> None:
    value = op.groups[0][0]
    _, length = vector_of(value)
    if length not in (0, len(_places(op))):
        raise Invalid("the value has a number for each place, or is one number for all", value=value)


@verifies("wgmma_fence", "wgmma_commit")
def _nothing(op: OpSummary) -> None:
    """They have no operands."""


@verifies("wgmma_wait")
def _wait(op: OpSummary) -> None:
    if op.number("groups") < 0:
        raise Invalid("the number of unfinished groups is negative", groups=op.number("groups"))


@verifies("set_registers")
def _set_registers(op: OpSummary) -> None:
    op.one_of("kind", ("increase", "decrease"))
    if op.number("count") not in _REGISTERS:
        raise Invalid("the registers of a thread are a multiple of 8 from 24 to 256", count=op.number("count"))
