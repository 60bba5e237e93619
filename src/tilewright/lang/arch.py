"""What a thread knows and shares: its place in the grid, barriers, shuffles, votes, reductions over a warp.

Both spellings that are in use are here: `lane_idx` and `lane_id`, `thread_idx()[0]` and `tid_x()`, and so on.
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types
from tilewright.lang import trace
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Int32, as_numeric

WARP_SIZE = 32
FULL_MASK = 0xFFFFFFFF
_MAX_GRID = (1 << 31) - 1
_BOUNDS = {
    "thread_idx": (1023, 1023, 63), "block_dim": (1024, 1024, 64), "block_idx": (_MAX_GRID - 1, 65534, 65534),
    "grid_dim": (_MAX_GRID, 65535, 65535),
}  # fmt: skip


def _index(name: str, bound: int) -> Int32:
    trace.device(name)
    op = build.cute("index", (types.parse("i32"),), (), name=build.string(name))
    return Int32.from_ir(op.results[0]).assuming(bound=bound)


def _triple(name: str) -> tuple[Int32, Int32, Int32]:
    x, y, z = (_index(f"{name}.{axis}", bound) for axis, bound in zip("xyz", _BOUNDS[name], strict=True))
    return x, y, z


def thread_idx(*, loc: object = None, ip: object = None) -> tuple[Int32, Int32, Int32]:
    """The thread's place in its block: (x, y, z)."""
    return _triple("thread_idx")


def is_thread_index(number: Any) -> bool:
    """True for the x of `thread_idx()` itself."""
    value = getattr(number, "value", None)
    if not isinstance(value, mlir.ir.OpResult) or "name" not in value.owner.attributes:
        return False
    return bool(value.owner.attributes["name"] == build.string("thread_idx.x"))


def block_idx(*, loc: object = None, ip: object = None) -> tuple[Int32, Int32, Int32]:
    """The block's place in the grid: (x, y, z)."""
    return _triple("block_idx")


def block_dim(*, loc: object = None, ip: object = None) -> tuple[Int32, Int32, Int32]:
    """Threads of a block along each axis."""
    return _triple("block_dim")


def grid_dim(*, loc: object = None, ip: object = None) -> tuple[Int32, Int32, Int32]:
    """Blocks of the grid along each axis."""
    return _triple("grid_dim")


def _cluster_triple(name: str, bound: int) -> tuple[Int32, Int32, Int32]:
    x, y, z = (_index(f"{name}.{axis}", bound) for axis in "xyz")
    return x, y, z


def cluster_idx(*, loc: object = None, ip: object = None) -> tuple[Int32, Int32, Int32]:
    """The cluster's place in the grid."""
    return _cluster_triple("cluster_idx", _MAX_GRID)


def cluster_dim(*, loc: object = None, ip: object = None) -> tuple[Int32, Int32, Int32]:
    """Clusters of the grid along each axis."""
    return _cluster_triple("cluster_dim", _MAX_GRID)


def block_in_cluster_idx(*, loc: object = None, ip: object = None) -> tuple[Int32, Int32, Int32]:
    """The block's place in its cluster."""
    return _cluster_triple("block_in_cluster_idx", 15)


def block_in_cluster_dim(*, loc: object = None, ip: object = None) -> tuple[Int32, Int32, Int32]:
    """Blocks of a cluster along each axis."""
    return _cluster_triple("block_in_cluster_dim", 16)


def block_idx_in_cluster(*, loc: object = None, ip: object = None) -> Int32:
    """The block's rank in its cluster."""
    return _index("block_in_cluster_rank", 15)


def cluster_size(*, loc: object = None, ip: object = None) -> Int32:
    """Blocks of a cluster."""
    return _index("cluster_size", 16)


def lane_idx(*, loc: object = None, ip: object = None) -> Int32:
    """The thread's place in its warp, 0 to 31."""
    return _index("lane_idx", 31)


def warp_idx(*, loc: object = None, ip: object = None) -> Int32:
    """The warp's place in its block: the linear thread index divided by 32."""
    return linear_thread_idx() // WARP_SIZE


def linear_thread_idx() -> Int32:
    """x + y * blockDim.x + z * blockDim.x * blockDim.y."""
    tid, dim = thread_idx(), block_dim()
    linear = tid[0] + dim[0] * (tid[1] + dim[1] * tid[2])
    return linear.assuming(bound=1023)


