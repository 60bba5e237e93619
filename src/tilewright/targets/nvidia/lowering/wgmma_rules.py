"""Rules from `cute` to `nvvm` for products of a warpgroup and their accumulators.

Semantics: PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix Instructions". An accumulator is a set of registers that a
statement of inline assembly at the kernel's entry declares, `%acc0_<128>`, and others name: LLVM knows nothing of them,
and the assembler all (docs/decisions/0014).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright.hw.atoms import wgmma
from tilewright.ir import build, mlir, types, vectors
from tilewright.ir.accessors import number_of, text_of
from tilewright.ir.atom_text import AtomText, read
from tilewright.passes.lowering import LoweringContext, Rules, TensorView
from tilewright.passes.rules.copying import read_word
from tilewright.passes.rules.fragments import Fragment, fragment_of, give, machine_element, tensor_or_fragment
from tilewright.targets.nvidia.lowering.matrix_descriptors import Descriptors
from tilewright.targets.nvidia.lowering.rules import use

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
_A_WORDS = 4
_SCALED = ("f16", "bf16", "tf32", "e4m3", "e5m2")
"""Types whose products take a sign for A and one for B."""


def _assembly(text: str, constraints: Sequence[str], operands: Sequence[ir.Value], result: ir.Type | None) -> Any:
    """A statement that stays where it is, in the order of the program."""
    attributes = {
        "asm_string": build.string(text),
        "constraints": build.string(",".join([*constraints, "~{memory}"])),
        "has_side_effects": mlir.ir.UnitAttr.get(),
        "asm_dialect": build.i64(0),
    }
    made = build.emit("llvm.inline_asm", () if result is None else (result,), operands, attributes)
    return None if result is None else made.results[0]


def _places(op: ir.Operation) -> list[int]:
    return list(mlir.ir.DenseI32ArrayAttr(op.attributes["places"]))


def _name(op: ir.Operation, register: int) -> str:
    return f"%acc{number_of(op, 'accumulator')}_{register}"


@rules.lowers("accumulator")
def _accumulator(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    width = types.parse(text_of(op, "element")).width
    registers = f"{_name(op, 0)[:-1]}<{-(-number_of(op, 'count') * width // 32)}>"
    # The emulator marks whole registers: with two elements in each, the first write would not do.
    marked = f" // unwritten {registers}" if width == 32 else ""
    _assembly(f".reg .b32 {registers};{marked}", (), (), None)
    return []


@rules.lowers("accumulator_read")
def _accumulator_read(op: ir.Operation, context: LoweringContext) -> list[ir.Value] | None:
    result, places = op.results[0].type, _places(op)
    if not vectors.is_vector(result):
        return [_read_one(op, places[0], result)]
    element = machine_element(result)
    parts = [_read_one(op, place, element) for place in places]
    return give(op, Fragment(parts, 1, len(parts), element), context)


def _read_one(op: ir.Operation, place: int, type_: ir.Type) -> ir.Value:
    if type_.width == 32:
        letter = "r" if str(type_) == "i32" else "f"
        return _assembly(f"mov.b32 $0, {_name(op, place)};", [f"={letter}"], (), type_)
    halves = ("$0, unused", "unused, $0")[place % 2]
    text = f"{{ .reg .b16 unused; mov.b32 {{{halves}}}, {_name(op, place // 2)}; }}"
    return _bits(_assembly(text, ["=h"], (), types.parse("i16")), type_)


@rules.lowers("accumulator_write")
def _accumulator_write(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    value, places = op.operands[0], _places(op)
    if vectors.is_vector(value.type):
        numbers = fragment_of(value, context).scalars()
    else:
        numbers = [value] * len(places)
    for place, number in zip(places, numbers, strict=True):
        _write_one(op, place, number)
    return []


def _write_one(op: ir.Operation, place: int, value: ir.Value) -> None:
    if value.type.width == 32:
        letter = "r" if str(value.type) == "i32" else "f"
        _assembly(f"mov.b32 {_name(op, place)}, $0;", [letter], (value,), None)
        return
    kept, register = ("$0, high", "low, $0")[place % 2], _name(op, place // 2)
    text = f"{{ .reg .b16 low, high; mov.b32 {{low, high}}, {register}; mov.b32 {register}, {{{kept}}}; }}"
    _assembly(text, ["h"], (_bits(value, types.parse("i16")),), None)


def _bits(value: ir.Value, type_: ir.Type) -> ir.Value:
    return value if value.type == type_ else build.value("llvm.bitcast", type_, (value,))


@rules.lowers("wgmma_fence")
def _fence(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    use("wgmma", "wgmma.fence", context)
    _assembly("wgmma.fence.sync.aligned;", (), (), None)
    return []


@rules.lowers("wgmma_commit")
def _commit(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    use("wgmma", "wgmma.commit_group", context)
    _assembly("wgmma.commit_group.sync.aligned;", (), (), None)
    return []


@rules.lowers("wgmma_wait")
def _wait(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    use("wgmma", "wgmma.wait_group", context)
    _assembly(f"wgmma.wait_group.sync.aligned {number_of(op, 'groups')};", (), (), None)
    return []


@rules.lowers("set_registers")
def _set_registers(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    use("setmaxnreg", "setmaxnreg", context)
    kind = "inc" if text_of(op, "kind") == "increase" else "dec"
    _assembly(f"setmaxnreg.{kind}.sync.aligned.u32 {number_of(op, 'count')};", (), (), None)
    return []


@rules.lowers("wgmma_named")
def _wgmma(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    use("wgmma", "a product of a warpgroup", context)
    (left,), (right,), (accumulate,), metadata = build.groups(op)
    if metadata:
        use("wgmma.sp", "a sparse product of a warpgroup", context)
    products = _Products(op, read(text_of(op, "atom")), accumulate, metadata)
    products.emit(tensor_or_fragment(left, context), context.tensor(right))
    return []


class _Products:
    """The instructions of one operation, in the order K, M, N: those on one accumulator follow each other."""

    def __init__(self, op: ir.Operation, atom: AtomText, accumulate: ir.Value, metadata: Sequence[ir.Value]) -> None:
        self.op = op
        self.atom = atom
        self.metadata = metadata
        self.accumulate = build.value("arith.extui", types.parse("i32"), (accumulate,))
        self.m, self.n, self.k = mlir.ir.DenseI32ArrayAttr(op.attributes["extents"])
        self.places = _places(op)

    def emit(self, a: TensorView | Fragment, b: TensorView) -> None:
        """Build them."""
        one = build.constant(1, types.parse("i32"))
        in_memory = isinstance(a, TensorView) and a.info.space == "smem"
        left: Any = Descriptors(a, self._k_major("a")) if in_memory else _Words(a)  # type: ignore[arg-type]
        right = Descriptors(b, self._k_major("b"))
        for step in range(self.k):
            for row in range(self.m):
                for column in range(self.n):
                    operands = left.of(row, step, self.m), right.of(column, step, self.n)
                    words = self.metadata[row + self.m * step :][:1]
                    self._one(row, column, *operands, words, one if step else self.accumulate, in_memory)

    def _k_major(self, name: str) -> bool:
        return self.atom.parameters[f"{name}_major"] == "k"

    def _one(
        self, row: int, column: int, a: Sequence[ir.Value], b: Sequence[ir.Value], words: Sequence[ir.Value],
        accumulate: ir.Value, in_memory: bool,
    ) -> None:  # fmt: skip
        shape = "m{}n{}k{}".format(*self.atom.parameters["shape"].split("x"))
        sums = ", ".join(self._registers(row + self.m * column))
        first = "$0" if in_memory else f"{{{', '.join(f'${number}' for number in range(_A_WORDS))}}}"
        at = len(a)
        kinds = [self.atom.parameters[name] for name in "cab"]
        name, sparse = ("wgmma.mma_async.sp", f", ${at + 1}, 0") if words else ("wgmma.mma_async", "")
        text = (
            f"{{ .reg .pred p; setp.ne.b32 p, ${at + 1 + len(words)}, 0; {name}.sync.aligned.{shape}.{'.'.join(kinds)} "
            f"{{{sums}}}, {first}, ${at}{sparse}, p{self._modifiers(in_memory)}; }}"
        )
        letters = [*(["l"] if in_memory else ["r"] * _A_WORDS), "l", *("r" for _ in words), "r"]
        _assembly(text, letters, (*a, *b, *words, accumulate), None)

    def _modifiers(self, in_memory: bool) -> str:
        """Signs of A and B, then whether each in shared memory is M- or N-major."""
        kind = self.atom.parameters["a"]
        if kind not in _SCALED:
            return ""
        transposed = [int(not self._k_major(name)) for name in ("ab" if in_memory else "b")]
        return "".join(f", {number}" for number in (1, 1, *(transposed if kind in wgmma.TRANSPOSED else ())))

    def _registers(self, tile: int) -> list[str]:
        """The registers of one instruction's part of the accumulator."""
        each = len(self.places) // (self.m * self.n)
        own = self.places[tile * each : (tile + 1) * each]
        if self.atom.parameters["c"] != "f16":
            return [_name(self.op, place) for place in own]
        return [_name(self.op, place // 2) for place in own[::2]]


class _Words:
    """A in registers: four words of 32 bits for each instruction."""

    def __init__(self, view: TensorView | Fragment) -> None:
        self.view = view
        self.each = max(32 // view.info.element.width, 1)

    def of(self, row: int, step: int, rows: int) -> list[ir.Value]:
        """The operands of the instruction at `row` and `step`."""
        first = (row + rows * step) * _A_WORDS * self.each
        word = types.parse("i32")
        return [read_word(self.view, first + number * self.each, word, 32) for number in range(_A_WORDS)]
