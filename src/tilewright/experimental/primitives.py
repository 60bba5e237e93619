"""`cutlass.experimental.primitives`: single instructions, as CuTe DSL's kernels without layouts use them.

Places in memory are `cute.Pointer`s, tensors and `cutlass.Array`s, or MLIR values of type `!llvm.ptr`.
"""

from typing import TYPE_CHECKING

from tilewright.base.not_built import PRIMITIVES as _PRIMITIVES
from tilewright.base.not_built import missing as _missing
from tilewright.experimental.barriers import (
    bar_warp_sync,
    barrier_cluster_arrive,
    barrier_cluster_arrive_relaxed,
    barrier_cluster_wait,
    barrier_cta_arrive,
    barrier_cta_arrive_aligned,
    barrier_cta_red,
    barrier_cta_sync,
    barrier_cta_sync_aligned,
    cp_async_mbarrier_arrive,
    fence_mbarrier_init,
    fence_proxy,
    fence_sync_restrict,
    mbarrier_arrive,
    mbarrier_arrive_expect_tx,
    mbarrier_init,
    mbarrier_inval,
    mbarrier_try_wait,
    mbarrier_try_wait_parity,
    mbarrier_try_wait_timelimit,
    mbarrier_wait_parity,
)
from tilewright.experimental.enums import (
    AtomicOp,
    CpReduceOp,
    CpReduceType,
    GridDepAction,
    MBarrierScope,
    MBarrierWait,
    MemOrder,
    MemScope,
    MMALayout,
    PermuteMode,
    Proxy,
    ReductionKind,
    ReductionOp,
    ReductionType,
    SetMaxRegisterAction,
    SharedSpace,
    Shfl,
    VoteSync,
)
from tilewright.experimental.memory import (
    atomicrmw,
    cp_async_bulk_commit_group,
    cp_async_bulk_global_shared_cta,
    cp_async_bulk_prefetch,
    cp_async_bulk_shared_cluster_global,
    cp_async_bulk_tensor_global_shared_cta,
    cp_async_bulk_tensor_shared_cta_global,
    cp_async_bulk_wait_group,
    cp_async_commit_group,
    cp_async_shared_global,
    cp_async_wait_group,
    cp_reduce_async_bulk_global_shared_cta,
    ldmatrix,
    mapa,
    prefetch_tensormap,
    red,
    stmatrix,
)
from tilewright.experimental.texts import print_runtime
from tilewright.experimental.warps import (
    elect_sync,
    exit,
    griddepcontrol,
    redux_sync,
    setmaxregister,
    shfl_sync,
    vote_sync,
)
from tilewright.experimental.words import convert_and_pack_integer, mov_b32, prmt

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_PRIMITIVES)
