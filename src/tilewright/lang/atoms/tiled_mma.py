"""Tiled MMAs: an MMA atom repeated over warps and over the tile, and each thread's part of A, B and C.

The algebra is that of CUTLASS' `cute/atom/mma_atom.hpp` (its public description: media/docs/cpp/cute/0t_mma_atom.md).
"""

from __future__ import annotations

from typing import Any

from tilewright import layout as algebra
from tilewright.base.errors import CompileError
from tilewright.ir.layout_text import encode
from tilewright.lang.atoms.mma_atom import AsyncMmaOp, MmaAtom, MmaOp
from tilewright.lang.atoms.partition import joined, modes, part_of, warn_of_few_threads
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import as_numeric
from tilewright.lang.tensors.allocation import make_rmem_tensor
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout
from tilewright.layout.partition import mma_operand

# The modes of M, N, K that an operand has.
_OPERAND_MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}


class TiledMma(MmaAtom):
    """An MMA atom over threads `atom_layout_mnk` and, mode by mode, over the tile that `permutation_mnk` orders.

    Entries of `permutation_mnk` are extents, layouts, or None for the extent of the atoms side by side.

    Raises:
        CompileError: an extent of the permutation is no multiple of the atoms side by side.
    """

    def __init__(self, op: MmaOp, atom_layout_mnk: Layout, permutation_mnk: tuple[Any, Any, Any]) -> None:
        super().__init__(op)
        self.atom_layout_mnk = atom_layout_mnk
        self.permutation_mnk = permutation_mnk
        self.thr_layout_vmnk: Layout = algebra.tiled_product(self.thr_id, atom_layout_mnk)
        for mode, name in enumerate("MNK"):
            covered = self._covered(mode)
            if self.tile_size(mode) % covered:
                raise CompileError(
                    f"the tile of {self.tile_size(mode)} along {name} is no multiple of the atoms side by side",
                    location=user_location(),
                    values={"permutation": permutation_mnk[mode], "atoms": f"{covered} along {name}"},
                )

    def _covered(self, mode: int) -> int:
        return self.shape_mnk[mode] * int(algebra.size(self.thr_layout_vmnk, mode=[mode + 1]))

    @property
    def __tw_threads__(self) -> Layout:
        """What `cute.size` counts."""
        return self.thr_layout_vmnk

    @property
    def size(self) -> int:
        """Threads of the tile."""
        return int(algebra.size(self.thr_layout_vmnk))

    def tile_size(self, mode: int) -> int:
        """Extent of the tile along M, N or K (mode 0, 1, 2)."""
        return int(algebra.size(self._permutation(mode)))

    def get_tile_size(self, mode_idx: int) -> int:
        return self.tile_size(mode_idx)

    def _permutation(self, mode: int) -> Any:
        given = self.permutation_mnk[mode]
        return algebra.Layout(self._covered(mode)) if given is None else given if _is_layout(given) else Layout(given)

    def get_slice(self, thr_idx: Any) -> ThrMma:
        """The part of thread `thr_idx`."""
        warn_of_few_threads("tiled MMA", self.size, thr_idx)
        return ThrMma(self, thr_idx)

    get_thread_slice = get_slice

    def _cut(self, operand: str) -> tuple[Any, ...]:
        """How the algebra cuts an operand, see `layout.partition.mma_operand`."""
        first, second = _OPERAND_MODES[operand]
        packed = self._packed(operand)
        permutation = self._permutation(second)
        return (
            (self._permutation(first), Layout(self.tile_size(second) // packed) if packed > 1 else permutation),
            (self.shape_mnk[first], self.shape_mnk[second] // packed),
            getattr(self, f"tv_layout_{operand}"),
            tuple(int(algebra.size(self.thr_layout_vmnk, mode=[mode + 1])) for mode in (first, second)),
        )

    def _tiled(self, operand: str) -> Layout:
        """(thread, value) -> index in the operand's tile, for all threads of the block."""
        cut = mma_operand(Layout(self._tile(operand)), *self._cut(operand))
        vmnk = self._over_vmnk(operand, cut[0])
        layout = algebra.composition(vmnk, self._thread_to_vmnk())
        return joined(layout, cut[1])

    def _packed(self, operand: str) -> int:
        """Elements along K for each that the operand holds."""
        return self.traits.packed if operand == "A" else 1

    def _tile(self, operand: str) -> tuple[int, int]:
        """The extents of the operand's tile."""
        first, second = _OPERAND_MODES[operand]
        return self.tile_size(first), self.tile_size(second) // self._packed(operand)

    def _over_vmnk(self, operand: str, threads: Layout) -> Layout:
        """Threads (v,(thr,thr)) as (v,m,n,k): threads along the operand's missing mode hold the same."""
        value, grid = modes(threads)
        own = dict(zip(_OPERAND_MODES[operand], modes(grid), strict=True))
        parts = []
        for mode in range(3):
            repeated = Layout(int(algebra.size(self.thr_layout_vmnk, mode=[mode + 1])), 0)
            parts.append(own.get(mode, repeated))
        return joined(value, *parts)

    def _thread_to_vmnk(self) -> Layout:
        whole = joined(self.thr_layout_vmnk, algebra.complement(self.thr_layout_vmnk))
        used = Layout((self.size, 1), (1, 0))
        layout: Layout = algebra.composition(used, algebra.right_inverse(whole))
        return layout

    @property
    def tv_layout_A_tiled(self) -> Layout:
        """(thread, value) -> index in the (M,K) tile."""
        return self._tiled("A")

    @property
    def tv_layout_B_tiled(self) -> Layout:
        """(thread, value) -> index in the (N,K) tile."""
        return self._tiled("B")

    @property
    def tv_layout_C_tiled(self) -> Layout:
        """(thread, value) -> index in the (M,N) tile."""
        return self._tiled("C")

    def partition_shape_A(self, shape_mk: Any) -> Any:
        """The shape that `partition_A` gives to a tensor of this shape."""
        return self._shape("A", shape_mk)

    def partition_shape_B(self, shape_nk: Any) -> Any:
        """The shape that `partition_B` gives to a tensor of this shape."""
        return self._shape("B", shape_nk)

    def partition_shape_C(self, shape_mn: Any) -> Any:
        """The shape that `partition_C` gives to a tensor of this shape."""
        return self._shape("C", shape_mn)

    def _shape(self, operand: str, shape: Any) -> Any:
        return part_of(Layout(shape), "partition_mma", *self._cut(operand), (0, (0, 0))).shape

    def make_fragment_A(self, input: Any) -> Tensor:
        """Registers for operand A, for a partitioned tensor (or a shape)."""
        return self._fragment("A", input)

    def make_fragment_B(self, input: Any) -> Tensor:
        """Registers for operand B, for a partitioned tensor (or a shape)."""
        return self._fragment("B", input)

    def make_fragment_C(self, input: Any) -> Tensor:
        """Registers for operand C, for a partitioned tensor (or a shape)."""
        return self._fragment("C", input)

    def _fragment(self, operand: str, source: Any) -> Tensor:
        if operand != "C" and isinstance(self.op, AsyncMmaOp) and self.op.in_memory(operand):
            return self._where_it_lies(operand, source)
        layout = source.layout if isinstance(source, Tensor) else source if _is_layout(source) else Layout(source)
        shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
        if algebra.size(shape[0]) != self.values(operand):
            raise CompileError(
                f"a fragment of operand {operand} holds {self.values(operand)} values in its first mode",
                location=user_location(),
                values={"tensor": layout, "first mode": algebra.size(shape[0])},
                hint=f"partition the tensor first, with partition_{operand} of the thread's slice",
            )
        registers = Layout(shape) if operand == "C" else _values_first(layout)
        return make_rmem_tensor(registers, self.dtype(operand))

    def _where_it_lies(self, operand: str, source: Any) -> Tensor:
        """The partitioned tensor itself, whose tiles the product reads from shared memory."""
        if not isinstance(source, Tensor) or source.is_coordinates or source.memspace is not AddressSpace.smem:
            raise CompileError(
                f"operand {operand} of this product lies in shared memory",
                location=user_location(),
                values={"got": source},
                hint=f"give make_fragment_{operand} what partition_{operand} made of the tensor there",
            )
        return source

    def key(self) -> tuple[Any, ...]:
        return *super().key(), self.atom_layout_mnk, self.permutation_mnk

    def __str__(self) -> str:
        thr = "(" + ",".join(str(mode.shape) for mode in modes(self.thr_layout_vmnk)) + ")"
        steps = "(" + ",".join(str(mode.stride) for mode in modes(self.thr_layout_vmnk)) + ")"
        permutation = ",".join("_" if item is None else str(item) for item in self.permutation_mnk)
        return f"Tiled MMA\n  Thr Layout VMNK: {thr}:{steps}\n  Permutation MNK: ({permutation})\n{super().__str__()}"


def _is_layout(value: Any) -> bool:
    return isinstance(value, (Layout, algebra.ComposedLayout))


def _values_first(layout: Any) -> Layout:
    """A compact layout of the shape: values of an instruction together, further modes in the order of their strides."""
    outer = layout.outer if isinstance(layout, algebra.ComposedLayout) else layout
    first, *rest = modes(outer)
    values = Layout(first.shape)
    if not rest:
        return joined(values)
    compact = algebra.make_layout_like(joined(*rest))
    count = int(algebra.size(values))
    steps = algebra.transform_leaf(lambda step: step * count, compact.stride)
    return joined(values, *modes(Layout(compact.shape, steps)))


class ThrMma(TiledMma):
    """One thread's part of a tiled MMA: it partitions tensors and makes fragments."""

    __tw_mutable__ = False  # fields are set of the tiled MMA

    def __init__(self, tiled: TiledMma, thr_idx: Any) -> None:
        super().__init__(tiled.op, tiled.atom_layout_mnk, tiled.permutation_mnk)
        self.thr_idx: Any = thr_idx if isinstance(thr_idx, int) else as_numeric(thr_idx)

    def partition_A(self, input_mk: Tensor) -> Tensor:
        """The thread's part of A, of modes (M,K,...): (values, rest of M, rest of K, ...)."""
        return self._part("A", input_mk)

    def partition_B(self, input_nk: Tensor) -> Tensor:
        """The thread's part of B, of modes (N,K,...): (values, rest of N, rest of K, ...)."""
        return self._part("B", input_nk)

    def partition_C(self, input_mn: Tensor) -> Tensor:
        """The thread's part of C, of modes (M,N,...): (values, rest of M, rest of N, ...)."""
        return self._part("C", input_mn)

    def _part(self, operand: str, tensor: Tensor) -> Tensor:
        first, second = _OPERAND_MODES[operand]
        vmnk = self.thr_layout_vmnk.get_flat_coord(self.thr_idx)
        thread = (vmnk[0], (vmnk[first + 1], vmnk[second + 1]))
        self._check_whole(operand, tensor)
        part: Tensor = part_of(tensor, "partition_mma", *self._cut(operand), thread)
        return part

    def _check_whole(self, operand: str, tensor: Tensor) -> None:
        """Instructions read whole tiles from shared memory: those that stick out would take what lies behind."""
        if operand == "C" or not isinstance(self.op, AsyncMmaOp):
            return
        if tensor.is_coordinates or tensor.memspace is not AddressSpace.smem or not isinstance(tensor.shape, tuple):
            return
        tile = self._tile(operand)
        extents = tuple(algebra.size(mode) for mode in tensor.shape[:2])
        if any(isinstance(extent, int) and extent % size for extent, size in zip(extents, tile, strict=False)):
            raise CompileError(
                f"the tile of operand {operand} is no multiple of what the tiled MMA takes",
                location=user_location(3),
                values={"tile": extents, "tiled MMA": tile},
                hint="choose tiles that are multiples of the instruction's shape along M, N and K",
            )

    def __extract_mlir_values__(self) -> list[Any]:
        return [] if isinstance(self.thr_idx, int) else [self.thr_idx.ir_value()]

    def __new_from_mlir_values__(self, values: list[Any]) -> ThrMma:
        return ThrMma(self, type(self.thr_idx).from_ir(values[0]) if values else self.thr_idx)

    def __tw_structure__(self) -> tuple[Any, ...]:
        """What may not change in a region: all but a thread index of run time."""
        return (*self.key()[:-1], encode(self.thr_idx)[0])

    def key(self) -> tuple[Any, ...]:
        return *super().key(), self.thr_idx


def make_tiled_mma(
    op_or_atom: Any,
    atom_layout_mnk: Any = (1, 1, 1),
    permutation_mnk: Any = None,
    *,
    loc: object = None,
    ip: object = None,
) -> TiledMma:
    """A tiled MMA of an operation or atom: `atom_layout_mnk` warps (or threads) along M, N, K.

    Raises:
        CompileError: as `TiledMma`, or not three modes.
    """
    op = op_or_atom.op if isinstance(op_or_atom, MmaAtom) else op_or_atom
    if not isinstance(op, MmaOp):
        raise CompileError(f"{op!r} is no MMA operation", location=user_location())
    layout = atom_layout_mnk if _is_layout(atom_layout_mnk) else Layout(tuple(atom_layout_mnk))
    permutation = (None, None, None) if permutation_mnk is None else tuple(permutation_mnk)
    if len(layout.shape) != 3 or len(permutation) != 3:
        raise CompileError(
            "a tiled MMA takes three modes: M, N, K",
            location=user_location(),
            values={"atom_layout_mnk": layout, "permutation_mnk": permutation},
        )
    return TiledMma(op, layout, permutation)
