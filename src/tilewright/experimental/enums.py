"""What the primitives are told by name: kinds, orders, scopes, forms. The values are PTX's spellings."""

from __future__ import annotations

from enum import Enum


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


class ReductionOp(Enum):
    """What `red` does with the number in memory."""

    ADD = "add"
    AND = "and"
    OR = "or"
    XOR = "xor"
    MIN = "min"
    MAX = "max"
    INC = "inc"
    DEC = "dec"


class ReductionType(Enum):
    """The type of the numbers that `red` folds."""

    U32 = "u32"
    S32 = "s32"
    B32 = "b32"
    U64 = "u64"
    S64 = "s64"
    B64 = "b64"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"


CpReduceOp = ReductionOp
"""What `cp_reduce_async_bulk_global_shared_cta` does with the numbers in global memory."""
CpReduceType = ReductionType
"""The type of the numbers that it folds."""


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


class Proxy(Enum):
    """A way in which memory is reached (PTX ISA, "Memory Consistency Model", proxies)."""

    ALIAS = "alias"
    ASYNC = "async"
    ASYNC_GLOBAL = "async.global"
    ASYNC_SHARED = "async.shared"
    GENERIC = "generic"
    TENSORMAP = "tensormap"


class SharedSpace(Enum):
    """Shared memory of this block, or of any block of its cluster."""

    shared_cta = "cta"
    shared_cluster = "cluster"


class Shfl(Enum):
    """From which lane `shfl_sync` takes the value."""

    IDX = "idx"
    UP = "up"
    DOWN = "down"
    BFLY = "bfly"


class VoteSync(Enum):
    """What `vote_sync` asks of the predicates of a warp."""

    ANY = "any"
    ALL = "all"
    UNI = "uni"
    BALLOT = "ballot"


class MMALayout(Enum):
    """How a matrix lies in shared memory: rows after another, or columns."""

    ROW = "row"
    COL = "col"


class SetMaxRegisterAction(Enum):
    """What `setmaxregister` does with the registers of the warpgroup."""

    INCREASE = "inc"
    DECREASE = "dec"
