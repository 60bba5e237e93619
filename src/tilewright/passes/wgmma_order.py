"""Which accumulators of warpgroup products are under way where, over structured control flow.

For each accumulator the walk keeps how many groups were committed since its latest product (its age), or nothing where
none is under way. `wait_group(n)` ends those whose age is greater than `n`. Where ways meet, the least age counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir.accessors import number_of
from tilewright.ir.locations import source_location

if TYPE_CHECKING:
    from mlir import ir

_OLDEST = 8
"""Ages beyond this are alike: no wait leaves so many groups open."""
_State = dict[int, int]


@dataclass(frozen=True)
class Uses:
    """The number of the accumulator that a product writes, and of those that an operation reads or writes itself."""

    product: int | None
    touched: tuple[int, ...]


def check_order(function: ir.Operation, uses: Mapping[Any, Uses]) -> None:
    """Refuse an access to an accumulator whose product may be under way; `uses` are those of the operations that touch
    accumulators.

    Raises:
        CompileError: with the line of the access and that of the product.
    """
    _Walk(uses).block(function.regions[0].blocks[0], {})


class _Walk:
    def __init__(self, uses: Mapping[Any, Uses]) -> None:
        self.uses = uses
        self.begun: dict[int, ir.Operation] = {}
        self._steps: dict[str, Callable[[ir.Operation, _State], _State]] = {
            "cute.wgmma": self._product,
            "cute.wgmma_commit": lambda op, state: {key: min(age + 1, _OLDEST) for key, age in state.items()},
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
                self._access(op, state)
        return state

    def _product(self, op: ir.Operation, state: _State) -> _State:
        # Products on one accumulator follow each other without a wait; A may be read from another one.
        self._access(op, state)
        written = self.uses[op].product
        assert written is not None  # it is a product
        self.begun[written] = op
        return {**state, written: 0}

    def _wait(self, op: ir.Operation, state: _State) -> _State:
        groups = number_of(op, "groups")
        return {key: age for key, age in state.items() if age <= groups}

    def _branch(self, op: ir.Operation, state: _State) -> _State:
        ends = [self.block(region.blocks[0], state) if len(region.blocks) else state for region in op.regions]
        return _met(*ends)

    def _loop(self, op: ir.Operation, state: _State) -> _State:
        while True:
            end = state
            for region in op.regions:
                end = self.block(region.blocks[0], end)
            met = _met(state, end)
            if met == state:
                return met
            state = met

    def _access(self, op: ir.Operation, state: _State) -> None:
        for number in self.uses[op].touched:
            if number in state:
                raise self._too_early(op, number, state[number])

    def _too_early(self, op: ir.Operation, number: int, age: int) -> CompileError:
        return CompileError(
            "an accumulator is used while its product may be under way",
            location=source_location(op.location),
            values={"product": source_location(self.begun[number].location), "use": op.name.removeprefix("cute.")},
            hint="wait for its group first: warpgroup.wait_group(n) leaves the n latest groups unfinished"
            if age
            else "close the group with warpgroup.commit_group() and wait for it with warpgroup.wait_group(0)",
        )


def _met(*states: _State) -> _State:
    """What may be under way on any of several ways."""
    found: _State = {}
    for state in states:
        for key, age in state.items():
            found[key] = min(age, found.get(key, age))
    return found
