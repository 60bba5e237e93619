"""What threads of a warp, block, cluster and grid do together, beyond `lang.arch`; single instructions on bits."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.hw.features import supports
from tilewright.lang import trace
from tilewright.lang.arch import FULL_MASK, barrier, lane_idx
from tilewright.lang.control.generate import run_if
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Int32, Int64, Numeric, Uint8, Uint16, Uint32, Uint64, as_numeric
from tilewright.lang.nvgpu.instructions import instruction


class elect_one:
    """`with elect_one():` runs the block in one thread of the warp. All threads of the warp must get there together."""

    __tw_region__ = True

    def __init__(self, *, loc: object = None, ip: object = None) -> None:
        trace.device("elect_one")
        self._guard: run_if | None = None

    def __tw_predicate__(self) -> Boolean:
        return elected()

    def __enter__(self) -> elect_one:
        """Where control flow is not rewritten."""
        self._guard = run_if(elected())
        self._guard.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        assert self._guard is not None
        self._guard.__exit__(kind, error, traceback)


def elected() -> Boolean:
    """True in one thread of the warp: `elect.sync`, lane 0 before sm_90."""
    text = "{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 $0, 1, 0, p; }"
    if not _has("elect.sync"):
        return lane_idx() == 0
    return instruction(text, result=Int32, feature="elect.sync") != 0


def _has(feature: str) -> bool:
    from_arch = trace.device(feature).arch or "sm_90"
    return supports(feature, from_arch)


PROXY_FENCES = {
    ("async", None): ("fence.proxy.async;", "fence.proxy.async"),
    ("async.global", None): ("fence.proxy.async.global;", "fence.proxy.async"),
    ("async.shared", "cta"): ("fence.proxy.async.shared::cta;", "fence.proxy.async"),
    ("async.shared", "cluster"): ("fence.proxy.async.shared::cluster;", "fence.proxy.async"),
    ("alias", None): ("fence.proxy.alias;", "fence.proxy.alias"),
}


def fence_proxy(
    kind: Any, *, space: Any = None, use_intrinsic: Any = None, loc: object = None, ip: object = None
) -> None:
    """Order this thread's accesses through one proxy with those through another.

    `fence_proxy("async.shared", space="cta")` comes before a bulk copy that reads shared memory which the thread wrote.
    """
    name = str(getattr(kind, "value", kind)).lower().replace("_", ".")
    where = None if space is None else str(getattr(space, "value", space)).rpartition("shared_")[2].rpartition("::")[2]
    if name == "async.shared" and where is None:
        where = "cta"
    if (name, where) not in PROXY_FENCES:
        raise CompileError(
            f"no proxy fence {kind} for {space}",
            location=user_location(),
            values={"known": ", ".join(f"{known} {at or ''}".strip() for known, at in PROXY_FENCES)},
        )
    text, feature = PROXY_FENCES[name, where]
    instruction(text, feature=feature)


def fence_proxy_async(*, loc: object = None, ip: object = None) -> None:
    """`fence_proxy("async")`."""
    fence_proxy("async")


def fence_view_async_shared(*, loc: object = None, ip: object = None) -> None:
    """`fence_proxy("async.shared", space="cta")`."""
    fence_proxy("async.shared", space="cta")


def barrier_wait(
    *, barrier_id: Any = None, number_of_threads: Any = None, loc: object = None, ip: object = None
) -> None:
    """Arrive at a barrier and wait: the hardware's barriers know no wait without an arrival."""
    barrier(barrier_id=barrier_id, number_of_threads=number_of_threads)


def cluster_arrive(*, aligned: bool = True, loc: object = None, ip: object = None) -> None:
    """Arrive at the cluster's barrier; memory written before is visible to blocks that wait."""
    instruction(f"barrier.cluster.arrive{'.aligned' if aligned else ''};", feature="cluster")


def cluster_arrive_relaxed(*, aligned: bool = True, loc: object = None, ip: object = None) -> None:
    """Arrive at the cluster's barrier without ordering memory."""
    instruction(f"barrier.cluster.arrive.relaxed{'.aligned' if aligned else ''};", feature="cluster")


def cluster_wait(*, aligned: bool = True, loc: object = None, ip: object = None) -> None:
    """Wait for all blocks of the cluster to arrive."""
    instruction(f"barrier.cluster.wait{'.aligned' if aligned else ''};", feature="cluster")


def griddepcontrol_wait(*, loc: object = None, ip: object = None) -> None:
    """Wait until the grids that this one depends on are done and their memory is visible (programmatic launch)."""
    instruction("griddepcontrol.wait;", feature="griddepcontrol")


