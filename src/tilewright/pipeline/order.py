"""`PipelineOrder`: groups of threads that take turns."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import trace
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int32, as_numeric
from tilewright.lang.tensors.pointer import Pointer
from tilewright.pipeline.barriers import MbarrierArray, init_barriers, sync
from tilewright.pipeline.groups import CooperativeGroup
from tilewright.pipeline.state import PipelineState


class PipelineOrder:
    """`length` groups that run one after the other, in each of `depth` stages. Make it with `create`.

    A group calls `wait`, does its part, and calls `arrive`, which lets the next group go; group 0 goes first.
    """

    def __init__(
        self, sync_object_full: MbarrierArray, depth: int, length: int, group_id: Any, state: PipelineState
    ) -> None:
        self.sync_object_full = sync_object_full
        self.depth = depth
        self.length = length
        self.group_id = group_id
        self.state = state

    @classmethod
    def create(
        cls,
        barrier_storage: Pointer,
        depth: int,
        length: int,
        group_id: Any,
        producer_group: CooperativeGroup,
        defer_sync: bool = False,
        *,
        loc: object = None,
        ip: object = None,
    ) -> PipelineOrder:
        """Make the barriers and wait for all threads of the block; all call it.

        Args:
            barrier_storage: `depth * length` Int64 in shared memory.
            depth: stages.
            length: groups.
            group_id: which group the thread is in, from 0; may be known only at run time.
            producer_group: as many agents of a group as arrive when its turn ends.
            defer_sync: do not wait; the caller does (`pipeline.sync`) before the first use.

        Raises:
            CompileError: there is no stage or group, or `group_id` is none of them.
        """
        trace.device("a pipeline order")
        if depth < 1 or length < 1 or (isinstance(group_id, int) and not 0 <= group_id < length):
            raise CompileError(
                "a pipeline order has groups 0 to length - 1, in stages",
                location=user_location(),
                values={"depth": depth, "length": length, "group_id": group_id},
            )
        barriers = MbarrierArray(barrier_storage, depth * length, producer_group)
        init_barriers(barriers)
        if not defer_sync:
            sync()
        first = Int32(as_numeric(group_id) == 0)  # the first group finds its turn come: it waits for the phase before
        return cls(barriers, depth, length, group_id, PipelineState(depth, 0, 0, first))

    def get_barrier_for_current_stage_idx(self, group_id: Any) -> Any:
        """The number of the barrier at which `group_id` waits in the present stage."""
        return self.state.index * self.length + group_id

    def wait(self, *, loc: object = None, ip: object = None) -> None:
        """Wait for the turn of this thread's group."""
        at = self.get_barrier_for_current_stage_idx(self.group_id)
        self.sync_object_full.wait(at, self.state.phase)

    def arrive(self, *, loc: object = None, ip: object = None) -> None:
        """Let the next group go, and step to the next stage."""
        following = (self.group_id + 1) % self.length
        self.sync_object_full.arrive(self.get_barrier_for_current_stage_idx(following))
        self.state.advance()

    def __extract_mlir_values__(self) -> list[Any]:
        own = [] if isinstance(self.group_id, int) else [as_numeric(self.group_id).ir_value()]
        return [*self.state.__extract_mlir_values__(), *own]

    def __new_from_mlir_values__(self, values: list[Any]) -> PipelineOrder:
        group = self.group_id if isinstance(self.group_id, int) else Int32.from_ir(values[3])
        state = self.state.__new_from_mlir_values__(values[:3])
        return type(self)(self.sync_object_full, self.depth, self.length, group, state)

    def __tw_structure__(self) -> tuple[int, int, int]:
        """What may not change in a region."""
        return id(self.sync_object_full), self.depth, self.length
