"""Tiled copies: a copy atom repeated over threads and values, and each thread's part of a tensor.

The layout of (thread, value) to the index in a tile says which thread moves what; the algebra is that of CUTLASS'
`cute/atom/copy_atom.hpp` (its public description: media/docs/cpp/cute/0x_gemm_tutorial.md, "TiledCopy").
"""

from __future__ import annotations

import math
from typing import Any

from tilewright import layout as algebra
from tilewright.base.errors import CompileError
from tilewright.ir.layout_text import encode
from tilewright.lang.atoms.copy_atom import CopyAtom
from tilewright.lang.atoms.partition import joined, modes, part_of, warn_of_few_threads
from tilewright.lang.diagnostics.argument_checks import LAYOUT, Kind, instance, takes
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import as_numeric
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout
from tilewright.layout.partition import thread_values
from tilewright.layout.views import outer_of


class TiledCopy(CopyAtom):
    """A copy atom over a tile of extents or layouts; `layout_tv_tiled` maps (thread, value) to the index in the tile.

    Raises:
        CompileError: the atom's threads or values do not divide those of the tile.
    """

    def __init__(self, atom: CopyAtom, layout_tv: Layout, tiler_mn: Any) -> None:
        super().__init__(atom.op, atom.value_type, atom.num_bits, atom.hints)
        self.layout_tv_tiled = layout_tv
        self.tile: Any = tiler_mn
        threads, values = (int(algebra.size(mode)) for mode in modes(layout_tv))
        self._check_tile()
        for what, whole, part in (("threads", threads, self.threads), ("values", values, self.values)):
            if whole % part:
                raise CompileError(
                    f"a tiled copy of {whole} {what}, of which one instruction takes {part}",
                    location=user_location(),
                    values={
                        "thread-value layout": layout_tv,
                        "tile": tiler_mn,
                        what: f"{whole} in the tile, {part} in the atom",
                    },
                    hint="give each thread a multiple of num_bits_per_copy, or use a narrower atom",
                )

    @property
    def tiler_mn(self) -> tuple[Layout, ...]:
        """The tile as layouts, one a mode, as CuTe has it: an extent n is n:1."""
        return tuple(mode if isinstance(mode, Layout) else Layout(mode) for mode in algebra.wrap(self.tile))

    def _check_tile(self) -> None:
        """The thread-value layout may not lead out of the tile."""
        held = math.prod(int(algebra.size(mode)) for mode in algebra.wrap(self.tile))
        reached = int(algebra.cosize(self.layout_tv_tiled))
        if reached > held:
            raise CompileError(
                "a thread-value layout reaches past the end of its tile",
                location=user_location(),
                values={
                    "thread-value layout": f"{self.layout_tv_tiled}   index {reached - 1}",
                    "tile": f"{self.tile}   {held} elements",
                },
                hint="cute.make_layout_tv(thr_layout, val_layout) gives the tile and the layout that fit",
            )

    @property
    def atom(self) -> CopyAtom:
        return CopyAtom(self.op, self.value_type, self.num_bits, self.hints)

    @property
    def __tw_threads__(self) -> Layout:
        """What `cute.size` counts."""
        return Layout(self.size)

    @property
    def size(self) -> int:
        """Threads of the tile."""
        return int(algebra.size(self.layout_tv_tiled, mode=[0]))

    @property
    def layout_src_tv_tiled(self) -> Layout:
        """(thread, value) of the source -> index in the tile."""
        return self._reference(self.layout_src_tv)

    @property
    def layout_dst_tv_tiled(self) -> Layout:
        """(thread, value) of the destination -> index in the tile."""
        return self._reference(self.layout_dst_tv)

    def get_slice(self, thr_idx: Any) -> ThrCopy:
        """The part of thread `thr_idx`."""
        warn_of_few_threads("tiled copy", self.size, thr_idx)
        return ThrCopy(self, thr_idx)

    get_thread_slice = get_slice

    def retile(self, src: Tensor) -> Tensor:
        """A register fragment as this copy's instructions see it: ((atom values, rest), rests...).

        The fragment is one that a tiled MMA, or another tiled copy, made over the same tile; or over several side by
        side, as the accumulator of an instruction wider than the copy (`make_tiled_copy_C_atom`).
        """
        return src.view("retile", *self._retiling(outer_of(src.layout)))

    def _transformed(self, side: Layout) -> Layout:
        """(thread, value) -> (m, n), the atom's values dealt as `side` of the instruction holds them."""
        atom_tv, rest = modes(algebra.zipped_divide(self.layout_tv_tiled, (self.threads, self.values)))
        to_reference = algebra.composition(algebra.right_inverse(self.layout_ref_tv), side)
        thread, value = modes(algebra.composition(atom_tv, to_reference))
        rest_thread, rest_value = modes(rest)
        whole = joined(joined(thread, rest_thread), joined(value, rest_value))
        layout: Layout = algebra.coalesce(whole, (1, (1, 1)))
        return layout

    def _reference(self, side: Layout) -> Layout:
        """The tile itself, partitioned: (thread, value) -> index in the tile."""
        extents = tuple(int(algebra.size(mode)) for mode in algebra.wrap(self.tile))
        tile = Layout(extents)
        cut = thread_values(tile, extents, self._transformed(side))
        return joined(cut[0], modes(cut[1])[0])

    def _retiling(self, layout: Layout) -> tuple[Any, Layout]:
        """The tiler and the order by which `retile` of the algebra gives the fragment `layout` another arrangement."""
        if not isinstance(layout.shape, tuple):
            layout = joined(layout)
        rank = len(layout.shape)
        values = int(algebra.size(layout, mode=[0]))
        extents = tuple(int(algebra.size(mode)) for mode in algebra.wrap(self.tile))
        numbers = algebra.composition(algebra.right_inverse(self.layout_tv_tiled), Layout(extents))
        fragments = _numbers_of_groups(numbers, self.size * values)
        order = joined(Layout(values), _scaled(algebra.right_inverse(fragments), values))
        by_atom = algebra.zipped_divide(algebra.coalesce(order), self.values)
        grid = algebra.product_each(fragments.shape)
        self._require_grid(layout, values, grid[: rank - 1])
        return (values, *grid[: rank - 1]), by_atom

    def _require_grid(self, layout: Layout, values: int, grid: tuple[int, ...]) -> None:
        extents = [int(algebra.size(mode)) for mode in modes(layout)[1:]]
        held = int(algebra.size(self.layout_tv_tiled, mode=[1]))
        larger = values % held == 0 and set(grid) <= {1}  # one fragment spans several tiles
        if (held % values and not larger) or any(extent % step for extent, step in zip(extents, grid, strict=False)):
            raise CompileError(
                "the fragment does not fill the tile of the copy that retiles it",
                location=user_location(),
                values={"fragment": layout, "tile": self.tile, "fragments in a tile": grid},
                hint="retile fragments of the tiled MMA (or tiled copy) that the copy was made from",
            )

    def key(self) -> tuple[Any, ...]:
        return *super().key(), self.layout_tv_tiled, self.tile

    def __str__(self) -> str:
        return (
            f"Tiled Copy\n  Tiler MN:        {self.tile}\n"
            f"  TV Layout tiled: {self.layout_tv_tiled}\n{super().__str__()}"
        )


