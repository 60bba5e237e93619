"""Which accumulators of warpgroup products are under way where, over structured control flow.

For each accumulator the walk keeps how many groups were committed since its latest product (its age), or nothing where
none is under way. `wait_group(n)` ends those whose age is greater than `n`. Where ways meet, the least age counts. It
also keeps which accumulators were written since the last fence: no product may follow before the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir.accessors import number_of
from tilewright.ir.locations import source_location

if TYPE_CHECKING:
    from mlir import ir

_OLDEST = 8
"""Ages beyond this are alike: no wait leaves so many groups open."""


@dataclass(frozen=True)
class Uses:
    """The number of the accumulator that a product writes, and of those that an operation reads or writes itself; of
    these, those that it writes."""

    product: int | None
    touched: tuple[int, ...]
    written: tuple[int, ...] = ()


@dataclass(frozen=True)
class _State:
    """The ages of the accumulators under way; those written since the last fence, with what wrote them."""

    ages: dict[int, int] = field(default_factory=dict)
    written: dict[int, Any] = field(default_factory=dict)


def check_order(function: ir.Operation, uses: Mapping[Any, Uses]) -> None:
    """Refuse an access to an accumulator whose product may be under way, and a product on one that was written since
    the last fence; `uses` are those of the operations that touch accumulators.

    Raises:
        CompileError: with the line of the access and that of the product.
    """
    _Walk(uses).block(function.regions[0].blocks[0], _State())


class _Walk:
    def __init__(self, uses: Mapping[Any, Uses]) -> None:
        self.uses = uses
        self.begun: dict[int, ir.Operation] = {}
        self._steps: dict[str, Callable[[ir.Operation, _State], _State]] = {
            "cute.wgmma": self._product,
            "cute.wgmma_fence": lambda op, state: replace(state, written={}),
            "cute.wgmma_commit": self._commit,
            "cute.wgmma_wait": self._wait,
            "scf.if": self._branch,
            "scf.for": self._loop,
            "scf.while": self._loop,
        }

    def block(self, block: ir.Block, state: _State) -> _State:
        """The state after a block."""
        for item in block.operations:
            op = item.operation
            step = self._steps.get(op.name)
            if step is not None:
                state = step(op, state)
            elif op in self.uses:
                state = self._access(op, state)
        return state

    def _product(self, op: ir.Operation, state: _State) -> _State:
        # Products on one accumulator follow each other without a wait; A may be read from another one.
        self._access(op, state)
        number = self.uses[op].product
        assert number is not None  # it is a product
        if number in state.written:
            raise _without_fence(op, state.written[number])
        self.begun[number] = op
        return replace(state, ages={**state.ages, number: 0})

    def _commit(self, op: ir.Operation, state: _State) -> _State:
        return replace(state, ages={key: min(age + 1, _OLDEST) for key, age in state.ages.items()})

    def _wait(self, op: ir.Operation, state: _State) -> _State:
        groups = number_of(op, "groups")
        return replace(state, ages={key: age for key, age in state.ages.items() if age <= groups})

    def _branch(self, op: ir.Operation, state: _State) -> _State:
        ends = [self.block(region.blocks[0], state) if len(region.blocks) else state for region in op.regions]
        return _met(*ends)

    def _loop(self, op: ir.Operation, state: _State) -> _State:
        while True:
            end = state
            for region in op.regions:
                end = self.block(region.blocks[0], end)
            met = _met(state, end)
            if (met.ages, met.written.keys()) == (state.ages, state.written.keys()):
                return met
            state = met

    def _access(self, op: ir.Operation, state: _State) -> _State:
        for number in self.uses[op].touched:
            if number in state.ages:
                raise self._too_early(op, number, state.ages[number])
        return replace(state, written={**state.written, **dict.fromkeys(self.uses[op].written, op)})

    def _too_early(self, op: ir.Operation, number: int, age: int) -> CompileError:
        return CompileError(
            "an accumulator is used while its product may be under way",
            location=source_location(op.location),
            values={"product": source_location(self.begun[number].location), "use": op.name.removeprefix("cute.")},
            hint="wait for its group first: warpgroup.wait_group(n) leaves the n latest groups unfinished"
            if age
            else "close the group with warpgroup.commit_group() and wait for it with warpgroup.wait_group(0)",
        )


def _without_fence(op: ir.Operation, write: ir.Operation) -> CompileError:
    return CompileError(
        "an accumulator is written, and multiplied without a fence between",
        location=source_location(op.location),
        values={"written": source_location(write.location)},
        hint="put warpgroup.fence() between the last write of the accumulator and the first product",
    )


def _met(*states: _State) -> _State:
    """What may be under way, or written, on any of several ways."""
    ages: dict[int, int] = {}
    written: dict[int, Any] = {}
    for state in states:
        written |= state.written
        for key, age in state.ages.items():
            ages[key] = min(age, ages.get(key, age))
    return _State(ages, written)