def dynamic_smem_size(*, loc: object = None, ip: object = None) -> Int32:
    """Bytes of dynamic shared memory of the launch."""
    return _index("dynamic_smem_size", 1 << 20)


def make_warp_uniform(value: Any, *, loc: object = None, ip: object = None) -> Int32:
    """The value of lane 0, which all lanes then share."""
    return Int32(shuffle_sync(value, 0))


# Barriers and fences.


def sync_threads(*, loc: object = None, ip: object = None) -> None:
    """Wait for all threads of the block; memory written before is visible after."""
    trace.device("sync_threads")
    build.cute("sync_threads", ())


def barrier(*, barrier_id: Any = None, number_of_threads: Any = None, loc: object = None, ip: object = None) -> None:
    """Wait at barrier `barrier_id` (default 0) for `number_of_threads` threads (default all of the block)."""
    if barrier_id is None and number_of_threads is None:
        sync_threads()
        return
    named_barrier("sync", barrier_id if barrier_id is not None else 0, number_of_threads)


def named_barrier(kind: str, number: Any, count: Any) -> None:
    """`sync` or `arrive` at a barrier by its number, of `count` threads (None: all of the block)."""
    trace.device(f"barrier {kind}")
    if isinstance(number, int) and not 0 <= number <= 15:
        raise CompileError(f"barrier {number}", location=user_location(), hint="a block has barriers 0 to 15")
    if isinstance(count, int) and (count % WARP_SIZE or count <= 0):
        raise CompileError(
            f"a barrier of {count} threads", location=user_location(), hint="the count is a multiple of 32"
        )
    counts = () if count is None else (Int32(as_numeric(count)).ir_value(),)
    build.cute("barrier", (), ((Int32(as_numeric(number)).ir_value(),), counts), kind=build.string(kind))


def sync_warp(mask: Any = FULL_MASK, *, loc: object = None, ip: object = None) -> None:
    """Wait for the lanes of `mask`."""
    trace.device("sync_warp")
    build.cute("sync_warp", (), ((_mask(mask),),))


def _fence(scope: str, order: str = "acq_rel") -> None:
    trace.device("fence")
    build.cute("fence", (), (), scope=build.string(scope), order=build.string(order))


def fence_acq_rel_cta(*, loc: object = None, ip: object = None) -> None:
    """Order memory operations of this thread for its block."""
    _fence("cta")


def fence_acq_rel_cluster(*, loc: object = None, ip: object = None) -> None:
    """Order memory operations of this thread for its cluster."""
    _fence("cluster")


def fence_acq_rel_gpu(*, loc: object = None, ip: object = None) -> None:
    """Order memory operations of this thread for the device."""
    _fence("gpu")


def fence_acq_rel_sys(*, loc: object = None, ip: object = None) -> None:
    """Order memory operations of this thread for the system."""
    _fence("sys")


# Shuffles and votes.


def _mask(mask: Any) -> Any:
    number = as_numeric(mask) if not isinstance(mask, int) else Int32(mask)
    return Int32(number).ir_value()


def _shuffle(kind: str, value: Any, lane: Any, mask: Any, mask_and_clamp: int) -> Any:
    trace.device("a shuffle")
    if hasattr(value, "mapped"):
        return value.mapped(lambda vector: _emit_shuffle(kind, vector, lane, mask, mask_and_clamp))
    number = as_numeric(value)
    return type(number).from_ir(_emit_shuffle(kind, number.ir_value(), lane, mask, mask_and_clamp))


def _emit_shuffle(kind: str, value: Any, lane: Any, mask: Any, clamp: int) -> Any:
    groups = ((value,), (Int32(as_numeric(lane)).ir_value(),), (_mask(mask),))
    return build.cute("shuffle", (value.type,), groups, kind=build.string(kind), clamp=build.i32(clamp)).results[0]


def shuffle_sync(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: int = 31, **_: object) -> Any:
    """The value of lane `offset`."""
    return _shuffle("idx", value, offset, mask, mask_and_clamp)


def shuffle_sync_bfly(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: int = 31, **_: object) -> Any:
    """The value of lane `lane ^ offset`."""
    return _shuffle("bfly", value, offset, mask, mask_and_clamp)


def shuffle_sync_down(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: int = 31, **_: object) -> Any:
    """The value of lane `lane + offset`, the own one past the end."""
    return _shuffle("down", value, offset, mask, mask_and_clamp)


def shuffle_sync_up(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: int = 0, **_: object) -> Any:
    """The value of lane `lane - offset`, the own one before the start."""
    return _shuffle("up", value, offset, mask, mask_and_clamp)


