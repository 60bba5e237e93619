"""What CUDA C++ calls the things of `cute.arch`, for the hints of errors."""

from __future__ import annotations

from typing import Final

_TRIPLES: Final = {
    "threadIdx": "thread_idx",
    "blockIdx": "block_idx",
    "blockDim": "block_dim",
    "gridDim": "grid_dim",
}

_ATOMICS: Final = "Add And CAS Exch Inc Dec Max Min Or Xor"

_FUNCTIONS: Final = {
    "warpSize": "WARP_SIZE",
    "__syncthreads": "sync_threads",
    "__syncwarp": "sync_warp",
    "__threadfence": "fence_acq_rel_gpu",
    "__threadfence_block": "fence_acq_rel_cta",
    "__threadfence_system": "fence_acq_rel_sys",
    "__shfl_sync": "shuffle_sync",
    "__shfl_xor_sync": "shuffle_sync_bfly",
    "__shfl_up_sync": "shuffle_sync_up",
    "__shfl_down_sync": "shuffle_sync_down",
    "__ballot_sync": "vote_ballot_sync",
    "__any_sync": "vote_any_sync",
    "__all_sync": "vote_all_sync",
    "__popc": "popc",
    "__clz": "clz",
    "__brev": "brev",
    **{f"atomic{kind}": f"atomic_{kind.lower()}" for kind in _ATOMICS.split()},
}

_OF_ARCH: Final = (
    "thread_idx block_idx block_dim grid_dim cluster_idx cluster_dim lane_idx warp_idx lane_id warp_id sync_threads "
    "sync_warp barrier shuffle_sync shuffle_sync_bfly shuffle_sync_up shuffle_sync_down warp_reduction_sum "
    "warp_reduction_max warp_reduction_min vote_ballot_sync atomic_add elect_one"
)


def hint(name: str) -> str | None:
    """How the language writes a name that is CUDA's, or that stands in `cute.arch`; None for other names."""
    if name in _TRIPLES:
        return f"`cute.arch.{_TRIPLES[name]}()` gives a tuple (x, y, z)"
    if name in _FUNCTIONS:
        return f"CUDA's {name} is `cute.arch.{_FUNCTIONS[name]}`"
    return f"it is `cute.arch.{name}`" if name in _OF_ARCH.split() else None


def hint_on_tuple(name: str) -> str | None:
    """The same for an attribute of a tuple, where CUDA has `.x`, `.y` and `.z`."""
    return f"a place is a tuple (x, y, z): `[{'xyz'.index(name)}]` is its {name}" if name in ("x", "y", "z") else None
