"""Rules for `cute.gemm` and `cute.gemm_value`: the loop over M, N and K of a thread's fragments.

A product is one instruction: the words of its fragments, and how to multiply them. The order of the steps over M and
N alternates, so that neighbours share the fragment of A or B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import text_of
from tilewright.ir.atom_text import AtomText, read
from tilewright.layout import size
from tilewright.passes.lowering import LoweringContext, Rules, TensorView
from tilewright.passes.rules.copying import Side, Target, read_word, write_word
from tilewright.passes.rules.fragments import fragment_of, give, made
from tilewright.passes.rules.memory import element_bytes, memory_type

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
Words = list["ir.Value"]


@dataclass(frozen=True)
class Piece:
    """A thread's part of one operand: `words` values of MLIR type `type`, `bits` wide, side by side in the piece."""

    words: int
    type: str
    bits: int


@dataclass(frozen=True)
class Product:
    """One instruction: D = A * B + C on words."""

    a: Piece
    b: Piece
    c: Piece
    multiply: Callable[[Words, Words, Words], Words]


MakeProduct = Callable[[AtomText, Side, LoweringContext], Product]


def lower_gemm(op: ir.Operation, context: LoweringContext, products: Mapping[str, MakeProduct]) -> list[ir.Value]:
    """Lower `gemm` with the product of its atom."""
    d, a, b, c = (context.tensor(operand) for operand in op.operands)
    _multiply(op, d, (a, b, c), (_extent(a, 1), _extent(b, 1), _extent(a, 2)), context, products)
    return []


def lower_gemm_value(
    op: ir.Operation, context: LoweringContext, products: Mapping[str, MakeProduct]
) -> list[ir.Value] | None:
    """Lower `gemm_value` with the product of its atom."""
    a, b, c = (fragment_of(operand, context) for operand in op.operands)
    m, n, k = mlir.ir.DenseI32ArrayAttr(op.attributes["extents"])
    d = made(op)
    _multiply(op, d, (a, b, c), (m, n, k), context, products)
    return give(op, d.fragment(), context)


def _multiply(
    op: ir.Operation,
    d: Target,
    operands: tuple[Side, Side, Side],
    extents: tuple[int, int, int],
    context: LoweringContext,
    products: Mapping[str, MakeProduct],
) -> None:
    """The products of `extents` instructions along M, N and K."""
    atom = read(text_of(op, "atom"))
    if atom.name not in products:
        raise CompileError(
            f"MMA atom {atom.name} has no lowering for this target", hint=f"it has {', '.join(sorted(products))}"
        )
    (a, b, c), (m, n, k) = operands, extents
    product = products[atom.name](atom, a, context)
    sums = {(row, column): _words(c, product.c, row + m * column) for row in range(m) for column in range(n)}
    for step in range(k):
        left = [_words(a, product.a, row + m * step) for row in range(m)]
        right = [_words(b, product.b, column + n * step) for column in range(n)]
        for row, column in _alternating(m, n):
            sums[row, column] = product.multiply(left[row], right[column], sums[row, column])
    for (row, column), words in sums.items():
        _write(d, product.c, row + m * column, words)


def _alternating(m: int, n: int) -> Iterator[tuple[int, int]]:
    for column in range(n):
        rows = range(m) if column % 2 == 0 else range(m - 1, -1, -1)
        yield from ((row, column) for row in rows)


def _extent(view: TensorView, mode: int) -> int:
    shape = view.layout.shape
    return int(size(shape[mode])) if isinstance(shape, tuple) and len(shape) > mode else 1


def _elements(view: Side | Target, piece: Piece) -> int:
    """Elements of a word."""
    return max(piece.bits // (element_bytes(view.info.element) * 8), 1)


def _words(view: Side, piece: Piece, number: int) -> Words:
    each, type_ = _elements(view, piece), types.parse(piece.type)
    first = number * piece.words * each
    return [read_word(view, first + word * each, type_, piece.bits) for word in range(piece.words)]


def _write(view: Target, piece: Piece, number: int, words: Words) -> None:
    each = _elements(view, piece)
    first = number * piece.words * each
    for word, value in enumerate(words):
        write_word(view, first + word * each, value, piece.bits)


def universal(atom: AtomText, view: Side, context: LoweringContext) -> Product:
    """A fused multiply-add of one element."""
    element = memory_type(view.info.element)
    one = Piece(1, str(element), element.width)
    return Product(one, one, one, lambda a, b, c: [build.value("llvm.intr.fma", element, (a[0], b[0], c[0]))])


PRODUCTS: dict[str, MakeProduct] = {"universal": universal}


@rules.lowers("gemm")
def _gemm(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    return lower_gemm(op, context, PRODUCTS)


@rules.lowers("gemm_value")
def _gemm_value(op: ir.Operation, context: LoweringContext) -> list[ir.Value] | None:
    return lower_gemm_value(op, context, PRODUCTS)