def griddepcontrol_launch_dependents(*, loc: object = None, ip: object = None) -> None:
    """Let the grids that depend on this one start."""
    instruction("griddepcontrol.launch_dependents;", feature="griddepcontrol")


def nanosleep(sleep_time: Any, *, loc: object = None, ip: object = None) -> None:
    """Pause for about this many nanoseconds, at most a millisecond."""
    instruction("nanosleep.u32 $0;", (Uint32(as_numeric(sleep_time)),))


def match_any_sync(value: Any, mask: Any = FULL_MASK, *, loc: object = None, ip: object = None) -> Int32:
    """The lanes of `mask` whose value equals this lane's, as bits."""
    number, suffix = _match_operand(value)
    return instruction(f"match.any.sync.b{suffix} $0, $1, $2;", (number, Uint32(mask)), result=Int32)


def match_all_sync(value: Any, mask: Any = FULL_MASK, *, loc: object = None, ip: object = None) -> Int32:
    """`mask` where all its lanes have one value, else 0."""
    number, suffix = _match_operand(value)
    return instruction(f"match.all.sync.b{suffix} $0, $1, $2;", (number, Uint32(mask)), result=Int32)


def _match_operand(value: Any) -> tuple[Numeric, int]:
    number = as_numeric(value)
    if type(number).is_float:  # its bits
        number = number.bitcast({8: Uint8, 16: Uint16, 32: Uint32, 64: Uint64}[number.width])
    wide: type[Numeric] = Int64 if number.width > 32 else Int32
    return wide(number), wide.width


def activemask(*, loc: object = None, ip: object = None) -> Int32:
    """The lanes of the warp that run this together, as bits."""
    return instruction("activemask.b32 $0;", result=Int32)


def popc(value: Any, *, loc: object = None, ip: object = None) -> Int32:
    """The number of bits set."""
    number = as_numeric(value)
    if number.width == 64:
        return instruction("popc.b64 $0, $1;", (number,), result=Int32, pure=True)
    unsigned = Uint32(number)
    return instruction("popc.b32 $0, $1;", (unsigned,), result=Int32, pure=True)


def clz(value: Any, *, loc: object = None, ip: object = None) -> Int32:
    """The number of zero bits above the highest bit set; the width for 0."""
    number = as_numeric(value)
    suffix = "b64" if number.width == 64 else "b32"
    return instruction(
        f"clz.{suffix} $0, $1;", (number if number.width in (32, 64) else Int32(number),), result=Int32, pure=True
    )


def brev(value: Any, *, loc: object = None, ip: object = None) -> Numeric:
    """The bits of a 32-bit number in reverse order."""
    return type(as_numeric(value))(
        instruction("brev.b32 $0, $1;", (Uint32(as_numeric(value)),), result=Uint32, pure=True)
    )


def prmt(src: Any, src_reg_shifted: Any, prmt_indices: Any, *, loc: object = None, ip: object = None) -> Int32:
    """Four bytes picked from the eight of two 32-bit numbers by the nibbles of the third."""
    operands = tuple(Int32(as_numeric(item)) for item in (src, src_reg_shifted, prmt_indices))
    return instruction("prmt.b32 $0, $1, $2, $3;", operands, result=Int32, pure=True)


def mul_hi(a: Any, b: Any, *, loc: object = None, ip: object = None) -> Numeric:
    """The upper half of the product of two integers of one type."""
    left, right = as_numeric(a), as_numeric(b)
    cls = type(left)
    sign = "s" if cls.signed else "u"
    return instruction(f"mul.hi.{sign}{cls.width} $0, $1, $2;", (left, cls(right)), result=cls, pure=True)


def mul_wide(a: Any, b: Any, *, loc: object = None, ip: object = None) -> Numeric:
    """The whole product of two 32-bit integers, in 64 bits."""
    left, right = as_numeric(a), as_numeric(b)
    wide: type[Numeric] = Int64 if type(left).signed else Uint64
    return wide(left) * wide(right)


def clock(*, loc: object = None, ip: object = None) -> Uint32:
    """The multiprocessor's cycle counter, 32 bits."""
    return instruction("mov.u32 $0, %clock;", result=Uint32)


def clock64(*, loc: object = None, ip: object = None) -> Int64:
    """The multiprocessor's cycle counter."""
    return instruction("mov.u64 $0, %clock64;", result=Int64)


def globaltimer(*, loc: object = None, ip: object = None) -> Int64:
    """Nanoseconds of the device's clock."""
    return instruction("mov.u64 $0, %globaltimer;", result=Int64)


def smid(*, loc: object = None, ip: object = None) -> Int32:
    """The multiprocessor that runs the thread."""
    return instruction("mov.u32 $0, %smid;", result=Int32)