def _numbers_of_groups(layout: Layout, count: int) -> Layout:
    """The modes of `layout` that lead from one group of `count` indices to another, and the group's number.

    Unlike `upcast`, which wants whole groups: threads that hold the same leave gaps.
    """

    def extent(size: int, step: int) -> int:
        return size if step % count == 0 else int(algebra.shape_div(size, algebra.shape_div(count, step)))

    def stride(size: int, step: int) -> int:
        return int(algebra.shape_div(step, count))

    shape = algebra.transform_leaf(extent, layout.shape, layout.stride)
    return Layout(shape, algebra.transform_leaf(stride, layout.shape, layout.stride))


def _scaled(layout: Layout, factor: int) -> Layout:
    return Layout(layout.shape, algebra.transform_leaf(lambda step: step * factor, layout.stride))


class ThrCopy(TiledCopy):
    """One thread's part of a tiled copy: it partitions sources and destinations."""

    def __init__(self, tiled: TiledCopy, thr_idx: Any) -> None:
        super().__init__(tiled, tiled.layout_tv_tiled, tiled.tile)
        self.thr_idx: Any = thr_idx if isinstance(thr_idx, int) else as_numeric(thr_idx)

    def partition_S(self, src: Tensor) -> Tensor:
        """What the thread reads of `src`: ((atom values, rest), rests of the tile, further modes)."""
        return self._part(self.layout_src_tv, src)

    def partition_D(self, dst: Tensor) -> Tensor:
        """What the thread writes of `dst`."""
        return self._part(self.layout_dst_tv, dst)

    def _part(self, side: Layout, target: Tensor) -> Tensor:
        part: Tensor = part_of(target, "partition", self.tile, self._transformed(side), self.thr_idx)
        return part

    def __extract_mlir_values__(self) -> list[Any]:
        return [] if isinstance(self.thr_idx, int) else [self.thr_idx.ir_value()]

    def __new_from_mlir_values__(self, values: list[Any]) -> ThrCopy:
        return ThrCopy(self, type(self.thr_idx).from_ir(values[0]) if values else self.thr_idx)

    def __tw_structure__(self) -> tuple[Any, ...]:
        """What may not change in a region: all but a thread index of run time."""
        return (*self.key()[:-1], encode(self.thr_idx)[0])

    def key(self) -> tuple[Any, ...]:
        return *super().key(), self.thr_idx


_ATOM = instance("a copy atom", CopyAtom)
_TILED = instance("a tiled copy", TiledCopy)
_TILED_MMA = Kind("a tiled MMA", lambda value: hasattr(value, "tv_layout_C_tiled"))


