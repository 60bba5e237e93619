"""The scope of a collective: what the program says, else the smallest that holds all who take part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.base.errors import PassError
from tilewright.hw.features import supports
from tilewright.ir import build, mlir
from tilewright.ir.accessors import number_of, text_of
from tilewright.ir.context import located
from tilewright.passes.collectives import BLOCKS, NAMES, WARP, KernelFacts, kind_of, place_of, set_text, workspace_of

if TYPE_CHECKING:
    from mlir import ir

_BARRIERS = 15  # of a block, beside barrier 0
_SIZES, _CLUSTER = "operandSegmentSizes", 7  # of a launch: the first extent of a cluster


def choose_scope(op: ir.Operation, found: KernelFacts) -> None:
    """Write the scope into the operation.

    Raises:
        PassError: no scope fits, or the launch or the chip lacks what it takes.
    """
    scope, group = _chosen(op, found)
    if scope == "cluster" and found.cluster == 1 and found.facts.cluster is not None:
        scope = "block"
    set_text(op, "scope", scope)
    op.attributes["group"] = build.i32(group)
    if scope == "grid":
        _check_grid(op, found)
    if scope == "cluster" and not supports("cluster", found.facts.arch):
        _through_global_memory(op, found)


def _through_global_memory(op: ir.Operation, found: KernelFacts) -> None:
    """On a chip without clusters: the same blocks meet at a counter in the workspace.

    Raises:
        PassError: there is no workspace, the blocks need not run at once, or the cluster has more extents than one.
    """
    cluster = found.facts.cluster
    is_row = cluster is not None and cluster[1:] == (1, 1)
    if kind_of(op) == "scan" or workspace_of(op) is None or not found.facts.cooperative or not is_row:
        raise PassError(
            f"{_name(op)} over a cluster on {found.facts.arch}, which has no clusters",
            location=place_of(op),
            values={"cluster": cluster or "known at run time", "cooperative": found.facts.cooperative},
            hint="compile for sm_90 or later; or give an all-reduce or broadcast a workspace and launch clusters"
            " (n, 1, 1) with cooperative=True: then its blocks meet in global memory",
        )
    set_text(op, "scope", "grid")
    if "mode" in op.attributes:
        set_text(op, "mode", "auto")
    op.attributes[BLOCKS] = build.i32(found.cluster)


def launch_without_clusters(found: KernelFacts) -> None:
    """Launch a kernel whose clusters meet in global memory as a plain grid."""
    if "nvvm.cluster_dim" in found.kernel.attributes:
        del found.kernel.attributes["nvvm.cluster_dim"]
    if found.launch is None or found.facts.cluster is None:
        return
    op = found.launch.op
    sizes = list(mlir.ir.DenseI32ArrayAttr(op.attributes[_SIZES]))
    first = sum(sizes[:_CLUSTER])
    extents = range(first, first + sum(sizes[_CLUSTER : _CLUSTER + 3]))
    operands = [value for number, value in enumerate(op.operands) if number not in extents]
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes[_SIZES] = build.i32_array([*sizes[:_CLUSTER], 0, 0, 0, *sizes[_CLUSTER + 3 :]])
    location = op.location
    with mlir.ir.InsertionPoint(op), located(lambda: location):
        build.emit(op.name, (), operands, attributes)
    op.erase()


def _chosen(op: ir.Operation, found: KernelFacts) -> tuple[str, int]:
    scope, group = text_of(op, "scope"), number_of(op, "group")
    threads = found.threads if found.facts.block else None
    if group:
        return _of_group(op, found, scope, group, threads)
    if scope != "auto":
        return scope, 0
    if found.blocks == 1:
        if threads is None or threads > WARP:
            return "block", 0
        return ("thread", 0) if threads == 1 else ("warp", 0)
    if found.blocks is not None and found.blocks == found.cluster:
        return "cluster", 0
    return "grid", 0


def _of_group(op: ir.Operation, found: KernelFacts, scope: str, group: int, threads: int | None) -> tuple[str, int]:
    is_power = group & (group - 1) == 0
    if scope in ("auto", "warp", "block") and group <= WARP and is_power:
        return ("thread", 0) if group == 1 else ("warp", group)
    if scope in ("auto", "block") and threads is not None:
        if group == threads:
            return "block", 0
        if group < threads and group % WARP == 0:
            if threads // group > _BARRIERS:
                raise PassError(
                    f"{threads // group} groups of {group} threads in a block of {threads} need too many barriers",
                    location=place_of(op),
                    hint=f"each group takes one of {_BARRIERS}: use larger groups",
                )
            return "block", group
    if scope == "auto" and threads is not None and found.cluster > 1 and group == threads * found.cluster:
        return "cluster", 0
    if scope == "auto" and threads is not None and found.blocks and group == threads * found.blocks:
        return "grid", 0
    raise PassError(
        f"{_name(op)} over groups of {group} threads{'' if scope == 'auto' else f' of a {scope}'} cannot be done",
        location=place_of(op),
        values={
            "block": found.facts.block or "known at run time",
            "cluster": found.facts.cluster or "known at run time",
            "grid": found.facts.grid or "known at run time",
        },
        hint="groups are 1 to 32 lanes, a power of two; whole warps of a block; or all threads of the block, the"
        " cluster or the grid",
    )


def _check_grid(op: ir.Operation, found: KernelFacts) -> None:
    if kind_of(op) == "scan":
        raise PassError(f"{_name(op)} over the grid cannot be done", location=place_of(op),
                        hint="scan each block, and their totals in a second kernel; or say scope='block'")  # fmt: skip
    if not found.facts.cooperative:
        raise PassError(
            f"{_name(op)} over the grid, in a launch that is not cooperative: its blocks need not run at once",
            location=place_of(op),
            values={"grid": found.facts.grid or "known at run time"},
            hint="launch(..., cooperative=True) and workspace=; or scope='block', which folds over each block alone",
        )
    if workspace_of(op) is None:
        raise PassError(
            f"{_name(op)} over the grid takes global memory",
            location=place_of(op),
            hint="workspace=tensor of cute.grid_workspace(blocks, values) Int64, zero before its first use",
        )


def _name(op: ir.Operation) -> str:
    name = NAMES[kind_of(op)]
    return f"{'an' if name[0] == 'a' else 'a'} {name}"
