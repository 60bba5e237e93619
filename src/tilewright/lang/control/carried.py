"""What a loop carries from turn to turn, as leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.lang import leaves
from tilewright.lang.control import watch
from tilewright.lang.control.branch import container_change, slot_name
from tilewright.lang.control.carriers import MISSING, Place, Slot, Variables
from tilewright.lang.control.undefined import Undefined, is_undefined

if TYPE_CHECKING:
    from mlir import ir


class Carried:
    """One thing that a loop carries: a place, or an object that changes in place."""

    name: str
    structure: leaves.Structure

    def __init__(self, name: str, before: Any) -> None:
        self.name = name
        self.before = before
        self.structure = leaves.structure_of(before)

    def initial(self) -> list[ir.Value]:
        return self.structure.values(self.before)

    def enter(self, values: Iterator[ir.Value]) -> None:
        """Take the values at the start of a turn."""
        self._put(self.structure.build(values))

    def settle(self, results: Sequence[ir.Value], changed: Sequence[bool]) -> None:
        """Take the values after the loop."""
        self._put(leaves.settle(self.structure, self.before, results, changed))

    def leave(self) -> list[ir.Value]:
        """The values at the end of a turn."""
        return self.structure.values(self._take())

    def restore(self) -> None:
        """Nothing changed: have the value from before the loop back."""
        self._put(self.before)

    def _put(self, value: Any) -> None:
        raise NotImplementedError

    def _take(self) -> Any:
        raise NotImplementedError


class CarriedPlace(Carried):
    """A variable, attribute or item."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.name, place.get())
        self.place = place

    def _put(self, value: Any) -> None:
        self.place.set(value)

    def _take(self) -> Any:
        return self.place.get()


class CarriedState(Carried):
    """An object of the DynamicExpression protocol that methods may change: all its names see the change."""

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name, value)
        self.value = value
        self.state = watch.state_of(value)
        self.entered: watch.State = {}

    def enter(self, values: Iterator[ir.Value]) -> None:
        super().enter(values)
        self.entered = watch.state_of(self.value)

    def restore(self) -> None:
        watch.set_state(self.value, self.state)

    def _put(self, value: Any) -> None:
        if value is not self.value:
            _update(self.value, value)

    def _take(self) -> Any:
        return self.value

    def static_change(self) -> str | None:
        """The name of an attribute of compile time that a turn changed, if there is one."""
        now = watch.state_of(self.value)
        for key, entered in self.entered.items():
            later = now.get(key)
            if leaves.is_literal(entered) and leaves.is_literal(later) and not leaves.same(entered, later):
                return slot_name(self.name, self.value, key)
        return None


def _update(old: Any, new: Any) -> None:
    """Give `old` the values of `new`; state objects inside keep their identity too, attributes of Python stay."""
    state = watch.state_of(old)
    for key, value in watch.state_of(new).items():
        inner = state.get(key)
        if type(inner) is type(value) and leaves.has_protocol(inner) and watch.kind_of(type(inner)) == "object":
            _update(inner, value)
        elif key not in state or leaves.holds_runtime(value):
            state[key] = value
    watch.set_state(old, state)


