"""`cutlass.experimental.primitives`: those of CuTe DSL's primitives that public kernels of layouts use.

Pointers are `cute.Pointer`s or MLIR values of type `!llvm.ptr`, as `pointer.llvm_ptr` gives them.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.base.not_built import PRIMITIVES as _PRIMITIVES
from tilewright.base.not_built import missing as _missing
from tilewright.hw.features import supports as _supports
from tilewright.lang import atomics as _atomics
from tilewright.lang import trace as _trace
from tilewright.lang.accesses import as_pointer as _as_pointer
from tilewright.lang.arch import FULL_MASK as _FULL_MASK
from tilewright.lang.locations import user_location as _user_location
from tilewright.lang.numbers.numeric import Boolean, Int32, Int64, Numeric, Uint32, Uint64, as_numeric
from tilewright.lang.nvgpu import threads as _threads
from tilewright.lang.nvgpu.distributed import map_dsmem_ptr as _map_dsmem_ptr
from tilewright.lang.nvgpu.instructions import instruction as _instruction
from tilewright.lang.nvgpu.redux import warp_redux_sync as _warp_redux_sync
from tilewright.lang.tensors.pointer import AddressSpace as _AddressSpace
from tilewright.lang.tensors.pointer import Pointer


class ReductionKind(Enum):
    """How `redux_sync` folds; those with U compare without sign, those with F are of Float32."""

    ADD = "add"
    AND = "and"
    OR = "or"
    XOR = "xor"
    MIN = "min"
    MAX = "max"
    UMIN = "umin"
    UMAX = "umax"
    FMIN = "fmin"
    FMAX = "fmax"


class GridDepAction(Enum):
    """What `griddepcontrol` does."""

    WAIT = "wait"
    LAUNCH_DEPENDENTS = "launch_dependents"


class PermuteMode(Enum):
    """How `prmt` reads its selector (PTX ISA, prmt)."""

    DEFAULT = ""
    F4E = ".f4e"
    B4E = ".b4e"
    RC8 = ".rc8"
    ECL = ".ecl"
    ECR = ".ecr"
    RC16 = ".rc16"


class AtomicOp(Enum):
    """What `atomicrmw` does with the number in memory."""

    ADD = "add"
    AND = "and"
    OR = "or"
    XOR = "xor"
    MIN = "min"
    MAX = "max"
    INC = "inc"
    DEC = "dec"
    EXCH = "exch"


class MemScope(Enum):
    """Who sees an operation on memory in its order."""

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"


class MBarrierScope(Enum):
    """Who sees an operation on an mbarrier in its order."""

    CTA = "cta"
    CLUSTER = "cluster"


class MemOrder(Enum):
    """The order of an operation on memory."""

    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"


class MBarrierWait(Enum):
    """Whether a wait looks once or may sleep a while."""

    TEST = "test_wait"
    TRY = "try_wait"


def redux_sync(
    value: Any,
    kind: ReductionKind,
    mask: Any = _FULL_MASK,
    *,
    abs: bool = False,
    nan: bool = False,
    loc: object = None,
    ip: object = None,
) -> Numeric:
    """`value` of all lanes of the mask folded by `kind`, as `cute.arch.warp_redux_sync`."""
    return _warp_redux_sync(value, kind.value, mask, abs=abs, nan=nan)


def mov_b32(value: Any, *, target_type: type[Numeric], loc: object = None, ip: object = None) -> Numeric:
    """The 32 bits of a number as a number of another type.

    Raises:
        CompileError: a type does not have 32 bits.
    """
    number = as_numeric(value)
    if number.width != 32 or target_type.width != 32:
        raise CompileError(
            "mov_b32 is between types of 32 bits",
            location=_user_location(),
            values={"from": type(number), "to": target_type},
        )
    bits: Numeric = number.bitcast(target_type)
    return bits


def prmt(
    lo: Any,
    selector: Any,
    mode: PermuteMode = PermuteMode.DEFAULT,
    *,
    hi: Any = 0,
    loc: object = None,
    ip: object = None,
) -> Uint32:
    """Four bytes of the eight of `hi` and `lo`, picked by the nibbles of `selector` (PTX `prmt.b32`)."""
    operands = tuple(_word(item) for item in (lo, hi, selector))
    made = _instruction(f"prmt.b32{mode.value} $0, $1, $2, $3;", operands, result=Int32, pure=True)
    return Uint32(made)


def _word(value: Any) -> Int32:
    """32 bits of a number, or of a Python int with or without sign."""
    return Int32(Uint32(value & 0xFFFFFFFF) if isinstance(value, int) else as_numeric(value))


def convert_and_pack_integer(
    high: Any, low: Any, to: Any, *, is_signed: bool = True, loc: object = None, ip: object = None
) -> Uint32:
    """Two Int32, held within 16 bits with or without sign, packed as `high`, `low` (PTX `cvt.pack.sat`).

    Raises:
        CompileError: `to` is no type of 16 bits.
    """
    if str(getattr(to, "mlir_type", to)) != "i16":
        raise CompileError(
            f"convert_and_pack_integer to {to}",
            location=_user_location(),
            hint="it packs two numbers of 16 bits, T.i16()",
        )
    sign = "s" if is_signed else "u"
    text = f"cvt.pack.sat.{sign}16.s32 $0, $1, $2;"
    return Uint32(_instruction(text, (_word(high), _word(low)), result=Int32, pure=True))


def griddepcontrol(action: GridDepAction, *, loc: object = None, ip: object = None) -> None:
    """Wait for the grids that this one depends on, or let those start that depend on it."""
    if action is GridDepAction.WAIT:
        _threads.griddepcontrol_wait()
    else:
        _threads.griddepcontrol_launch_dependents()


def atomicrmw(
    op: AtomicOp,
    ptr: Any,
    value: Any,
    *,
    order: MemOrder | None = None,
    scope: MemScope | None = None,
    loc: object = None,
    ip: object = None,
) -> Any:
    """Change the number at `ptr` in one step; gives what it was."""
    function = getattr(_atomics, f"atomic_{op.value}")
    return function(
        ptr, value, sem=None if order is None else order.value, scope=None if scope is None else scope.value
    )


def mapa(ptr: Any, rank: Any, *, loc: object = None, ip: object = None) -> Pointer:
    """The place that `ptr` into shared memory names, in block `rank` of the cluster."""
    return _map_dsmem_ptr(_shared(ptr, "mapa"), rank)


def _shared(ptr: Any, what: str, *spaces: _AddressSpace) -> Pointer:
    """A pointer into shared memory, whatever it is given as."""
    pointer = ptr if isinstance(ptr, Pointer) else _as_pointer(ptr, Int64)
    if pointer.memspace not in (_AddressSpace.smem, *spaces):
        raise CompileError(
            f"{what} takes a pointer to shared memory", location=_user_location(3), values={"got": pointer}
        )
    return pointer


def mbarrier_arrive(
    mbar: Any,
    *,
    scope: MemScope = MemScope.CTA,
    relaxed: bool = False,
    count: Any = None,
    loc: object = None,
    ip: object = None,
) -> Uint64 | None:
    """Arrive at an mbarrier, `count` times; gives the state of its phase, which an mbarrier of another block has not.

    With `relaxed` nothing that was written before is ordered by it.
    """
    pointer = _shared(mbar, "mbarrier_arrive", _AddressSpace.dsmem)
    remote = pointer.memspace is _AddressSpace.dsmem
    plain = scope is MemScope.CTA and not relaxed and not remote
    order = "" if plain else f".{'relaxed' if relaxed else 'release'}.{scope.value}"
    space = "shared::cluster" if remote else "shared" if plain and count is None else "shared::cta"
    feature = "mbarrier.remote_arrive" if remote or not plain else "mbarrier" if count is None else "mbarrier.try_wait"
    operands = (pointer.toint(), *(() if count is None else (Int32(as_numeric(count)),)))
    tail = "" if count is None else f", ${len(operands) - (1 if remote else 0)}"
    if remote:
        _instruction(f"mbarrier.arrive{order}.{space}.b64 _, [$0]{tail};", operands, feature=feature)
        return None
    text = f"mbarrier.arrive{order}.{space}.b64 $0, [$1]{tail};"
    return Uint64(_instruction(text, operands, result=Int64, feature=feature))


def mbarrier_wait_parity(
    mbar: Any,
    phase: Any,
    wait: MBarrierWait = MBarrierWait.TRY,
    *,
    scope: MBarrierScope = MBarrierScope.CTA,
    order: MemOrder = MemOrder.ACQUIRE,
    loc: object = None,
    ip: object = None,
) -> Boolean:
    """Whether the phase of parity `phase` is complete: one look (TEST), or after waiting a while for it (TRY).

    What was written before arrivals that release at `scope` is then visible, unless `order` is RELAXED.
    """
    at = _shared(mbar, "mbarrier_wait_parity").toint()
    arch = _trace.device("mbarrier_wait_parity").arch or "sm_90"
    plain = scope is MBarrierScope.CTA and order is MemOrder.ACQUIRE
    qualifiers = "" if plain else f".{order.value}.{scope.value}"
    waits = wait is MBarrierWait.TRY and _supports("mbarrier.try_wait", arch)
    feature = "mbarrier.try_wait" if waits else "mbarrier.test_wait.parity" if plain else "mbarrier.remote_arrive"
    text = (
        f"{{ .reg .pred done; mbarrier.{'try' if waits else 'test'}_wait.parity{qualifiers}.shared.b64 done, [$1], $2; "
        "selp.b32 $0, 1, 0, done; }"
    )
    return Boolean(_instruction(text, (at, Int32(as_numeric(phase))), result=Int32, feature=feature) != 0)


def fence_sync_restrict(order: MemOrder, *, loc: object = None, ip: object = None) -> None:
    """A fence that orders shared memory alone: RELEASE what this block wrote, ACQUIRE what others of the cluster did.

    Raises:
        CompileError: another order.
    """
    spaces = {MemOrder.RELEASE: "shared::cta", MemOrder.ACQUIRE: "shared::cluster"}
    if order not in spaces:
        raise CompileError(
            f"fence_sync_restrict has no order {order}", location=_user_location(), hint="MemOrder.RELEASE or ACQUIRE"
        )
    _instruction(f"fence.{order.value}.sync_restrict::{spaces[order]}.cluster;", feature="fence.sync_restrict")


if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_PRIMITIVES)