@takes(_ATOM, LAYOUT)
def make_tiled_copy(atom: CopyAtom, layout_tv: Layout, tiler_mn: Any, **_: object) -> TiledCopy:
    """A tiled copy from the layout of (thread, value) to the index in a tile of extents (or layouts) `tiler_mn`."""
    return TiledCopy(_plain(atom), layout_tv, tiler_mn)


@takes(_ATOM, LAYOUT, LAYOUT)
def make_tiled_copy_tv(atom: CopyAtom, thr_layout: Layout, val_layout: Layout, **_: object) -> TiledCopy:
    """A tiled copy from layouts that map coordinates of the tile to thread and value numbers."""
    tiler, layout_tv = algebra.make_layout_tv(thr_layout, val_layout)
    return TiledCopy(_plain(atom), layout_tv, tiler)


@takes(_ATOM, _TILED)
def make_tiled_copy_S(atom: CopyAtom, tiled_copy: TiledCopy, **_: object) -> TiledCopy:
    """A tiled copy with another atom, that deals values as the source of `tiled_copy` does."""
    return TiledCopy(_plain(atom), tiled_copy.layout_src_tv_tiled, tiled_copy.tile)


@takes(_ATOM, _TILED)
def make_tiled_copy_D(atom: CopyAtom, tiled_copy: TiledCopy, **_: object) -> TiledCopy:
    """A tiled copy with another atom, that deals values as the destination of `tiled_copy` does."""
    return TiledCopy(_plain(atom), tiled_copy.layout_dst_tv_tiled, tiled_copy.tile)


@takes(_ATOM, _TILED_MMA)
def make_tiled_copy_A(atom: CopyAtom, tiled_mma: Any, **_: object) -> TiledCopy:
    """A tiled copy that deals values as operand A of `tiled_mma` needs them."""
    return TiledCopy(_plain(atom), tiled_mma.tv_layout_A_tiled, (tiled_mma.tile_size(0), tiled_mma.tile_size(2)))


@takes(_ATOM, _TILED_MMA)
def make_tiled_copy_B(atom: CopyAtom, tiled_mma: Any, **_: object) -> TiledCopy:
    """A tiled copy that deals values as operand B of `tiled_mma` needs them."""
    return TiledCopy(_plain(atom), tiled_mma.tv_layout_B_tiled, (tiled_mma.tile_size(1), tiled_mma.tile_size(2)))


@takes(_ATOM, _TILED_MMA)
def make_tiled_copy_C(atom: CopyAtom, tiled_mma: Any, **_: object) -> TiledCopy:
    """A tiled copy that deals values as operand C of `tiled_mma` holds them."""
    return TiledCopy(_plain(atom), tiled_mma.tv_layout_C_tiled, (tiled_mma.tile_size(0), tiled_mma.tile_size(1)))


@takes(_ATOM, _TILED_MMA)
def make_tiled_copy_C_atom(atom: CopyAtom, mma: Any, **_: object) -> TiledCopy:
    """The smallest tiled copy of values as operand C of `mma` holds them: one instruction's worth a thread."""
    whole = mma.tv_layout_C_tiled
    layout_tv = algebra.composition(whole, Layout((int(algebra.size(whole, mode=[0])), _plain(atom).values)))
    return _over_active_modes(_plain(atom), layout_tv, (mma.tile_size(0), mma.tile_size(1)))


@takes(_ATOM, LAYOUT, LAYOUT)
def make_cotiled_copy(atom: CopyAtom, atom_layout_tv: Layout, data_layout: Layout, **_: object) -> TiledCopy:
    """A tiled copy from the layout of (thread, value) to the address in data of layout `data_layout`.

    Raises:
        CompileError: an address lies outside the data.
    """
    inverse = joined(algebra.left_inverse(data_layout), Layout(1, 0))
    layout_tv = algebra.composition(inverse, atom_layout_tv)
    count = int(algebra.size(layout_tv))
    if any(int(data_layout(layout_tv(index))) != int(atom_layout_tv(index)) for index in range(count)):
        raise CompileError(
            "make_cotiled_copy: a thread's value lies outside the data",
            location=user_location(),
            values={"thread-value layout": atom_layout_tv, "data layout": data_layout},
        )
    return _over_active_modes(_plain(atom), layout_tv, algebra.product_each(data_layout.shape))


def _over_active_modes(atom: CopyAtom, layout_tv: Layout, extents: tuple[int, ...]) -> TiledCopy:
    """The tiled copy over just those coordinates of a tile of `extents` that `layout_tv` takes."""
    tile = Layout(extents)
    tiler = []
    for mode in range(len(extents)):
        step = tuple(int(other == mode) for other in range(len(extents)))
        tiler.append(algebra.filter(algebra.composition(Layout(extents, step), layout_tv)))
    active = algebra.composition(tile, tuple(tiler))
    return TiledCopy(atom, algebra.composition(algebra.left_inverse(active), layout_tv), tuple(tiler))


def _plain(atom: CopyAtom) -> CopyAtom:
    return atom.atom if isinstance(atom, TiledCopy) else atom