def shuffle_sync_op(
    value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: int | None = None, kind: str = "idx", **_: object
) -> Any:
    """A shuffle of the given kind: idx, bfly, up or down."""
    if str(kind) not in ("idx", "bfly", "up", "down"):
        raise CompileError(f"shuffle kind {kind!r}", location=user_location(), hint="idx, bfly, up or down")
    clamp = (0 if str(kind) == "up" else 31) if mask_and_clamp is None else mask_and_clamp
    return _shuffle(str(kind), value, offset, mask, clamp)


def _vote(kind: str, pred: Any, mask: Any) -> Any:
    trace.device("a vote")
    result = types.parse("i32" if kind == "ballot" else "i1")
    groups = ((Boolean(as_numeric(pred)).ir_value(),), (_mask(mask),))
    value = build.cute("vote", (result,), groups, kind=build.string(kind)).results[0]
    return Int32.from_ir(value) if kind == "ballot" else Boolean.from_ir(value)


def vote_ballot_sync(pred: Any, mask: Any = FULL_MASK, *, loc: object = None, ip: object = None) -> Int32:
    """Bit i is the predicate of lane i."""
    return _vote("ballot", pred, mask)


def vote_any_sync(pred: Any, mask: Any = FULL_MASK, *, loc: object = None, ip: object = None) -> Boolean:
    """True when the predicate holds in some lane."""
    return _vote("any", pred, mask)


def vote_all_sync(pred: Any, mask: Any = FULL_MASK, *, loc: object = None, ip: object = None) -> Boolean:
    """True when the predicate holds in all lanes."""
    return _vote("all", pred, mask)


def vote_uni_sync(pred: Any, mask: Any = FULL_MASK, *, loc: object = None, ip: object = None) -> Boolean:
    """True when the predicate is the same in all lanes."""
    return _vote("uni", pred, mask)


# Reductions over a warp.


def _warp_reduce(kind: str, value: Any, threads_in_group: int) -> Any:
    trace.device("warp_reduction")
    if threads_in_group not in (1, 2, 4, 8, 16, 32):
        raise CompileError(
            f"a reduction over {threads_in_group} lanes", location=user_location(), hint="a power of two up to 32"
        )
    number = as_numeric(value)
    name = f"{kind}{type(number).facts.arithmetic_kind}"
    operand = number.ir_value()
    op = build.cute(
        "warp_reduce", (operand.type,), ((operand,),), kind=build.string(name), width=build.i32(threads_in_group)
    )
    return type(number).from_ir(op.results[0])


def warp_reduction_sum(value: Any, *, threads_in_group: int = 32, loc: object = None, ip: object = None) -> Any:
    """The sum over each group of lanes, in every lane."""
    return _warp_reduce("add", value, threads_in_group)


def warp_reduction_max(value: Any, *, threads_in_group: int = 32, loc: object = None, ip: object = None) -> Any:
    """The greatest value over each group of lanes, in every lane."""
    return _warp_reduce("max", value, threads_in_group)


def warp_reduction_min(value: Any, *, threads_in_group: int = 32, loc: object = None, ip: object = None) -> Any:
    """The least value over each group of lanes, in every lane."""
    return _warp_reduce("min", value, threads_in_group)


def warp_reduction(value: Any, op: Any, *, threads_in_group: int = 32, loc: object = None, ip: object = None) -> Any:
    """Fold with `op(a, b)` over each group of lanes by a butterfly; every lane gets the result."""
    result, step = value, threads_in_group // 2
    while step:
        result = op(result, shuffle_sync_bfly(result, step))
        step //= 2
    return result


# Second spellings.

lane_id = lane_idx
warp_id = warp_idx
shfl_sync = shuffle_sync
warp_sync = warp_sync_op = sync_warp


def tid_x(**_: object) -> Int32:
    """`thread_idx()[0]`."""
    return thread_idx()[0]


def tid_y(**_: object) -> Int32:
    """`thread_idx()[1]`."""
    return thread_idx()[1]


def tid_z(**_: object) -> Int32:
    """`thread_idx()[2]`."""
    return thread_idx()[2]


def block_idx_x(**_: object) -> Int32:
    """`block_idx()[0]`."""
    return block_idx()[0]


def block_idx_y(**_: object) -> Int32:
    """`block_idx()[1]`."""
    return block_idx()[1]


def block_idx_z(**_: object) -> Int32:
    """`block_idx()[2]`."""
    return block_idx()[2]
