"""Verifiers of the grid, of barriers and warps, and of PTX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.hw.features import FEATURES
from tilewright.ir import mlir
from tilewright.passes.verify.operation import Invalid, OpSummary
from tilewright.passes.verify.table import verifies
from tilewright.passes.verify.values import check_kind

if TYPE_CHECKING:
    from mlir import ir

_HEADS = (
    "thread_idx", "block_dim", "block_idx", "grid_dim", "cluster_idx", "cluster_dim", "block_in_cluster_idx",
    "block_in_cluster_dim",
)  # fmt: skip
_INDICES = (
    *(f"{head}.{axis}" for head in _HEADS for axis in "xyz"),
    "lane_idx", "block_in_cluster_rank", "cluster_size", "physical_warp_id", "sm_id", "dynamic_smem_size",
)  # fmt: skip
_REGISTERS = {"b": ("i1",), "h": ("i16",), "r": ("i32",), "l": ("i64",), "f": ("f32",), "d": ("f64",)}
_WARP = 32


@verifies("index")
def _index(op: OpSummary) -> None:
    op.one_of("name", _INDICES)
    if str(op.results[0]) != "i32":
        raise Invalid("an index is an i32", result=op.results[0])


@verifies("sync_threads", "async_commit", "sync_warp")
def _nothing(op: OpSummary) -> None:
    """Operands are all that these have, and the dialect says what they are."""


@verifies("async_wait")
def _async_wait(op: OpSummary) -> None:
    if op.number("groups") < 0:
        raise Invalid("the number of unfinished groups is negative", groups=op.number("groups"))


@verifies("assert")
def _assert(op: OpSummary) -> None:
    op.text("message")


@verifies("pin")
def _pin(op: OpSummary) -> None:
    name, kind = op.text("name"), op.text("kind")
    if "." not in name or not kind or set(name + kind) & set("{}|$\n"):
        raise Invalid("a pin names FUNCTION.NAME and says what kind of value it has", name=name, kind=kind)


@verifies("profile")
def _profile(op: OpSummary) -> None:
    kind, region = op.one_of("kind", ("begin", "end", "kernel")), op.text("region")
    if bool(region) == (kind == "kernel"):
        raise Invalid("a region that begins or ends has a name, and a whole kernel has none", kind=kind, region=region)


@verifies("barrier")
def _barrier(op: OpSummary) -> None:
    kind, count = op.one_of("kind", ("sync", "arrive")), len(op.groups[1])
    if count > 1 or (kind == "arrive" and not count):
        raise Invalid("a barrier has one count of threads, which arriving needs", kind=kind, counts=count)


@verifies("fence")
def _fence(op: OpSummary) -> None:
    op.one_of("scope", ("cta", "cluster", "gpu", "sys"))
    op.one_of("order", ("acq_rel", "seq_cst"))


@verifies("shuffle")
def _shuffle(op: OpSummary) -> None:
    op.one_of("kind", ("idx", "up", "down", "bfly"))
    _lane_value(op)
    clamp = op.number("clamp")
    if clamp & ~0x1F1F:
        raise Invalid("clamp has 5 bits of a lane, and 5 of a mask from bit 8 on", clamp=clamp)


@verifies("vote")
def _vote(op: OpSummary) -> None:
    wanted = "i32" if op.one_of("kind", ("any", "all", "uni", "ballot")) == "ballot" else "i1"
    if str(op.results[0]) != wanted:
        raise Invalid(f"this vote gives an {wanted}", kind=op.text("kind"), result=op.results[0])


@verifies("warp_reduce")
def _warp_reduce(op: OpSummary) -> None:
    _lane_value(op)
    check_kind(op, op.groups[0][0])
    width = op.number("width")
    if not 1 <= width <= _WARP or width & (width - 1):
        raise Invalid("groups of lanes have 1, 2, 4, 8, 16 or 32", width=width)


def _lane_value(op: OpSummary) -> None:
    value = op.groups[0][0]
    if op.results[0] != value:
        raise Invalid("the result is of the type of the value", value=value, result=op.results[0])
    if not isinstance(value, mlir.ir.IntegerType | mlir.ir.FloatType | mlir.ir.VectorType):
        raise Invalid("lanes hand on numbers and vectors of them", value=value)


@verifies("ptx", "ptx_value", "ptx_pure")
def _ptx(op: OpSummary) -> None:
    op.text("text")
    feature = op.text("feature")
    if feature and feature not in FEATURES:
        raise Invalid(f"no feature of chips is called {feature!r}", feature=feature)
    wanted = [part for part in op.text("constraints").split(",") if part and not part.startswith("~")]
    given = [*op.results, *op.groups[0]]
    outputs = len(op.results)
    if len(wanted) != len(given) or any(part.startswith("=") != (n < outputs) for n, part in enumerate(wanted)):
        raise Invalid(
            f"{len(wanted)} constraints for {outputs} results and {len(given) - outputs} operands",
            "give one for each: results first, each with =",
            constraints=op.text("constraints"),
        )
    for part, type_ in zip(wanted, given, strict=True):
        _register(part.lstrip("=&"), type_)


def _register(letter: str, type_: ir.Type) -> None:
    if letter in _REGISTERS and str(type_) not in _REGISTERS[letter]:
        raise Invalid(f"constraint {letter!r} is not that of the operand", operand=type_)
    if letter not in _REGISTERS and letter != "n":
        raise Invalid(f"there is no constraint {letter!r}", f"constraints: {', '.join(_REGISTERS)}")
