"""`if` and conditional expressions on conditions of run time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.lang import leaves
from tilewright.lang.control import aliases, blocks, mutable_state
from tilewright.lang.control.undefined import Undefined, is_undefined
from tilewright.lang.control.variables import MISSING, Slot, Variables, inherited, is_cache

if TYPE_CHECKING:
    from mlir import ir

Arm = Callable[[], Any]


@dataclass
class _Outcome:
    """What an arm returned, and the values and states that it left."""

    result: Any
    values: list[Any]
    states: dict[int, mutable_state.State]


@dataclass
class _Join:
    """What the arms hand on: each target with its structure and the values it has in the two arms."""

    targets: list[Callable[[Any], None]] = field(default_factory=list)
    structures: list[leaves.Structure] = field(default_factory=list)
    arms: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    names: list[str] = field(default_factory=list)

    def add(self, name: str, target: Callable[[Any], None], structure: leaves.Structure, values: Sequence[Any]) -> None:
        self.names.append(name)
        self.targets.append(target)
        self.structures.append(structure)
        for arm, value in zip(self.arms, values, strict=True):
            arm.append(value)


class Branch:
    """One runtime branch with two arms, traced one after the other from the same state."""

    def __init__(
        self,
        condition: ir.Value,
        variables: Variables,
        carried: Sequence[str],
        dead: Sequence[str],
        place: SourceLocation,
    ) -> None:
        self.condition = condition
        self.variables = variables
        self.place = place
        self.carried = variables.places(carried)
        self.dead = variables.places(dead)
        places = [*self.carried, *self.dead]
        self.before = [item.get() for item in places]
        self.watch = mutable_state.Watch(variables, {id(variables.cells[name]) for name in (*carried, *dead)})

    def run(self, then: Arm, otherwise: Arm | None, result: Callable[[Any], None] | None = None) -> None:
        """Trace the arms, then give every place the value that it has after the branch."""
        op = blocks.new_if(self.condition, otherwise is not None)
        try:
            with blocks.provisional(op):
                self._run(op, then, otherwise, result)
        except BaseException:
            self._rollback()
            raise

    def _rollback(self) -> None:
        """As if the arms had not been traced."""
        for item, value in zip((*self.carried, *self.dead), self.before, strict=True):
            item.set(value)
        self.watch.restore({key: self.watch.before[key] for key in self.watch.changed(self.watch.save())})

    def _run(self, op: ir.Operation, then: Arm, otherwise: Arm | None, result: Callable[[Any], None] | None) -> None:
        outcomes = [self._trace(op.regions[0].blocks[0], then)]
        if otherwise is None:  # the arm that does nothing leaves what was there
            outcomes.append(_Outcome(None, self.before, self.watch.before))
        else:
            outcomes.append(self._trace(op.regions[1].blocks[0], otherwise))
        join = _Join()
        if result is not None:
            self._meet(join, "the conditional expression", result, MISSING, [item.result for item in outcomes])
        self._join_variables(join, outcomes)
        self._join_states(join, outcomes)
        self._finish(op, join)

    def _trace(self, block: ir.Block, arm: Arm) -> _Outcome:
        with blocks.inside(block):
            result = arm()
        places = [*self.carried, *self.dead]
        outcome = _Outcome(result, [item.get() for item in places], self.watch.save())
        # The other arm starts from the same state.
        for item, value in zip(places, self.before, strict=True):
            item.set(value)
        self.watch.restore({key: self.watch.before[key] for key in self.watch.changed(outcome.states)})
        return outcome

    def _join_variables(self, join: _Join, outcomes: list[_Outcome]) -> None:
        count = len(self.carried)
        columns = zip(self.carried, self.before, *(item.values for item in outcomes), strict=False)
        for place, before, *values in columns:
            _refuse_container(place.name, _defined(before), values, self.place)
            self._meet(join, place.name, place.set, _defined(before), values)
        for place, *values in zip(self.dead, *(item.values[count:] for item in outcomes), strict=True):
            # Nobody reads it, so nothing is merged: where the arms disagree it has no value.
            if not all(leaves.same(values[0], value) for value in values):
                place.set(MISSING)

    def _meet(self, join: _Join, name: str, target: Callable[[Any], None], before: Any, values: Sequence[Any]) -> None:
        a, b = values
        if a is MISSING and b is MISSING:
            return
        # No error yet: a name that one arm uses for itself is often never read again. Reading it raises.
        for value in values:
            if value is MISSING or is_undefined(value):
                target(value if is_undefined(value) else self._one_sided(name))
                return
        try:
            join.add(name, target, leaves.common(a, b), values)
        except leaves.TypeChange as change:
            if before is MISSING and target is not None and not name.startswith("the "):
                target(self._two_typed(name, change))
                return
            raise self._type_change(name, change, before) from None

    def _one_sided(self, name: str) -> Undefined:
        return Undefined(
            f"`{name}` is used, but only one branch of a runtime `if` gives it a value",
            {"`if`": self.place},
            f"give `{name}` a value before the `if` or in both branches;"
            " a condition of compile time goes into `cutlass.const_expr(...)`",
        )

    def _two_typed(self, name: str, change: leaves.TypeChange) -> Undefined:
        return Undefined(
            f"`{name}` is used, but the branches of a runtime `if` give it different {_kind(change)}",
            {"`if`": self.place, "then": change.expected, "else": change.found, **self.variables.assignments(name)},
            "convert the values to one type in both branches",
        )

    def _type_change(self, name: str, change: leaves.TypeChange, before: Any) -> CompileError:
        subject = name if name.startswith("the ") else f"`{name}{change.path}`"
        values: dict[str, object] = {"then": change.expected, "else": change.found}
        if before is not MISSING:
            values = {"before": leaves.describe(before), **values}
        values |= self.variables.assignments(name)
        return CompileError(
            f"{subject} has different {_kind(change)} in the branches of a runtime `if`",
            location=self.place,
            values=values,
            hint=f"{_remedy(change)}; a condition of compile time goes into `cutlass.const_expr(...)`",
        )

    def _join_states(self, join: _Join, outcomes: list[_Outcome]) -> None:
        then, otherwise = (self.watch.changed(item.states) for item in outcomes)
        for key in self.watch.objects:
            if key not in then and key not in otherwise:
                continue
            name, owner = self.watch.objects[key]
            states = [then.get(key, self.watch.before[key]), otherwise.get(key, self.watch.before[key])]
            self._join_state(join, name, owner, self.watch.before[key], states)

    def _join_state(
        self, join: _Join, name: str, owner: Any, before: mutable_state.State, states: Sequence[mutable_state.State]
    ) -> None:
        kind = mutable_state.kind_of(type(owner))
        if kind == "snapshot":
            raise container_change(name, owner, self.place, "changes")
        if kind in ("list", "dict") and list(states[0]) != list(states[1]):
            raise container_change(name, owner, self.place, keys_change(states[0], states[1]))
        for key in dict.fromkeys((*before, *states[0], *states[1])):
            slot = Slot(slot_name(name, owner, key), owner, key)
            default = inherited(owner, key)
            was, *values = (state.get(key, default) for state in (before, *states))
            if was is MISSING and is_cache(owner, key):
                _keep_constant(slot, values)
            elif not all(leaves.same(was, value) for value in values):
                self._meet(join, slot.name, slot.set, _defined(was), values)

    def _finish(self, op: ir.Operation, join: _Join) -> None:
        if any(not isinstance(structure, leaves.Static) for structure in join.structures):
            blocks.add_else(op)  # results need a yield in both arms
        yielded: list[list[ir.Value]] = []
        for region, values in zip(op.regions, join.arms, strict=True):
            if len(region.blocks):
                with blocks.inside(region.blocks[0]):
                    yielded.append(self._leaves(join, values))
        self._check(join, yielded)
        results: Iterator[ir.Value] = iter(blocks.finish_if(op, yielded))
        merged = [structure.build(results) for structure in join.structures]
        for target, value in zip(join.targets, merged, strict=True):
            target(value)
        for name, structure, value, *arms in zip(join.names, join.structures, merged, *join.arms, strict=True):
            if not isinstance(structure, leaves.Static):
                aliases.note(name, "if", self.place, value, arms)

    def _leaves(self, join: _Join, values: Sequence[Any]) -> list[ir.Value]:
        found: list[ir.Value] = []
        for name, structure, value in zip(join.names, join.structures, values, strict=True):
            try:
                found += structure.values(value)
            except leaves.TypeChange as change:
                raise self._type_change(name, change, MISSING) from None
        return found

    def _check(self, join: _Join, yielded: list[list[ir.Value]]) -> None:
        if len(yielded) < 2:
            return
        for a, b in zip(*yielded, strict=True):
            if a.type != b.type:
                change = leaves.TypeChange(str(a.type), str(b.type))
                raise self._type_change("the values of one object", change, MISSING)


def _defined(value: Any) -> Any:
    """A variable that only some paths gave a value has none."""
    return MISSING if is_undefined(value) else value


def _kind(change: leaves.TypeChange) -> str:
    """In what two values differ: things that are no numbers may differ though their types agree."""
    return "values of compile time" if change.expected == change.found else "types"


def _remedy(change: leaves.TypeChange) -> str:
    if change.expected == change.found:
        return (
            "only numbers, and objects made of them, can change at run time: assign attributes of one object, or make"
            " its class a dataclass or a `@cute.native_struct`"
        )
    return "convert the values to one type, or use a new name"


def slot_name(name: str, owner: Any, key: Any) -> str:
    """The name of an attribute or item for messages."""
    kind = mutable_state.kind_of(type(owner))
    if kind in ("list", "dict"):
        return f"{name}[{key!r}]"
    return f"{name}.{key}" if kind in ("object", "class", "function") else name


def _keep_constant(slot: Slot, values: Sequence[Any]) -> None:
    """A cached attribute made inside the branch lives on when it is a constant, else it is gone."""
    for value in values:
        if value is not MISSING and not leaves.holds_runtime(value):
            slot.set(value)
            return
    slot.set(MISSING)


def _refuse_container(name: str, before: Any, values: Sequence[Any], place: SourceLocation) -> None:
    if not isinstance(before, list | dict | set):
        return
    if any(value is not before and not leaves.same(before, value) for value in values):
        raise container_change(name, before, place, "is bound to another object")


def keys_change(a: mutable_state.State, b: mutable_state.State) -> str:
    """How the items of a container differ where their values do not matter."""
    return "changes the order of its keys" if a.keys() == b.keys() else "changes its length"


def container_change(name: str, value: Any, place: SourceLocation, what: str) -> CompileError:
    """The error of a Python container, array or iterator that a region of run time changes."""
    kind = type(value).__name__
    article = "an" if kind[0] in "aeiou" else "a"
    instead = (
        "else change it, or take its items, outside the region; numbers of run time go into a tensor in registers"
        if mutable_state.kind_of(type(value)) == "snapshot"
        else "else assign single items, or use a tensor in registers"
    )
    return CompileError(
        f"the Python {kind} `{name}` {what} inside a runtime region",
        location=place,
        values={name: f"{article} {kind}, which exists only while the program is compiled"},
        hint=f"if the condition is known at compile time, wrap it in `cutlass.const_expr(...)`; {instead}",
    )
