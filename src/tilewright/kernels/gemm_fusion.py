"""A matrix product with an epilogue, for arrays of given types, shapes, strides and alignments.

The epilogue's graph is one of (L, M, N): M and N are those of the product, and L, its batch, is cut where a tensor goes
through it with several strides. What a kernel takes of the epilogue is prepared as for the fused elementwise kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import EpilogueError
from tilewright.cute import Numeric
from tilewright.kernels import epilogue_plans, views
from tilewright.kernels.gemm_epilogue import Fused, grid_of
from tilewright.kernels.gemm_plans import GemmPlan
from tilewright.kernels.gemm_sm90_plans import Sm90Plan
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.lowering.compose import Epilogue
from tilewright.lib.epilogue.lowering.from_dag import epilogue_of
from tilewright.lib.epilogue.lowering.loads import Accumulator
from tilewright.lib.epilogue.lowering.op import View
from tilewright.lib.epilogue.lowering.reductions import ATOMIC, PARTIALS
from tilewright.lib.epilogue.lowering.space import Axis, Operand, Space, check_bits, cut
from tilewright.lib.epilogue.lowering.stores import TensorStore
from tilewright.lib.epilogue.nodes import NodeBase

ACCUMULATOR = "accum"
MOST_VECTOR = 8  # elements of a row of a strip that keep their order


@dataclass(frozen=True)
class Fusion:
    """What a kernel takes of an epilogue.

    Attributes:
        fused: the operations, and the threads as they see them.
        shared_bytes: shared memory of a block.
        names: of the arrays, in the order in which the kernel takes them, with their views; None: a workspace.
        numbers: the names of the numbers.
        workspaces: their shapes and types.
        fills: what outputs begin with, by name.
    """

    fused: Fused
    shared_bytes: int
    names: tuple[tuple[str, views.Strided] | None, ...]
    numbers: tuple[str, ...]
    workspaces: tuple[tuple[tuple[int, ...], type[Numeric]], ...]
    fills: tuple[tuple[str, Any], ...]

    def fill(self, given: Mapping[str, Any]) -> None:
        """Give outputs what they begin with."""
        for name, number in self.fills:
            given[name][...] = number

    def arguments(self, given: Mapping[str, Any], like: Any) -> tuple[Any, ...]:
        """The kernel's arguments from arrays and numbers by name; workspaces lie where `like` does."""
        self.fill(given)
        spaces = iter(self.workspaces)
        tensors = (
            epilogue_plans.make_workspace(like, *next(spaces))
            if item is None
            else epilogue_plans.as_seen(given[item[0]], item[1])
            for item in self.names
        )
        return (*tensors, *(given[name] for name in self.numbers))


def plain(plan: GemmPlan | Sm90Plan, result: views.Strided, dtype: type[Numeric], start: int) -> Fused:
    """The epilogue that stores the product to D, seen as (M, N, batch...), of elements `dtype` at address `start`."""
    (m, n, *batch), (down, along, *steps) = result.shape, result.strides
    vector = views.Strided((*batch, m, n), (*steps, down, along)).vector(dtype, start)
    view = View(dtype, None, 1 if along == 1 else None, (None,) * len(batch), vector)
    ops = (Accumulator(ACCUMULATOR, ()), TensorStore("D", (ACCUMULATOR,), view))
    return Fused(Epilogue(ops), grid_of(plan, min(vector, MOST_VECTOR)))


