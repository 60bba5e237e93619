"""Steps of one thread: an instruction of a form, constants, the bits of floats, sums in several words, memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tilewright.tools.fuzzing.drawing import Drawing, bits_of, integer, literal
from tilewright.tools.fuzzing.forms import KINDS, Form
from tilewright.tools.fuzzing.program import WIDTH_OF, Step

_REGISTERS_ONLY: Final = re.compile(r".*[su]16x2$|v\w+[24]\.|redux")
_NAN_OF: Final = {"f": "f32", "g": "f64", "e": "f16", "b": "bf16"}
_BITS_OF: Final = (("f", "r"), ("g", "d"), ("e", "h"), ("b", "h"))


def step_of(draw: Drawing, form: Form) -> Step:
    """An instruction of that form, at times predicated."""
    before: list[str] = []
    fixed = bool(_REGISTERS_ONLY.match(form.opcode))
    operands = [_operand(draw, spec, 0 if fixed else n, before) for n, spec in enumerate(form.operands)]
    results = [_result(draw, spec) for spec in form.results]
    written = f"{form.opcode} \t{', '.join([*results, *operands])};"
    if draw.rng.random() < 0.1:
        written = f"@{draw.rng.choice(('', '!'))}{draw.read('p')} {written}"
    return Step((f"{{ {' '.join([*before, written])} }}",) if before else (written,))


def _result(draw: Drawing, spec: str) -> str:
    """A register to write, a vector of them, or two predicates."""
    if "^" in spec:
        return "|".join(draw.writes(spec.replace("^", "")))
    if spec.startswith("{"):
        names = iter(draw.writes(spec.strip("{}").replace("_", "")))
        return "{" + ", ".join("_" if kind == "_" else next(names) for kind in spec.strip("{}")) + "}"
    return draw.write(spec)


def _operand(draw: Drawing, spec: str, place: int, before: list[str]) -> str:
    """An operand; the instructions that bring it into its range go to `before`."""
    if spec.startswith("#"):
        return str(draw.rng.randrange(int(spec[1:])))
    if spec.startswith("{"):
        return "{" + ", ".join(draw.reads(spec.strip("{}"))) + "}"
    if len(spec) == 1:
        return draw.source(spec) if place else draw.read(spec)
    width, name = WIDTH_OF[spec[0]], f"%t{len(before)}"
    if spec.endswith("+"):
        if draw.rng.random() < 0.4:
            return _divisor(draw, width)
        most = (1 << width - 1) - 1
        before.append(
            f".reg .b{width} {name}; and.b{width} \t{name}, {draw.read(spec[0])}, {most};"
            f" or.b{width} \t{name}, {name}, 1;"
        )
        return name
    mask = int(spec[2:]) - 1
    before.append(f".reg .b{width} {name}; and.b{width} \t{name}, {draw.read(spec[0])}, {mask};")
    return name


def _divisor(draw: Drawing, width: int) -> str:
    """A constant to divide by: not 0, nor -1, by which the least number has no quotient."""
    value = integer(width, draw.rng)
    return str(value if value not in (0, -1) else 3)


def constant(draw: Drawing) -> Step:
    """A register becomes a constant."""
    kind = draw.rng.choice([kind for kind in KINDS if kind != "p"])
    bits, shown = bits_of(kind, draw.rng), kind if kind in "fg" else {16: "h", 32: "r", 64: "d"}[WIDTH_OF[kind]]
    return Step((f"mov.b{WIDTH_OF[kind]} \t{draw.write(kind)}, {literal(shown, bits)};",))


def bits(draw: Drawing) -> Step:
    """The bits of a float as an integer: those of a NaN are free, so it becomes a constant."""
    kind, integer_kind = draw.rng.choice(_BITS_OF)
    source, width = draw.read(kind), WIDTH_OF[kind]
    target = draw.write(integer_kind)
    return Step((
        f"{{ .reg .pred %nan; setp.nan.{_NAN_OF[kind]} \t%nan, {source}, {source};"
        f" selp.b{width} \t{target}, 12345, {source}, %nan; }}",
    ))  # fmt: skip


def carry(draw: Drawing) -> Step:
    """Sums, differences or products in several words."""
    type_ = draw.rng.choice(("u32", "s32", "u64", "s64"))
    kind = "r" if type_.endswith("32") else "d"
    first = draw.rng.choice(("add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc"))
    following = {"add.cc": "addc", "sub.cc": "subc", "mad.lo.cc": "madc.hi", "mad.hi.cc": "madc.lo"}[first]
    middle = [f"{following}.cc"] * draw.rng.randrange(2)
    lines = []
    for opcode in (first, *middle, following):
        operands = draw.reads(kind * (3 if opcode.startswith("mad") else 2))
        lines.append(f"{opcode}.{type_} \t{', '.join([draw.write(kind), *operands])};")
    return Step(tuple(lines))


def load(draw: Drawing) -> Step:
    """Integers of the input, of this thread's record or of any by a register."""
    opcode = f"ld.global{draw.rng.choice(('', '.nc', '.ca', '.cg', '.cv', '.L1::no_allocate'))}"
    if opcode == "ld.global.cv" and draw.rng.random() < 0.5:
        opcode = "ld.relaxed.gpu.global"
    type_, kind, size = draw.rng.choice(
        (("u8", "h", 1), ("s8", "r", 1), ("u16", "r", 2), ("s16", "h", 2), ("s16", "d", 2), ("s8", "d", 1),
         ("b32", "r", 4), ("s32", "d", 4), ("u32", "d", 4), ("b64", "d", 8))
    )  # fmt: skip
    vector = draw.rng.choice((1, 1, 2, 4))
    vector = min(vector, KINDS[kind][1] - 1, 2 if size == 8 else 4)
    vector = 2 if vector == 3 else vector
    place = 8 * draw.rng.randrange(48, 60) + (draw.rng.randrange(8 // (size * vector)) * size * vector
                                              if size * vector < 8 else 0)  # fmt: skip
    place -= place % (size * vector)
    targets = draw.writes(kind * vector)
    to = "{" + ", ".join(targets) + "}" if vector > 1 else targets[0]
    written = f"{opcode}{f'.v{vector}' if vector > 1 else ''}.{type_} \t{to}, "
    if draw.rng.random() < 0.5:
        return Step((f"{written}[%record+{place}];",))
    return Step((
        f"{{ .reg .b32 %row; .reg .b64 %at; and.b32 \t%row, {draw.read('r')}, 127;"
        f" mad.wide.u32 \t%at, %row, 512, %source; {written}[%at+{place}]; }}",
    ))  # fmt: skip


def local(draw: Drawing) -> Step:
    """An array of the thread, written at constant places and read at one that a register says, or the reverse."""
    array = draw.name("array")
    lines = [f".local .align 16 .b8 {array}[16]; .reg .b64 %local; .reg .b32 %place;"]
    values = draw.reads("rrrr")
    lines.append(f"st.local.v4.b32 \t[{array}], {{{', '.join(values)}}};")
    lines.append(f"and.b32 \t%place, {draw.read('r')}, 15; cvt.u64.u32 \t%local, %place;")
    lines.append(f"{{ .reg .b64 %start; mov.u64 \t%start, {array}; add.s64 \t%local, %start, %local; }}")
    if draw.rng.random() < 0.5:
        lines.append(f"st.local.u8 \t[%local], {draw.read('r')};")
        lines.append(f"ld.local.b32 \t{draw.write('r')}, [{array}+{4 * draw.rng.randrange(4)}];")
        lines.append(f"ld.local.b64 \t{draw.write('d')}, [{array}+{8 * draw.rng.randrange(2)}];")
    else:
        lines.append(f"ld.local.{draw.rng.choice(('u8', 's8'))} \t{draw.write('r')}, [%local];")
    return Step((f"{{ {' '.join(lines)} }}",))


STEPS: Final[tuple[Callable[[Drawing], Step], ...]] = (constant, bits, carry, load, local)
"""Steps that are no single instruction."""
