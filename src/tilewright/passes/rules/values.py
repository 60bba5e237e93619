"""Rules for values in registers: folds over vectors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tilewright.ir import build, mlir
from tilewright.ir.accessors import text_of
from tilewright.ir.vectors import extract
from tilewright.passes.lowering import LoweringContext, Rules
from tilewright.passes.rules.memory import join

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()

# Kind of a fold (operation and i, u or f) to the operation that combines two values.
COMBINE = {
    "addi": "arith.addi", "addu": "arith.addi", "addf": "arith.addf",
    "muli": "arith.muli", "mulu": "arith.muli", "mulf": "arith.mulf",
    "maxi": "arith.maxsi", "maxu": "arith.maxui", "maxf": "arith.maxnumf",
    "mini": "arith.minsi", "minu": "arith.minui", "minf": "arith.minnumf",
    "andi": "arith.andi", "andu": "arith.andi",
    "ori": "arith.ori", "oru": "arith.ori",
    "xori": "arith.xori", "xoru": "arith.xori",
}  # fmt: skip


@rules.lowers("reduce")
def _reduce(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    value, init = op.operands
    shape = list(mlir.ir.DenseI32ArrayAttr(op.attributes["shape"]))
    folded = list(mlir.ir.DenseI32ArrayAttr(op.attributes["profile"]))
    combine = combiner(text_of(op, "kind"), _flags(op))
    results = []
    for indices in _groups(shape, folded):
        parts = [extract(value, index) for index in indices]
        results.append(combine(tree(parts, combine), init))
    result = op.results[0].type
    return results if not isinstance(result, mlir.ir.VectorType) else [join(results, 1, result)]


def _flags(op: ir.Operation) -> dict[str, ir.Attribute] | None:
    return {"fastmath": op.attributes["fastmath"]} if "fastmath" in op.attributes else None


def combiner(
    kind: str, attributes: Mapping[str, ir.Attribute] | None = None
) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """The two-operand function of a fold, whose operations have these attributes."""
    name = COMBINE[kind]
    return lambda left, right: build.value(name, left.type, (left, right), attributes)


def tree(parts: Sequence[ir.Value], combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """Fold neighbours pairwise: short chains, and for floats an error that grows with log n."""
    items = list(parts)
    while len(items) > 1:
        pairs = [combine(items[n], items[n + 1]) for n in range(0, len(items) - 1, 2)]
        items = pairs + items[len(pairs) * 2 :]
    return items[0]


def _groups(shape: list[int], folded: list[int]) -> list[list[int]]:
    """Colexicographic element indices, grouped by the coordinates of the modes that stay."""
    strides = list(itertools.accumulate([1, *shape[:-1]], lambda a, b: a * b))
    kept = [mode for mode, fold in enumerate(folded) if not fold]
    gone = [mode for mode, fold in enumerate(folded) if fold]

    def offsets(modes: list[int]) -> list[int]:
        result = [0]
        for mode in modes:
            result = [base + index * strides[mode] for index in range(shape[mode]) for base in result]
        return result

    return [[base + inner for inner in offsets(gone)] for base in offsets(kept)]
