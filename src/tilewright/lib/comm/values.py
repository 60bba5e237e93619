"""What a collective is given: a number, a vector, or several of them, which share its barriers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.numbers.numeric import Numeric, as_numeric, is_number
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.lib.comm.folds import Fold, fold_of
from tilewright.lib.comm.places import caller

Rebuild = Callable[[list[Numeric]], Any]


def taken_apart(x: Any) -> tuple[list[Numeric], Rebuild]:
    """The numbers of `x`, and what makes such an object of as many others.

    Raises:
        CompileError: `x` is, or has in it, something else than numbers, vectors, tuples and lists.
    """
    if isinstance(x, tuple | list):
        parts = [taken_apart(item) for item in x]
        numbers = [number for found, _ in parts for number in found]
        counts = [len(found) for found, _ in parts]

        def rebuild(results: list[Numeric]) -> Any:
            source = iter(results)
            made = [make([next(source) for _ in range(count)]) for count, (_, make) in zip(counts, parts, strict=True)]
            return type(x)(made)

        return numbers, rebuild
    if isinstance(x, TensorSSA):
        return list(x), lambda results: TensorSSA.from_elements(results).reshape(x.shape)
    if not is_number(x):
        raise CompileError(
            f"a collective takes numbers, not a {type(x).__name__}", location=caller(),
            hint="give a number, a vector (TensorSSA), or a tuple of them; of a tensor load what the thread holds: "
            "tensor[i], tensor.load()",
        )  # fmt: skip
    return [as_numeric(x)], lambda results: results[0]


def folds_of(x: Any, op: Any, numbers: Sequence[Numeric]) -> list[Fold]:
    """The fold of each number. `op` is one for all, or where `x` is a tuple one for each of its items.

    Raises:
        CompileError: there are more or fewer operations than items.
    """
    if not isinstance(op, tuple | list):
        return [fold_of(op, type(number)) for number in numbers]
    if not isinstance(x, tuple | list) or len(op) != len(x):
        raise CompileError(
            f"{len(op)} operations for {len(x) if isinstance(x, tuple | list) else 1} values", location=caller(),
            hint="give one operation for all, or one for each value of a tuple",
        )  # fmt: skip
    return [fold_of(kind, type(number)) for kind, item in zip(op, x, strict=True) for number in taken_apart(item)[0]]
