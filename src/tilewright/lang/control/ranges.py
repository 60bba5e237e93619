"""The ranges of loops, and what marks a value as known at compile time."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Iterator
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir.context import active
from tilewright.lang.leaves import is_dynamic
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.tensors.element_limits import MOST_ITERATIONS


class range:
    """`cutlass.range`: the values of a loop of run time; bounds and step may be known only then.

    Args:
        arguments: `stop`, or `start, stop`, or `start, stop, step`, integers of Python or of the language.
        unroll: how many iterations to put into one; 1 forbids unrolling, less leaves it to the compiler.
        unroll_full: leave no loop; the trip count must be known after constant folding.
        prefetch_stages: how many iterations loads run ahead (software pipelining); none for 0 and less.
        pipelining: another name of it.
        vectorize: let neighbouring iterations become vector operations.

    Raises:
        CompileError: bounds are no integers, or `prefetch_stages` is not known at compile time.
    """

    def __init__(
        self,
        *arguments: Any,
        unroll: int = -1,
        unroll_full: bool = False,
        prefetch_stages: int | None = None,
        pipelining: int | None = None,
        vectorize: bool | None = None,
        loc: object = None,
        ip: object = None,
    ) -> None:
        if not 1 <= len(arguments) <= 3:
            raise CompileError(
                f"range takes 1 to 3 arguments, got {len(arguments)}",
                location=user_location(),
                hint="range(stop), range(start, stop) or range(start, stop, step)",
            )
        self.start, self.stop, self.step = _bounds(arguments)
        self.unroll = unroll
        self.unroll_full = unroll_full
        stages = pipelining if prefetch_stages is None else prefetch_stages
        self.prefetch_stages = None if stages is None else _stages(stages)
        self.vectorize = vectorize

    def __iter__(self) -> Iterator[int]:
        """Plain Python: outside tracing, or in code that was not rewritten."""
        if active():
            raise CompileError(
                "a loop of run time in a function that is only traced",
                location=user_location(),
                hint="compile the function with preprocess=True, or use `range_constexpr`",
            )
        return iter(builtins.range(*(operator.index(bound) for bound in (self.start, self.stop, self.step))))


def _bounds(arguments: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    bounds = [_bound(argument) for argument in arguments]
    if len(bounds) == 1:
        return 0, bounds[0], 1
    return bounds[0], bounds[1], bounds[2] if len(bounds) == 3 else 1


def _stages(value: Any) -> int:
    known = value.value if isinstance(value, Numeric) and not is_dynamic(value) else value
    if not hasattr(known, "__index__") or is_dynamic(known):
        raise CompileError(
            "`prefetch_stages` of a range is an integer known at compile time",
            location=user_location(),
            values={"prefetch_stages": f"{type(value).__name__}, known at run time" if is_dynamic(value) else value},
            hint="pass it as `cutlass.Constexpr`",
        )
    return operator.index(known)


def _bound(value: Any) -> Any:
    if isinstance(value, Numeric) or is_dynamic(value):
        return value
    if hasattr(value, "__index__"):
        return operator.index(value)
    raise CompileError(
        f"range takes integers, got {type(value).__name__}",
        location=user_location(),
        values={"argument": value},
        hint="convert it with Int32",
    )


def range_constexpr(*arguments: Any) -> builtins.range:
    """A range that Python runs through while the program is compiled. Its bounds must be known then."""
    if not arguments or len(arguments) > 3:
        raise CompileError(f"range_constexpr takes 1 to 3 arguments, got {len(arguments)}", location=user_location())
    iterations = builtins.range(*(operator.index(_static(argument, "range_constexpr")) for argument in arguments))
    if len(iterations) > MOST_ITERATIONS:
        raise CompileError(
            f"range_constexpr of {len(iterations)} iterations, each of which is written out",
            location=user_location(),
            values={"at most": MOST_ITERATIONS},
            hint="`range` and `cutlass.range` are loops of the program",
        )
    return iterations


def const_expr(value: Any) -> Any:
    """`value`, which must be known at compile time; numbers of the language become Python's."""
    return _static(value, "const_expr")


def _static(value: Any, function: str) -> Any:
    if is_dynamic(value):
        raise CompileError(
            f"`{function}` of a value known only at run time",
            location=user_location(),
            values={"value": f"{type(value).__name__}, known at run time"},
            hint="pass it as `cutlass.Constexpr`, or use a plain `if` or `cutlass.range`",
        )
    return value.value if isinstance(value, Numeric) else value


def dynamic_expr(value: Any) -> Any:
    """Deprecated spelling: the value itself."""
    return value


range_dynamic = range
