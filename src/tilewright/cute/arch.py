"""`cute.arch`: the grid, barriers, fences, shuffles, votes, reductions."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing
from tilewright.lang.approx import exp, exp2, log2, rcp_approx, rsqrt_approx, tanh_approx
from tilewright.lang.arch import (
    FULL_MASK,
    WARP_SIZE,
    barrier,
    block_dim,
    block_idx,
    block_idx_in_cluster,
    block_idx_x,
    block_idx_y,
    block_idx_z,
    block_in_cluster_dim,
    block_in_cluster_idx,
    cluster_dim,
    cluster_idx,
    cluster_size,
    dynamic_smem_size,
    fence_acq_rel_cluster,
    fence_acq_rel_cta,
    fence_acq_rel_gpu,
    fence_acq_rel_sys,
    grid_dim,
    lane_id,
    lane_idx,
    make_warp_uniform,
    shfl_sync,
    shuffle_sync,
    shuffle_sync_bfly,
    shuffle_sync_down,
    shuffle_sync_op,
    shuffle_sync_up,
    sync_threads,
    sync_warp,
    thread_idx,
    tid_x,
    tid_y,
    tid_z,
    vote_all_sync,
    vote_any_sync,
    vote_ballot_sync,
    vote_uni_sync,
    warp_id,
    warp_idx,
    warp_reduction,
    warp_reduction_max,
    warp_reduction_min,
    warp_reduction_sum,
    warp_sync,
    warp_sync_op,
)
from tilewright.lang.atomics import (
    atomic_and,
    atomic_cas,
    atomic_dec,
    atomic_exch,
    atomic_fmax,
    atomic_fmin,
    atomic_inc,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xor,
)
from tilewright.lang.nvgpu.barriers import barrier_arrive
from tilewright.lang.nvgpu.bits import (
    add_sat_int,
    bfe,
    bfi,
    bfind,
    globaltimer_lo,
    gridid,
    lanemask_eq,
    lanemask_ge,
    lanemask_gt,
    lanemask_le,
    lanemask_lt,
    lop3,
    mad24,
    match_sync,
    mul24,
    nsmid,
    nwarpid,
    shf,
    sub_sat_int,
    total_smem_size,
    warpsize,
)
from tilewright.lang.nvgpu.bulk_groups import cp_async_bulk_commit_group, cp_async_bulk_wait_group
from tilewright.lang.nvgpu.cpasync import cp_async_commit_group, cp_async_wait_group
from tilewright.lang.nvgpu.distributed import map_dsmem_ptr, store_async_dsmem
from tilewright.lang.nvgpu.distributed import map_dsmem_ptr as mapa
from tilewright.lang.nvgpu.extremes import fmax, fmin
from tilewright.lang.nvgpu.inline_ptx import inline_ptx
from tilewright.lang.nvgpu.mbarrier import (
    cp_async_mbarrier_arrive,
    cp_async_mbarrier_arrive_noinc,
    mbarrier_arrive,
    mbarrier_arrive_and_expect_tx,
    mbarrier_conditional_try_wait,
    mbarrier_expect_tx,
    mbarrier_init,
    mbarrier_init_fence,
    mbarrier_inval,
    mbarrier_test_wait,
    mbarrier_try_wait,
    mbarrier_wait,
)
from tilewright.lang.nvgpu.ordered import load, store
from tilewright.lang.nvgpu.packed_floats import (
    add_packed_f32x2,
    exp_packed_f32x2,
    fma_packed_f32x2,
    mul_packed_f32x2,
    sub_packed_f32x2,
)
from tilewright.lang.nvgpu.redux import warp_redux_sync
from tilewright.lang.nvgpu.threads import (
    activemask,
    barrier_wait,
    brev,
    clock,
    clock64,
    cluster_arrive,
    cluster_arrive_relaxed,
    cluster_wait,
    clz,
    elect_one,
    fence_proxy,
    fence_proxy_async,
    fence_view_async_shared,
    globaltimer,
    griddepcontrol_launch_dependents,
    griddepcontrol_wait,
    match_all_sync,
    match_any_sync,
    mul_hi,
    mul_wide,
    nanosleep,
    popc,
    prmt,
    smid,
)
from tilewright.lang.nvgpu.vector_atomics import atomic_add, red
from tilewright.lang.nvgpu.warpgroup import setmaxregister_decrease, setmaxregister_increase
from tilewright.lang.tensors.allocation import alloc_smem, get_dyn_smem

get_dyn_smem_size = dynamic_smem_size
cp_async_commit = cp_async_commit_group
fence_mbarrier_init = mbarrier_init_fence
warpgroup_reg_alloc = setmaxregister_increase
warpgroup_reg_dealloc = setmaxregister_decrease

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = [
    "FULL_MASK", "WARP_SIZE", "activemask", "add_packed_f32x2", "add_sat_int", "alloc_smem", "atomic_add", "atomic_and",
    "atomic_cas", "atomic_dec", "atomic_exch", "atomic_fmax", "atomic_fmin", "atomic_inc", "atomic_max", "atomic_min",
    "atomic_or", "atomic_xor", "barrier", "barrier_arrive", "barrier_wait", "bfe", "bfi", "bfind", "block_dim",
    "block_idx", "block_idx_in_cluster", "block_idx_x", "block_idx_y", "block_idx_z", "block_in_cluster_dim",
    "block_in_cluster_idx", "brev", "clock", "clock64", "cluster_arrive", "cluster_arrive_relaxed", "cluster_dim",
    "cluster_idx", "cluster_size", "cluster_wait", "clz", "cp_async_bulk_commit_group", "cp_async_bulk_wait_group",
    "cp_async_commit", "cp_async_commit_group", "cp_async_mbarrier_arrive", "cp_async_mbarrier_arrive_noinc",
    "cp_async_wait_group", "dynamic_smem_size", "elect_one", "exp", "exp2", "exp_packed_f32x2", "fence_acq_rel_cluster",
    "fence_acq_rel_cta", "fence_acq_rel_gpu", "fence_acq_rel_sys", "fence_mbarrier_init", "fence_proxy",
    "fence_proxy_async", "fence_view_async_shared", "fma_packed_f32x2", "fmax", "fmin", "get_dyn_smem",
    "get_dyn_smem_size", "globaltimer", "globaltimer_lo", "grid_dim", "griddepcontrol_launch_dependents",
    "griddepcontrol_wait", "gridid", "inline_ptx", "lane_id", "lane_idx", "lanemask_eq", "lanemask_ge", "lanemask_gt",
    "lanemask_le", "lanemask_lt", "load", "log2", "lop3", "mad24", "make_warp_uniform", "map_dsmem_ptr", "mapa",
    "match_all_sync", "match_any_sync", "match_sync", "mbarrier_arrive", "mbarrier_arrive_and_expect_tx",
    "mbarrier_conditional_try_wait", "mbarrier_expect_tx", "mbarrier_init", "mbarrier_init_fence", "mbarrier_inval",
    "mbarrier_test_wait", "mbarrier_try_wait", "mbarrier_wait", "mul24", "mul_hi", "mul_packed_f32x2", "mul_wide",
    "nanosleep", "nsmid", "nwarpid", "popc", "prmt", "rcp_approx", "red", "rsqrt_approx", "setmaxregister_decrease",
    "setmaxregister_increase", "shf", "shfl_sync", "shuffle_sync", "shuffle_sync_bfly", "shuffle_sync_down",
    "shuffle_sync_op", "shuffle_sync_up", "smid", "store", "store_async_dsmem", "sub_packed_f32x2", "sub_sat_int",
    "sync_threads", "sync_warp", "tanh_approx", "thread_idx", "tid_x", "tid_y", "tid_z", "total_smem_size",
    "vote_all_sync", "vote_any_sync", "vote_ballot_sync", "vote_uni_sync", "warp_id", "warp_idx", "warp_reduction",
    "warp_reduction_max", "warp_reduction_min", "warp_reduction_sum", "warp_redux_sync", "warp_sync", "warp_sync_op",
    "warpgroup_reg_alloc", "warpgroup_reg_dealloc", "warpsize",
]  # fmt: skip
