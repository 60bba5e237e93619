"""The tree that PTX text is parsed into. Types and spaces are spelled as in PTX, without the dot."""

from __future__ import annotations

from dataclasses import dataclass, field

WIDTH = {
    "pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "tf32": 32, "u16x2": 32, "s16x2": 32,
    "b64": 64, "u64": 64, "s64": 64, "f64": 64, "f32x2": 64, "b128": 128, "e4m3": 8, "e5m2": 8, "e4m3x2": 16,
    "e5m2x2": 16, "e4m3x4": 32, "e5m2x4": 32, "ue8m0x2": 16, "e2m1x2": 8, "e2m3x2": 16, "e3m2x2": 16,
}  # fmt: skip
"""Width in bits of each type name (PTX ISA 9.0, sections 5.2.1 to 5.2.3)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a `.loc` directive says that code came from; `caller` for inlined functions."""

    file: str
    line: int
    column: int = 0
    function: str = ""
    caller: Place | None = None


@dataclass(frozen=True, slots=True)
class Reg:
    """A declared register; `name` is unique in its function, `type` as declared."""

    name: str
    type: str

    @property
    def width(self) -> int:
        return WIDTH[self.type]


@dataclass(frozen=True, slots=True)
class Imm:
    """A literal: an int, or a float with `bits` 32 or 64 for `0f`/`0d` spellings."""

    value: int | float
    bits: int = 0


@dataclass(frozen=True, slots=True)
class Sym:
    """The address of a variable or function, plus a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as `%tid.x`; the name has no percent sign."""

    name: str


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes or halves of a register in video instructions: `%r1.b0`, `-%r1.h1`."""

    reg: Reg
    selector: str
    negative: bool = False


@dataclass(frozen=True, slots=True)
class Sink:
    """The bit bucket `_`."""


@dataclass(frozen=True, slots=True)
class Neg:
    """A negated predicate, `!%p1`."""

    reg: Reg


@dataclass(frozen=True, slots=True)
class Pair:
    """Two results, `%p1|%p2`."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Vec:
    """`{a, b, c, d}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Mem:
    """`[base+offset]`; `coords` holds what follows a comma inside the brackets (tensor coordinates)."""

    base: Operand
    offset: int = 0
    coords: tuple[Operand, ...] = ()


Operand = Reg | Imm | Sym | Special | Sink | Neg | Part | Pair | Vec | Mem


@dataclass(slots=True)
class Instruction:
    """One instruction. `op` is the first word, `mods` the words after it, in order."""

    op: str
    mods: tuple[str, ...]
    ops: tuple[Operand, ...]
    line: int
    text: str
    guard: Reg | None = None
    guard_negated: bool = False
    place: Place | None = None
    groups: tuple[tuple[Operand, ...], ...] = ()

    @property
    def opcode(self) -> str:
        return ".".join((self.op, *self.mods))

    @property
    def type(self) -> str:
        """The last type among the modifiers, empty without one."""
        return next((m for m in reversed(self.mods) if m in WIDTH), "")

    @property
    def types(self) -> list[str]:
        return [m for m in self.mods if m in WIDTH]


@dataclass(slots=True)
class Variable:
    """A variable or parameter. `size` in bytes, 0 for an extern array; `init` bytes; `links` (byte offset, symbol)."""

    space: str
    type: str
    name: str
    size: int
    align: int
    line: int
    init: bytes | None = None
    links: list[tuple[int, Sym]] = field(default_factory=list)
    extern: bool = False


@dataclass(slots=True)
class Function:
    """A kernel (`entry`) or device function. `labels` gives the index in `body` that each label precedes."""

    name: str
    entry: bool
    params: list[Variable]
    returns: list[Variable]
    line: int
    body: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    declared_only: bool = True
    unwritten: frozenset[str] = frozenset()
    """Registers that stand for elements of register tensors read unwritten: the compiler says so in comments."""


@dataclass(slots=True)
class Module:
    """A whole PTX text."""

    version: str = ""
    target: tuple[str, ...] = ()
    files: dict[int, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