class LoopState:
    """All that a loop carries, and what its body must leave alone."""

    def __init__(
        self,
        kind: str,
        place: SourceLocation,
        variables: Variables,
        carried: Sequence[str],
        dead: Sequence[str],
        attributes: Sequence[str],
        containers: Sequence[str],
    ) -> None:
        self.kind = kind
        self.place = place
        places = variables.places(carried)
        self.born = [item for item in places if item.get() is MISSING or is_undefined(item.get())]
        self.dead = variables.places(dead)
        places = [item for item in places if item not in self.born]
        places += _slots(variables, attributes, containers)
        self.watch = watch.Watch(variables, {id(variables.cells[name]) for name in (*carried, *dead)})
        self.carried: list[Carried] = [CarriedPlace(item) for item in places]
        held = {id(item.before) for item in self.carried}
        self.states = [
            CarriedState(name, value) for name, value in self.watch.mutable_protocol() if id(value) not in held
        ]
        self.carried += self.states
        self.slots = {(id(item.owner), item.key) for item in places if isinstance(item, Slot)}
        self.counts: list[int] = []

    def initial(self) -> list[ir.Value]:
        """The leaves before the loop."""
        values: list[ir.Value] = []
        for item in self.carried:
            found = item.initial()
            self.counts.append(len(found))
            values += found
        return values

    def enter(self, values: Sequence[ir.Value]) -> None:
        """Start a turn with these leaves."""
        remaining = iter(values)
        for item, count in zip(self.carried, self.counts, strict=True):
            if count:
                item.enter(remaining)
        self.entered = self.watch.save()

    def leave(self) -> list[ir.Value]:
        """The leaves at the end of a turn; raises CompileError where something changed its type."""
        values: list[ir.Value] = []
        for item, count in zip(self.carried, self.counts, strict=True):
            try:
                found = item.leave()
            except leaves.TypeChange as change:
                raise self._type_change(item, change) from None
            if len(found) != count:
                raise self._type_change(item, leaves.TypeChange(f"{count} values", f"{len(found)} values"))
            values += found
        return values

    def finish(self, results: Sequence[ir.Value], changed: Sequence[bool]) -> None:
        """After the loop: results for what changed, the old value for the rest; forget what was made inside."""
        self._check_states()
        start = 0
        for item, count in zip(self.carried, self.counts, strict=True):
            end = start + count
            if any(changed[start:end]):
                item.settle(results[start:end], changed[start:end])
            elif count or not isinstance(item, CarriedState):
                item.restore()
            start = end
        for place in self.dead:
            place.set(MISSING)
        for place in self.born:
            if place.get() is not MISSING:
                place.set(self._born(place))

    def _born(self, place: Place) -> Undefined:
        return Undefined(
            f"`{place.name}` is used, but it has no value if the `{self.kind}` loop runs zero times",
            {f"`{self.kind}`": self.place},
            f"give `{place.name}` a value before the loop",
        )

    def _type_change(self, item: Carried, change: leaves.TypeChange) -> CompileError:
        if isinstance(item.before, list | dict):
            return container_change(item.name, item.before, self.place, "changes its shape")
        return CompileError(
            f"`{item.name}{change.path}` changes its type in a runtime `{self.kind}` loop",
            location=self.place,
            values={"before": change.expected, "after a turn": change.found},
            hint="give it that type before the loop, convert it back, or use a new name",
        )

    def _check_states(self) -> None:
        """Objects that the body changed in place are carried, or the program is refused."""
        for state in self.states:
            name = state.static_change()
            if name is not None:
                raise self._unseen(name)
        carried = {id(state.value) for state in self.states}
        for key, now in self.watch.save().items():
            if key not in carried and self.watch.differs(key, self.entered[key], now):
                self._check_state(key, now)

    def _check_state(self, key: int, state: watch.State) -> None:
        name, owner = self.watch.objects[key]
        entered = self.entered[key]
        if isinstance(owner, list) and state.keys() != entered.keys():
            raise container_change(name, owner, self.place, "changes its length")
        for inner in dict.fromkeys((*entered, *state)):
            before, after = entered.get(inner, MISSING), state.get(inner, MISSING)
            if (key, inner) in self.slots or leaves.same(before, after):
                continue
            slot = Slot(slot_name(name, owner, inner), owner, inner)
            if before is not MISSING:
                raise self._unseen(slot.name)
            if leaves.holds_runtime(after):
                slot.set(MISSING)

    def _unseen(self, name: str) -> CompileError:
        return CompileError(
            f"`{name}` changes in place in a runtime `{self.kind}` loop, by a call that the loop cannot follow",
            location=self.place,
            values={"object": name},
            hint="assign it in the loop body itself, or give its class `__extract_mlir_values__` and"
            " `__new_from_mlir_values__`",
        )


def _slots(variables: Variables, attributes: Sequence[str], containers: Sequence[str]) -> list[Place]:
    """The attributes and items that the body assigns, of objects that exist before the loop."""
    found: list[Place] = []
    for dotted in attributes:
        base, _, key = dotted.rpartition(".")
        owner = variables.resolve(base)
        if _has_own_state(owner) and key in watch.state_of(owner):
            found.append(Slot(dotted, owner, key))
    for dotted in containers:
        owner = variables.resolve(dotted)
        if isinstance(owner, list | dict):
            found += [Slot(f"{dotted}[{key!r}]", owner, key) for key in watch.state_of(owner)]
    return found


def _has_own_state(value: Any) -> bool:
    return watch.kind_of(type(value)) == "object" and not leaves.has_protocol(value)
