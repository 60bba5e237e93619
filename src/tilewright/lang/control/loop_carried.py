"""What a loop carries from iteration to iteration, as leaves."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.lang import leaves
from tilewright.lang.control import aliases, mutable_state
from tilewright.lang.control.branch import container_change, keys_change, slot_name
from tilewright.lang.control.undefined import Undefined, is_undefined
from tilewright.lang.control.variables import MISSING, Place, Slot, Variables, inherited, is_cache

if TYPE_CHECKING:
    from mlir import ir


class Carried:
    """One thing that a loop carries: a place, or an object that changes in place."""

    name: str
    structure: leaves.Structure

    def __init__(self, name: str, before: Any, hold: Container[int] = ()) -> None:
        self.name = name
        self.before = before
        self.structure = leaves.structure_of(before, hold)

    def weakened(self) -> leaves.Structure | None:
        """The structure that fits the value at the end of an iteration too, where that is known less of."""
        return leaves.weakened(self.structure, self._take())

    def initial(self) -> list[ir.Value]:
        return self.structure.values(self.before)

    def enter(self, values: Iterator[ir.Value]) -> None:
        """Take the values at the start of an iteration."""
        self._put(self.structure.build(values))

    def settle(self, results: Sequence[ir.Value], changed: Sequence[bool]) -> None:
        """Take the values after the loop."""
        self._put(leaves.settle(self.structure, self.before, results, changed))

    def leave(self) -> list[ir.Value]:
        """The values at the end of an iteration."""
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

    def __init__(self, place: Place, hold: Container[int]) -> None:
        super().__init__(place.name, place.get(), hold)
        self.place = place

        self.last: Any = None

    def leave(self) -> list[ir.Value]:
        self.last = self._take()
        return super().leave()

    def _put(self, value: Any) -> None:
        self.place.set(value)

    def _take(self) -> Any:
        return self.place.get()


class CarriedState(Carried):
    """An object of the DynamicExpression protocol that methods may change: all its names see the change."""

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name, value)
        self.value = value
        self.state = mutable_state.state_of(value)
        self.entered: mutable_state.State = {}

    def enter(self, values: Iterator[ir.Value]) -> None:
        super().enter(values)
        self.entered = mutable_state.state_of(self.value)

    def restore(self) -> None:
        mutable_state.set_state(self.value, self.state)

    def _put(self, value: Any) -> None:
        if value is not self.value:
            _update(self.value, value)

    def _take(self) -> Any:
        return self.value

    def static_changes(self) -> list[Slot]:
        """The attributes of compile time that an iteration changed."""
        now = mutable_state.state_of(self.value)
        return [
            Slot(slot_name(self.name, self.value, key), self.value, key)
            for key, entered in self.entered.items()
            if not leaves.holds_runtime(entered) and not leaves.same(entered, now.get(key, MISSING))
        ]


def _update(old: Any, new: Any) -> None:
    """Give `old` the values of `new`; state objects inside keep their identity too, attributes of Python stay."""
    state = mutable_state.state_of(old)
    for key, value in mutable_state.state_of(new).items():
        inner = state.get(key)
        if type(inner) is type(value) and leaves.has_protocol(inner) and mutable_state.kind_of(type(inner)) == "object":
            _update(inner, value)
        elif key not in state or leaves.holds_runtime(value):
            state[key] = value
    mutable_state.set_state(old, state)


@dataclass
class InPlace:
    """What a loop must carry that its text does not show: variables whose objects stay themselves (`held`), attributes
    and items that calls change (`slots`) or make (`made`: without a value at the start of each iteration and after the
    loop), and what is known less of after an iteration than before (`weaker`, by name)."""

    held: set[str] = field(default_factory=set)
    slots: dict[tuple[int, Any], Slot] = field(default_factory=dict)
    made: dict[tuple[int, Any], Slot] = field(default_factory=dict)
    weaker: dict[str, leaves.Structure] = field(default_factory=dict)

    def __or__(self, other: InPlace) -> InPlace:
        return InPlace(
            self.held | other.held, self.slots | other.slots, self.made | other.made, self.weaker | other.weaker
        )

    def __bool__(self) -> bool:
        return bool(self.held or self.slots or self.made or self.weaker)


class ChangedInPlace(Exception):
    """A body changed more in place than its text shows, or what it carries is known less of: trace it again so."""

    def __init__(self, found: InPlace) -> None:
        super().__init__("trace again")
        self.found = found


@dataclass(frozen=True)
class Loop:
    """A loop as the rewriter describes it: variables it carries and those nobody reads afterwards, attributes and
    containers it assigns by dotted name."""

    kind: str
    place: SourceLocation
    variables: Variables
    carried: Sequence[str]
    dead: Sequence[str]
    attributes: Sequence[str]
    containers: Sequence[str]


class LoopState:
    """All that a loop carries, and what its body must leave alone.

    A variable that the body assigns gets new objects in each iteration, made from leaves. That is Python's meaning as
    long as the body does not change these objects in place, which other names of them would see. If it does, or calls
    change objects that are not carried, `leave` raises `ChangedInPlace`. Traced again with what it found, objects of
    such variables stay themselves and change in place; the body may not assign other objects to the variables.
    """

    def __init__(self, loop: Loop, in_place: InPlace) -> None:
        self.loop = loop
        self.kind = loop.kind
        self.place = loop.place
        variables, carried, dead = loop.variables, loop.carried, loop.dead
        places = variables.places(carried)
        # Without a value before the loop there is no initial leaf to carry. `loops._Born` carries some of them out.
        self.born = [item for item in places if item.get() is MISSING or is_undefined(item.get())]
        self.dead = variables.places(dead)
        self.before = [(item, item.get()) for item in (*places, *self.dead)]
        places = [item for item in places if item not in self.born]
        slots = _slots(variables, loop.attributes, loop.containers, in_place.slots)
        held = in_place.held
        # The cells themselves change by assignment, which `places` covers; what they hold is watched.
        self.watch = mutable_state.Watch(variables, {id(variables.cells[name]) for name in (*carried, *dead)})
        copied = {item.name: _mutable(item.get()) for item in places if item.name not in held}
        self.originals = {name: found for name, found in copied.items() if found}
        self.copies: list[tuple[str, Any, mutable_state.State]] = []
        held_ids = {id(found) for item in places if item.name in held for found in _mutable(item.get())}
        self.carried: list[Carried] = [CarriedPlace(item, held_ids) for item in (*places, *slots)]
        # An object that a variable carries as a copy is not carried a second time as itself.
        copied_ids = {id(item.before) for item in self.carried} - held_ids
        self.states = [
            CarriedState(name, value) for name, value in self.watch.mutable_protocol() if id(value) not in copied_ids
        ]
        self.carried += self.states
        for item in self.carried:
            item.structure = in_place.weaker.get(item.name, item.structure)
        self.slots = {(id(item.owner), item.key) for item in slots}
        self.made = in_place.made
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
        """Start an iteration with these leaves."""
        remaining = iter(values)
        for item, count in zip(self.carried, self.counts, strict=True):
            if count:
                item.enter(remaining)
        self._unmake()
        # Only now: putting the leaves in changed the objects that stay themselves.
        self.entered = self.watch.save()
        self.copies = []
        for item in self.carried:
            originals = self.originals.get(item.name, [])
            if originals and isinstance(item, CarriedPlace):
                # Either may change behind the other's back: in Python the two are one object.
                objects = [*originals, *_mutable(item.place.get())]
                self.copies += [(item.name, value, mutable_state.state_of(value)) for value in objects]

    def _unmake(self) -> None:
        for slot in self.made.values():
            slot.set(self._born(slot))

    def rollback(self) -> None:
        """As if the loop had not been traced."""
        for place, value in self.before:
            place.set(value)
        self.watch.restore({key: self.watch.before[key] for key in self.watch.changed(self.watch.save())})

    def leave(self) -> list[ir.Value]:
        """The leaves at the end of an iteration; raises CompileError where something changed its type."""
        changed = {
            name
            for name, value, state in self.copies
            if not mutable_state.same_state(state, mutable_state.state_of(value))
        }
        unseen = InPlace(changed) | self._unseen_changes()
        if unseen:
            raise ChangedInPlace(unseen)
        # Errors come after this: a body traced with too little carried may show faults that the next try has not.
        self._refuse_changed_aliases()
        values: list[ir.Value] = []
        weaker: dict[str, leaves.Structure] = {}
        for item, count in zip(self.carried, self.counts, strict=True):
            try:
                found = item.leave()
            except leaves.Rebound:
                raise self._two_ways(item, rebound=True) from None
            except leaves.TypeChange as change:
                structure = item.weakened()
                if structure is None:
                    raise self._type_change(item, change) from None
                weaker[item.name] = structure  # gather all: each retry costs a trace of the body
                continue
            if len(found) != count:
                raise self._type_change(item, leaves.TypeChange(f"{count} values", f"{len(found)} values"))
            values += found
        if weaker:
            raise ChangedInPlace(InPlace(weaker=weaker))
        return values

    def finish(self, results: Sequence[ir.Value], changed: Sequence[bool]) -> None:
        """After the loop: results for what changed, the old value for the rest; forget what was made inside."""
        start, merged = 0, list[CarriedPlace]()
        for item, count in zip(self.carried, self.counts, strict=True):
            end = start + count
            if any(changed[start:end]):
                item.settle(results[start:end], changed[start:end])
                if isinstance(item, CarriedPlace):
                    merged.append(item)
            elif count or not isinstance(item, CarriedState):
                item.restore()  # its leaves are arguments of a body that has ended
            start = end
        for place in self.dead:
            place.set(MISSING)
        for place in self.born:
            if place.get() is not MISSING:
                place.set(self._born(place))
        self._unmake()
        # When all places have their values: whether another name leads to an object depends on the others.
        for item in merged:
            aliases.note(item.name, self.kind, self.place, item.place.get(), (item.before, item.last))

    def _born(self, place: Place) -> Undefined:
        return Undefined(
            f"`{place.name}` is used, but it has no value if the `{self.kind}` loop runs zero times",
            {f"`{self.kind}`": self.place},
            f"give `{place.name}` a value before the loop",
        )

    def _type_change(self, item: Carried, change: leaves.TypeChange) -> CompileError:
        if isinstance(item.before, list | dict):
            return container_change(item.name, item.before, self.place, "changes its shape")
        if mutable_state.kind_of(type(item.before)) == "object" and not change.path:
            return self._two_ways(item)
        if change.expected == change.found:
            return CompileError(
                f"`{item.name}{change.path}` changes in a runtime `{self.kind}` loop,"
                " but it exists at compile time only",
                location=self.place,
                values={"before": change.expected, **self.loop.variables.assignments(item.name)},
                hint="only numbers, and objects made of them, can change at run time",
            )
        return CompileError(
            f"`{item.name}{change.path}` changes its type in a runtime `{self.kind}` loop",
            location=self.place,
            values={
                "before": change.expected,
                "after an iteration": change.found,
                **self.loop.variables.assignments(item.name),
            },
            hint="give it that type before the loop, convert it back, or use a new name",
        )

    def _refuse_changed_aliases(self) -> None:
        """A variable may not come to share an object with another name that changes in the same iteration."""
        now = self.watch.save()
        for item in self.carried:
            if not isinstance(item, CarriedPlace) or leaves.is_number(item.before):
                continue
            for path, value in _rebuilt(item.structure, item.place.get()):
                key = id(value)
                if key in now and value is self.watch.objects[key][1]:
                    if item.name + path != self.watch.objects[key][0] and not mutable_state.same_state(
                        self.entered[key], now[key]
                    ):
                        raise aliases.error(item.name + path, self.watch.objects[key][0], self.kind, self.place)

    def _two_ways(self, item: Carried, rebound: bool = False) -> CompileError:
        """Another object in place of one that changes, or that is no tuple or dataclass of numbers."""
        name, now = item.name, item.place.get() if isinstance(item, CarriedPlace) else None
        other = self.watch.objects[id(now)][0] if id(now) in self.watch.objects else ""
        rows = self.loop.variables.assignments(name)
        how = " that also changes its object in place" if rebound or other else ""
        return CompileError(
            f"`{name}` gets another object in a runtime `{self.kind}` loop{how}",
            location=self.place,
            values=rows or {"variable": name},
            hint=_two_ways_hint(name, other, item.before) if how else _plain_class_hint(name, item.before),
        )

    def _unseen_changes(self) -> InPlace:
        """What the body changed in objects that exist before the loop and are not carried."""
        found = InPlace()
        for state in self.states:
            found.slots.update({_key(slot): slot for slot in state.static_changes()})
        carried = {id(state.value) for state in self.states}
        for key, now in self.watch.save().items():
            # Against the start of the iteration, not of the loop: entering put new leaves into what is carried.
            if key not in carried and self.watch.differs(key, self.entered[key], now):
                found |= self._changes(key, now)
        return InPlace(
            slots={key: slot for key, slot in found.slots.items() if key not in self.slots},
            made={key: slot for key, slot in found.made.items() if key not in self.made},
        )

    def _changes(self, key: int, state: mutable_state.State) -> InPlace:
        name, owner = self.watch.objects[key]
        entered = self.entered[key]
        kind = mutable_state.kind_of(type(owner))
        if kind == "snapshot":
            raise container_change(name, owner, self.place, "changes")
        if kind in ("list", "dict") and list(state) != list(entered):
            raise container_change(name, owner, self.place, keys_change(state, entered))
        found = InPlace()
        for inner in dict.fromkeys((*entered, *state)):
            default = inherited(owner, inner)
            before, after = entered.get(inner, default), state.get(inner, default)
            slot = Slot(slot_name(name, owner, inner), owner, inner)
            if before is not MISSING and not is_undefined(before):
                if not leaves.same(before, after):
                    found.slots[_key(slot)] = slot
            elif not is_cache(owner, inner):
                found.made[_key(slot)] = slot
            elif leaves.holds_runtime(after):
                slot.set(MISSING)  # a cache is filled again after the loop, where its value of the body is gone
        return found


def _key(slot: Slot) -> tuple[int, Any]:
    return id(slot.owner), slot.key


def _plain_class_hint(name: str, before: Any) -> str:
    attributes = [key for key in mutable_state.state_of(before) if isinstance(key, str)]
    members = f"`{name}.{attributes[0]} = ...`" if attributes else "its attributes"
    return f"assign {members}, or make {type(before).__name__} a dataclass or a `@cute.native_struct`"


def _two_ways_hint(name: str, other: str, before: Any) -> str:
    """What to write instead."""
    attributes = [key for key in mutable_state.state_of(before) if isinstance(key, str)]
    members = f"`{name}.{attributes[0]} = ...`" if attributes else "its attributes"
    if other and other != name:
        return f"in the loop use `{other}` itself or a new name for it in place of `{name}`, or assign {members}"
    return f"either assign `{name}` or change its object in place, not both: to give it new values assign {members}"


def _rebuilt(structure: leaves.Structure, value: Any) -> Iterator[tuple[str, Any]]:
    """The objects inside a value, by their path, that an iteration begins with new ones of."""
    if isinstance(structure, leaves.Object | leaves.Aggregate) and mutable_state.kind_of(type(value)) == "object":
        yield "", value
    if isinstance(structure, leaves.Aggregate) and leaves.is_aggregate(value):
        parts = leaves.split(value)
        for key, item in structure.items.items():
            if key in parts:
                step = f"[{key!r}]" if isinstance(value, tuple | list | dict) else f".{key}"
                yield from ((step + path, found) for path, found in _rebuilt(item, parts[key]))


def _mutable(value: Any) -> list[Any]:
    """The objects inside a value that can change in place."""
    if value is MISSING or leaves.is_number(value):
        return []
    return [found for _, found in mutable_state.reachable([("", value)], set()).values()]


def _slots(
    variables: Variables, attributes: Sequence[str], containers: Sequence[str], more: Mapping[Any, Slot]
) -> list[Slot]:
    """The attributes and items that the body assigns, of objects that exist before the loop, and `more` of them."""
    found: list[Slot] = list(more.values())
    for dotted in attributes:
        base, _, key = dotted.rpartition(".")
        owner = variables.resolve(base)
        if _has_own_state(owner) and key in mutable_state.state_of(owner):
            found.append(Slot(dotted, owner, key))
    for dotted in containers:
        owner = variables.resolve(dotted)
        if isinstance(owner, list | dict):
            found += [Slot(f"{dotted}[{key!r}]", owner, key) for key in mutable_state.state_of(owner)]
    return list({(id(slot.owner), slot.key): slot for slot in found}.values())


def _has_own_state(value: Any) -> bool:
    return mutable_state.kind_of(type(value)) == "object" and not leaves.has_protocol(value)
