"""Control flow for code that is not rewritten: `if_generate`, `while_generate` and `for_generate` of CuTe DSL, and
`with run_if(condition): ...` of the language's own code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Int32, Numeric, as_numeric


def if_generate(
    cond: Any,
    then_body: Callable[..., Any],
    else_body: Callable[..., Any] | None = None,
    input_args: Sequence[Any] | None = None,
    return_types: Sequence[type[Numeric]] | None = None,
    *,
    loc: object = None,
    ip: object = None,
) -> Any:
    """Run `then_body(*input_args)` where `cond` holds, else `else_body`.

    With `return_types` both give numbers of these types; the result is one number, or a list of several.

    Raises:
        CompileError: there are return types and no `else_body`, or a body gives another number of values.
    """
    types = list(return_types or ())
    if types and else_body is None:
        raise CompileError("if_generate with return_types needs an else_body", location=user_location())
    condition = Boolean(as_numeric(cond)).ir_value()
    branch = build.emit("scf.if", [cls.mlir_type for cls in types], (condition,), regions=2)
    for region, body in zip(branch.regions, (then_body, else_body), strict=True):
        if body is None:
            continue
        with mlir.ir.InsertionPoint(region.blocks.append()):
            build.emit("scf.yield", (), _converted(body(*(input_args or ())), types))
    found = [cls.from_ir(result) for cls, result in zip(types, branch.results, strict=True)]
    return found[0] if len(found) == 1 else found or None


def _converted(values: Any, types: Sequence[type[Numeric]]) -> list[Any]:
    if not types:
        return []
    items = list(values) if isinstance(values, (tuple, list)) else [values]
    if len(items) != len(types):
        raise CompileError(
            "a body gives another number of values than return_types",
            location=user_location(),
            values={"return_types": len(types), "given": len(items)},
        )
    return [cls(as_numeric(item)).ir_value() for cls, item in zip(types, items, strict=True)]


class _Loop:
    """A loop whose body is the block of a `with`; `yield_out` ends the body."""

    def __init__(self, operation: Any, block: Any, results: list[type[Numeric]]) -> None:
        self._operation = operation
        self._block = block
        self._types = results
        self._point: Any = None

    def __enter__(self) -> tuple[Any, ...]:
        self._point = mlir.ir.InsertionPoint(self._block)
        self._point.__enter__()
        _loops.append(self)
        return tuple(as_numeric(argument) for argument in self._block.arguments)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        _loops.pop()
        self._point.__exit__(kind, error, traceback)
        operations = list(self._block.operations)
        if kind is None and (not operations or operations[-1].operation.name != "scf.yield"):
            raise CompileError("the body of a loop ends with yield_out", location=user_location())

    def end(self, values: Sequence[Any]) -> None:
        build.emit("scf.yield", (), _converted(list(values), self._types))

    @property
    def results(self) -> list[Any]:
        """The values after the loop."""
        return [cls.from_ir(value) for cls, value in zip(self._types, self._operation.results, strict=True)]


_loops: list[_Loop] = []


def while_generate(inputs: Sequence[Any], cond: Callable[..., Any], *, loc: object = None, ip: object = None) -> _Loop:
    """A loop as a `with`: the body, which ends with `yield_out([a, b])`, repeats while `cond(a, b)` holds."""
    numbers = [as_numeric(item) for item in inputs]
    types = [type(number) for number in numbers]
    machine = [cls.mlir_type for cls in types]
    loop = build.emit("scf.while", machine, [number.ir_value() for number in numbers], regions=2)
    places = [loop.location] * len(machine)
    before, after = (region.blocks.append(*machine, arg_locs=places) for region in loop.regions)
    with mlir.ir.InsertionPoint(before):
        now = [cls.from_ir(argument) for cls, argument in zip(types, before.arguments, strict=True)]
        holds = Boolean(as_numeric(cond(*now))).ir_value()
        build.emit("scf.condition", (), (holds, *before.arguments))
    return _Loop(loop, after, types)


def for_generate(
    start: Any, stop: Any = None, step: Any = 1, iter_args: Sequence[Any] | None = None, *, loc: object = None,
    ip: object = None, **_: object,
) -> _Loop:  # fmt: skip
    """A counted loop as a `with` that gives the index and `iter_args`; the body ends with `yield_out`."""
    if stop is None:
        start, stop = 0, start
    numbers = [as_numeric(item) for item in iter_args or ()]
    types = [type(number) for number in numbers]
    machine = [cls.mlir_type for cls in types]
    bounds = [Int32(as_numeric(item)).ir_value() for item in (start, stop, step)]
    loop = build.emit("scf.for", machine, [*bounds, *(number.ir_value() for number in numbers)], regions=1)
    arguments = [Int32.mlir_type, *machine]
    block = loop.regions[0].blocks.append(*arguments, arg_locs=[loop.location] * len(arguments))
    return _Loop(loop, block, types)


def yield_out(args: Sequence[Any] = (), *, loc: object = None, ip: object = None) -> None:
    """End the body of the innermost `while_generate` or `for_generate`: the values for the next iteration."""
    if not _loops:
        raise CompileError(
            "yield_out outside a loop", location=user_location(), hint="use it in a `with while_generate`"
        )
    _loops[-1].end(args)


def not_(value: Any, *, loc: object = None, ip: object = None) -> Boolean:
    """`not value`."""
    return ~Boolean(as_numeric(value))


def and_(*values: Any, loc: object = None, ip: object = None) -> Boolean:
    """True when all values are."""
    result = Boolean(as_numeric(values[0]))
    for value in values[1:]:
        result = result & Boolean(as_numeric(value))
    return result


def or_(*values: Any, loc: object = None, ip: object = None) -> Boolean:
    """True when some value is."""
    result = Boolean(as_numeric(values[0]))
    for value in values[1:]:
        result = result | Boolean(as_numeric(value))
    return result


def select_(condition: Any, left: Any, right: Any, *, loc: object = None, ip: object = None) -> Numeric:
    """`left` where the condition holds, else `right`, in their common type; both are computed."""
    a, b = as_numeric(left), as_numeric(right)
    cls = type(a) if type(a) is type(b) else type(a + b)
    return cls.from_ir(
        build.value(
            "arith.select",
            cls.mlir_type,
            (Boolean(as_numeric(condition)).ir_value(), cls(a).ir_value(), cls(b).ir_value()),
        )
    )


class run_if:
    """What the block builds runs where `condition` holds. It gives no values to the code after it."""

    def __init__(self, condition: Any) -> None:
        self._condition = Boolean(as_numeric(condition)).ir_value()
        self._inside: Any = None

    def __enter__(self) -> None:
        guard = build.emit("scf.if", (), (self._condition,), regions=2)
        self._inside = mlir.ir.InsertionPoint(guard.regions[0].blocks.append())
        self._inside.__enter__()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            build.emit("scf.yield")
        self._inside.__exit__(kind, error, traceback)
