"""Who takes part in a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location


class Agent(Enum):
    """What arrives at a barrier as one."""

    Thread = "thread"
    Warp = "warp"
    ThreadBlock = "thread block"
    ThreadBlockCluster = "cluster"


class PipelineUserType(Enum):
    """The side of a pipeline."""

    Producer = "producer"
    Consumer = "consumer"
    ProducerConsumer = "producer and consumer"


class PipelineOp(Enum):
    """How a side signals."""

    AsyncThread = "threads arrive"
    AsyncLoad = "cp.async arrives"
    TmaLoad = "a bulk copy completes"
    TCGen05Mma = "tcgen05 commits"
    Composite = "several ways"
    ClcLoad = "a cluster launch control response"


@dataclass(frozen=True)
class CooperativeGroup:
    """`size` agents of a kind. A barrier that the group arrives at expects `size` arrivals in each phase."""

    agent: Agent
    size: int = 1
    alignment: int | None = None

    def __post_init__(self) -> None:
        given: object = self.size
        if isinstance(given, float) and given.is_integer():  # threads / 32, which sources write
            object.__setattr__(self, "size", int(given))
        if not isinstance(self.size, int) or self.size < 1:
            raise CompileError(
                f"a group of {self.size}", location=user_location(3), hint="the size is a positive int, known now"
            )
