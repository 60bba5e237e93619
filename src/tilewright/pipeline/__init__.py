"""`cutlass.pipeline`: synchronisation of the threads of a block."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing
from tilewright.pipeline.barriers import (
    MbarrierArray,
    agent_sync,
    alloc_reserved_mbarrier,
    pipeline_init_arrive,
    pipeline_init_wait,
    sync,
)
from tilewright.pipeline.groups import Agent, CooperativeGroup, PipelineOp, PipelineUserType
from tilewright.pipeline.named_barrier import (
    NamedBarrier,
    arrive,
    arrive_and_wait,
    arrive_unaligned,
    wait,
    wait_unaligned,
)
from tilewright.pipeline.order import PipelineOrder
from tilewright.pipeline.participants import PipelineConsumer, PipelineProducer
from tilewright.pipeline.pipeline_async import PipelineAsync, PipelineCpAsync
from tilewright.pipeline.pipeline_tma import PipelineTmaAsync, PipelineTmaStore
from tilewright.pipeline.state import PipelineState, make_pipeline_state

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = [
    "Agent", "CooperativeGroup", "MbarrierArray", "NamedBarrier", "PipelineAsync", "PipelineConsumer",
    "PipelineCpAsync", "PipelineOp", "PipelineOrder", "PipelineProducer", "PipelineState", "PipelineTmaAsync",
    "PipelineTmaStore", "PipelineUserType", "agent_sync", "alloc_reserved_mbarrier", "arrive", "arrive_and_wait",
    "arrive_unaligned", "make_pipeline_state", "pipeline_init_arrive", "pipeline_init_wait", "sync", "wait",
    "wait_unaligned",
]  # fmt: skip