def fusion(dag: DAGIR, starts: Mapping[str, int], plan: GemmPlan | Sm90Plan, way: str = PARTIALS) -> Fusion:
    """The epilogue of a graph, after its passes, behind a product with this plan.

    Args:
        dag: the graph; `accum` is a load of it.
        starts: the addresses of its arrays (modulo 16), by name of load or output.
        plan: of the product.
        way: `PARTIALS` or `ATOMIC`, of reductions whose results several blocks share.

    Raises:
        EpilogueError: a tensor has several strides along M or N.
    """
    tensors = [meta for meta in epilogue_plans.tensors_of(dag) if meta.name != ACCUMULATOR]
    shape = dag.get_node_meta(ACCUMULATOR).shape
    operands = [epilogue_plans.operand_of(meta, starts[epilogue_plans.argument_of(meta)], shape) for meta in tensors]
    folds = {meta.name: meta for meta, operand in zip(tensors, operands, strict=True) if operand.reduced}
    _check_strides(tensors, operands)
    space = _space(operands, shape)
    vector = min(epilogue_plans.widest_vector(space), MOST_VECTOR)
    grid = grid_of(plan, vector)
    height, width = plan.share
    strips = height // plan.strip
    shapes = {name: epilogue_plans.reduced_of(space, meta, grid, strips, way) for name, meta in folds.items()}
    known = {op.name: epilogue_plans.view_of(space, op, vector) for op in operands}
    epilogue = epilogue_of(dag, known, shapes, ACCUMULATOR)
    parts = -(-shape[1] // height), -(-shape[2] // width)
    return Fusion(
        Fused(epilogue, grid),
        plan.shared_bytes + plan.teams * epilogue.smem_bytes(grid),
        tuple(epilogue_plans.names_of(dag, epilogue, space)),
        epilogue_plans.numbers_of(dag),
        tuple(
            (op.workspace((*shape[1:], shape[0]), *parts), op.fold.dtype)
            for op in epilogue.reductions
            if op.way == PARTIALS
        ),
        tuple(
            (op.name, op.fold.neutral.value)
            for op in epilogue.reductions
            if 0 in shape or (op.way == ATOMIC and epilogue_plans.check_atomic(op, folds[op.name]))
        ),
    )


def _check_strides(tensors: Sequence[NodeBase], operands: Sequence[Operand]) -> None:
    for meta, operand in zip(tensors, operands, strict=True):
        name = epilogue_plans.argument_of(meta)
        for mode, letter in ((1, "M"), (2, "N")):
            if len(operand.modes[mode]) > 1:
                raise EpilogueError(
                    f"Tensor {name} goes through {letter} of the product with several strides.",
                    location=meta.location,
                    values={"extents and strides": operand.modes[mode]},
                    hint="reshape the array itself, before or after the product",
                )


def _space(operands: Sequence[Operand], shape: Sequence[int]) -> Space:
    """The modes M and N as they are, and those of the batch."""
    batch, m, n = shape
    rows, columns = (
        Axis(extent, {op.name: op.modes[mode][0][1] for op in operands}) for mode, extent in ((1, m), (2, n))
    )
    axes = [axis for axis in reversed(cut(operands, 0, batch)) if axis.extent > 1]
    made = Space(rows, columns, tuple(axes), {op.name: op for op in operands})
    for operand in operands:
        if operand.bits:
            check_bits(made, operand)
    return made


def fitting(
    dag: DAGIR, starts: Mapping[str, int], plans: Sequence[GemmPlan | Sm90Plan], available: int, way: str = PARTIALS
) -> tuple[GemmPlan | Sm90Plan, Fusion]:
    """The first of the plans with which the epilogue takes no more than `available` bytes of shared memory.

    Raises:
        EpilogueError: there is none, or none with whole rows where the epilogue needs them, or what `fusion` raises.
    """
    columns = dag.get_node_meta(ACCUMULATOR).shape[2]
    tried = {}
    for plan in plans:
        found = fusion(dag, starts, plan, way)
        if found.fused.epilogue.whole_rows and columns > plan.share[1]:
            continue
        if found.shared_bytes <= available:
            return plan, found
        tried[f"tile {plan.tile}"] = f"{found.shared_bytes} bytes of {available}"
    if not tried:
        raise EpilogueError(
            "A function of whole rows does not fit the tiles of a product.",
            values={"columns": columns, "of a tile": ", ".join(str(plan.tile[1]) for plan in plans)},
            hint="compute it in a kernel of its own: tilewright.epilogue.compile takes longer rows",
        )
    raise EpilogueError(
        "The epilogue consumes too much shared memory. No valid tile description is found in the generator.",
        values=tried,
        hint="let the epilogue reduce fewer values at once, or do a part of it in a kernel of its own",
    )
