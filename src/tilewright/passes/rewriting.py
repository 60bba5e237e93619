"""Passes made of rules: `Rewrite`, whose methods marked `@rule(names)` say what stands for an operation.

    class DoubleByAdding(Rewrite):
        name = "double-by-adding"

        @rule("arith.mulf")
        def double(self, op, rewriter):
            x, factor = op.operands
            if is_constant(factor, 2):
                return rewriter.build("arith.addf", x.type, x, x)

What a rule builds comes before the operation, with its location. Greedy passes (the default) begin again until no rule
changes anything; with `greedy = False` each operation that was there at the beginning is visited once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from tilewright.base.errors import PassError, TilewrightError
from tilewright.ir import build, mlir
from tilewright.ir.context import located
from tilewright.ir.erasing import checked_erasing, erase_unused
from tilewright.ir.locations import source_location
from tilewright.ir.walk import address, operations
from tilewright.passes.pass_errors import raised_at, reason_of
from tilewright.passes.pipeline import Pass

if TYPE_CHECKING:
    from mlir import ir

Rule = Callable[["ir.Operation", "Rewriter"], Any]
"""`rule(op, rewriter)` gives the value that stands for the result of `op` (a list for several results), which is then
erased; True where it changed the program in another way; None where it leaves `op` alone."""


def rule(*names: str) -> Callable[[Any], Any]:
    """Decorator: the function is a rule for operations of these names; `arith.*` are all of a dialect, `*` are all."""
    if not names or not all(isinstance(name, str) for name in names):
        raise PassError("a rule needs the names of its operations", hint='write @rule("arith.mulf", "arith.muli")')

    def mark(function: Any) -> Any:
        function.__tw_rule__ = names
        return function

    return mark


class Rewriter:
    """What a rule builds with. Operations go before the one that the rule was called for, or where `at` says."""

    def __init__(self) -> None:
        self.made: list[ir.Operation] = []

    def build(self, name: str, results: Any, /, *operands: Any, **attributes: Any) -> Any:
        """Make an operation: its result, a list of them for a list of types, None for none.

        A list stands for a group of operands. Attributes may be numbers, text, Booleans and lists of integers.
        """
        made = build.operation(name, results, operands, attributes)
        self.made.append(made)
        if results is None:
            return None
        return list(made.results) if isinstance(results, Sequence) else made.results[0]

    def constant(self, number: float, type_: ir.Type) -> ir.Value:
        """A number, or a vector of equal ones."""
        is_vector = isinstance(type_, mlir.ir.VectorType)
        return build.splat(number, type_) if is_vector else build.constant(number, type_)

    def replace(self, op: ir.Operation, *values: ir.Value) -> None:
        """Let `values` stand for the results of `op` wherever they are used, and erase it.

        Raises:
            PassError: there are not as many values as results, or one has another type.
        """
        results = list(op.results)
        made = {address(item) for item in self.made}
        if any(address(use.owner.operation) in made for result in results for use in result.uses):
            raise PassError(
                f"{op.name} is replaced by a value that is made from its own result",
                hint="rewriter.wrap(op, change) keeps the operation and lets its users see change(result)",
            )
        self.made += [use.owner.operation for result in results for use in result.uses]
        if [value.type for value in values] != [result.type for result in results]:
            raise PassError(
                f"{op.name} is replaced by values of other types",
                values={
                    "its results": ", ".join(str(item.type) for item in results) or "none",
                    "the values": ", ".join(str(item.type) for item in values) or "none",
                },
                hint="convert the value first; an operation without results is erased: rewriter.erase(op)",
            )
        for result, value in zip(results, values, strict=True):
            result.replace_all_uses_with(value)
        op.erase()

    def wrap(self, op: ir.Operation, change: Callable[[ir.Value], ir.Value]) -> bool:
        """Let all that uses the result of `op` use `change(result)`, which is built behind `op`. Gives True, as a rule
        does that has changed something.

        Raises:
            PassError: `op` has not one result, or `change` gives a value of another type.
        """
        if len(op.results) != 1:
            raise PassError(
                f"{op.name} has {len(op.results)} results, and one is wrapped", hint="name other operations"
            )
        result = op.results[0]
        before = list(result.uses)
        with self.at(after=op):
            value = change(result)
        if value.type != result.type:
            raise PassError(
                f"the result of {op.name} is changed to another type", values={"was": result.type, "is": value.type}
            )
        for use in before:
            use.owner.operation.operands[use.operand_number] = value
        return True

    def erase(self, op: ir.Operation) -> None:
        """Erase an operation whose results nothing uses."""
        op.erase()

    @contextmanager
    def at(self, *, before: ir.Operation | None = None, after: ir.Operation | None = None) -> Iterator[None]:
        """Inside the block operations go before, or after, another one."""
        if after is not None:
            with mlir.ir.InsertionPoint.after(after):
                yield
            return
        with mlir.ir.InsertionPoint(before):
            yield


class Rewrite(Pass):
    """Base of passes that are made of rules: methods marked `@rule(names)` give what replaces an operation.

    Greedy passes (the default) begin again until no rule changes anything; with `greedy = False` each operation that
    was there at the beginning is visited once.
    """

    greedy: ClassVar[bool] = True

    def run(self, module: ir.Operation) -> None:
        rules = [(names, getattr(self, method)) for method, names in _marked(type(self)).items()]
        if not rules:
            raise PassError(f"pass {self.name} has no rules", hint='mark methods with @rule("arith.mulf")')
        self.changes = _rewrite(module, _Driver(rules, None, self.greedy))


def _marked(cls: type) -> dict[str, tuple[str, ...]]:
    """The methods of a class that are rules, with the names of their operations: as written, those of bases first."""
    found = [(name, item) for base in reversed(cls.__mro__) for name, item in vars(base).items()]
    return {name: getattr(item, _MARK) for name, item in found if hasattr(item, _MARK)}


_MARK = "__tw_rule__"
_MOST_PER_OPERATION, _MOST_AT_LEAST, _MOST_SWEEPS = 8, 1000, 100


def rewrite(root: ir.Operation, rules: Sequence[Rule], *, greedy: bool = True, limit: int | None = None) -> int:
    """Apply rules inside `root`; the number of changes. Arithmetic that is then unused is erased.

    Raises:
        PassError: a rule failed, or there were more than `limit` changes (8 for each operation, and 1000).
    """
    return _rewrite(root, _Driver([(getattr(item, _MARK, ("*",)), item) for item in rules], limit, greedy))


def _rewrite(root: ir.Operation, driver: _Driver) -> int:
    while driver.sweep(root) and driver.greedy:
        pass
    if driver.changes:
        erase_unused(root)
    return driver.changes


class _Driver:
    """Visits operations, and counts what rules change.

    A greedy one visits what a change has made, and what uses it, in the same sweep. Further sweeps find what rules
    made by other means than the rewriter's.
    """

    def __init__(self, rules: list[tuple[tuple[str, ...], Rule]], limit: int | None, greedy: bool) -> None:
        self.rules = rules
        self.limit = limit
        self.greedy = greedy
        self.changes = self.sweeps = self.erased = 0
        self.by_name: dict[str, list[Rule]] = {}
        self.pending: dict[int, ir.Operation] = {}  # by address, the next one last
        self.gone: set[int] = set()  # what the rule under way has erased
        self.rewriter = Rewriter()

    def sweep(self, root: ir.Operation) -> bool:
        """Visit each operation that is there now, inner ones after the one around them; True where one changed."""
        found = operations(root)[1:]
        if self.limit is None:
            self.limit = _MOST_PER_OPERATION * len(found) + _MOST_AT_LEAST
        self.pending = {address(op): op for op in reversed(found) if self._rules_of(op.name)}
        self.sweeps += 1
        before = self.changes
        with checked_erasing(self._forget):
            while self.pending:
                self._visit(self.pending.popitem()[1])
        return self.changes > before

    def _forget(self, erased: ir.Operation) -> None:
        gone = {address(op) for op in operations(erased.operation)}
        for key in gone:
            self.pending.pop(key, None)
        self.rewriter.made = [op for op in self.rewriter.made if address(op) not in gone]
        self.gone |= gone

    def _rules_of(self, name: str) -> list[Rule]:
        found = self.by_name.get(name)
        if found is None:
            wanted = {"*", name, f"{name.partition('.')[0]}.*"}
            found = self.by_name[name] = [item for names, item in self.rules if wanted & set(names)]
        return found

    def _visit(self, op: ir.Operation) -> None:
        for item in self._rules_of(op.name):
            before = self.changes
            location = op.location
            self.rewriter.made = []
            self.gone = set()
            with mlir.ir.InsertionPoint(op), location, located(lambda location=location: location):  # type: ignore[misc]
                self._apply(item, op, location)
            if self.changes > before:  # and `op` may be gone
                if self.greedy:
                    self.pending.update(
                        (address(made), made) for made in self.rewriter.made if self._rules_of(made.name)
                    )
                return

    def _apply(self, item: Rule, op: ir.Operation, location: ir.Location) -> None:
        name, key = op.name, address(op)
        try:
            answer = item(op, self.rewriter)
            if (answer is None or answer is False) and not self.gone:
                return
            if answer is not None and not isinstance(answer, bool):
                if key in self.gone:
                    raise PassError(
                        f"rule {_name(item)} erases {name} and gives a value for it",
                        hint="give the value, or replace it",
                    )
                self.rewriter.replace(op, *_values(answer))
        except TilewrightError as error:
            error.location = error.location or source_location(location)
            raise
        except Exception as error:
            values = {"reason": reason_of(error)} | raised_at(error)
            raise PassError(
                f"rule {_name(item)} failed at {name}", location=source_location(location), values=values
            ) from error
        self.changes += 1
        if self.changes > (self.limit or 0) or self.sweeps > _MOST_SWEEPS:
            raise PassError(
                f"rule {_name(item)} finds no end: {self.changes} changes, the last of {name}",
                location=source_location(location),
                hint="a greedy rule must not match what it has made; with `greedy = False` in the pass each operation"
                " is visited once",
            )


def _values(answer: Any) -> list[ir.Value]:
    """What a rule gave, as values: a value, several, or an operation."""
    if hasattr(answer, "results"):
        return list(answer.results)
    found = list(answer) if isinstance(answer, Sequence) else [answer]
    for value in found:
        if not isinstance(value, mlir.ir.Value):
            raise PassError(
                f"a rule gives values, not {type(value).__name__}",
                hint="return what rewriter.build gave, True after another change, or None to leave the operation alone",
            )
    return found


def _name(item: Rule) -> str:
    return str(getattr(item, "__qualname__", item)).rpartition("<locals>.")[2]
