"""Copies of boxes of a tensor by the copy engine of a multiprocessor (TMA), sm_90 and up.

`make_tiled_tma_atom`, on the host, gives an atom, which holds a tensor map, and a tensor of coordinates that has the
shape of the tensor in global memory. In a kernel `tma_partition` cuts both sides into what one copy moves, and
`cute.copy` starts it: one thread of the warp does. The parts are those of CUTLASS' `cute/atom/copy_traits_sm90_tma.hpp`
(its public description: media/docs/cpp/cute/0z_tma_tensors.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright import layout as algebra
from tilewright.base.errors import CompileError
from tilewright.hw.atoms import async_copy
from tilewright.ir import atom_text, build
from tilewright.lang import trace
from tilewright.lang.atoms.copy_atom import BulkAtom
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.nvgpu.cpasync import expect_space
from tilewright.lang.nvgpu.elect import one_thread_of_warp
from tilewright.lang.nvgpu.tma_ops import TmaOp
from tilewright.lang.tensors.pointer import AddressSpace, Held
from tilewright.lang.tensors.tensor import Tensor, placed_layout
from tilewright.layout import ComposedLayout, Layout

if TYPE_CHECKING:
    from mlir import ir


class TmaAtom(BulkAtom):
    """A copy of one box: `box` elements along the modes of the tensor map, the contiguous one first.

    `shared` says how many blocks of the cluster divide a tile among them: each copies a part and sends it to all.
    `leaves` are the leaves of the tensor's layout, of which it has `modes`, that the modes of the map are.
    """

    def __init__(
        self, op: TmaOp, value_type: type[Numeric], held: Held, box: tuple[int, ...], swizzle: int, shared: int,
        leaves: tuple[int, ...] = (), modes: int = 0,
    ) -> None:  # fmt: skip
        self.op: TmaOp = op
        self.value_type = value_type
        self.num_bits = 0
        self.held = held
        self.box = box
        self.swizzle = swizzle
        self.shared = shared
        self.leaves, self.modes = leaves, modes
        count = int(algebra.size(box)) * shared
        self.thr_id = Layout(1, 0)
        self.layout_src_tv = self.layout_dst_tv = self.layout_ref_tv = Layout((1, count), (0, 1))

    @property
    def map(self) -> ir.Value:
        """The tensor map."""
        return self.held.value

    @property
    def box_size(self) -> int:
        """Elements of a box."""
        return self.values // self.shared

    @property
    def text(self) -> str:
        return atom_text.write("tma", box="x".join(map(str, self.box)), swizzle=self.swizzle)

    def issue(self, src: Tensor, dst: Tensor, pred: Tensor | None, options: dict[str, Any]) -> None:
        """Start the copies of `cute.copy`."""
        self.op.issue(self, src, dst, pred, options)

    def boxes(self, coordinates: Tensor, shared: Tensor) -> list[tuple[Sequence[Any], Tensor]]:
        """What the copies of a part of `tma_partition` move: the coordinate of each box, and its place."""
        expect_space("a tensor copy", "side in shared memory", shared, AddressSpace.smem)
        if not coordinates.is_coordinates:
            raise CompileError(
                "a tensor copy (TMA) takes the tensor of coordinates that make_tiled_tma_atom gives",
                location=user_location(4),
                values={"got": coordinates},
                hint="partition it with tma_partition, and give cute.copy the parts",
            )
        if shared.element_type.width != self.value_type.width:
            raise CompileError(
                f"a tensor copy of {self.value_type} and shared memory of {shared.element_type}",
                location=user_location(4),
            )
        self._check_swizzle(shared)
        counts = [_elements(tensor) for tensor in (coordinates, shared)]
        if counts[0] != counts[1] or counts[0] % self.values:
            raise CompileError(
                "a tensor copy takes whole boxes, as many on both sides",
                location=user_location(4),
                values={"coordinates": coordinates.layout, "shared memory": shared.layout, "box": self.box},
                hint="partition both with tma_partition and fix all modes but the first",
            )
        return [self._box(coordinates, shared, number) for number in range(counts[0] // self.values)]

    def _check_swizzle(self, shared: Tensor) -> None:
        """Memory that is addressed by another swizzle than the copy engine's; without one only the address counts."""
        placed = placed_layout(shared)
        if not isinstance(placed, ComposedLayout):
            return
        inner = placed.inner
        found = async_copy.swizzle_bytes(inner.bits, inner.base, inner.shift, shared.element_type.width)
        if found != self.swizzle:
            raise CompileError(
                "a tensor copy with another swizzle than the tensor in shared memory has",
                location=user_location(5),
                values={"tensor map": _swizzle_text(self.swizzle), "shared memory": placed},
                hint="give make_tiled_tma_atom the layout by which the tensor in shared memory is allocated",
            )

    def _box(self, coordinates: Tensor, shared: Tensor, number: int) -> tuple[Sequence[Any], Tensor]:
        first = number * self.values
        at = algebra.add_coordinates(coordinates.iterator, coordinates.layout(first))
        at = at if isinstance(at, tuple) else (at,)
        place = shared.view("domain_offset", first) if first else shared
        return [*at, *(0,) * (len(self.box) - len(at))], place.view("composition", self.box_size)

    def __extract_mlir_values__(self) -> list[ir.Value]:
        return [self.map]

    def __new_from_mlir_values__(self, values: list[ir.Value]) -> TmaAtom:
        return TmaAtom(
            self.op, self.value_type, Held(values[0]), self.box, self.swizzle, self.shared, self.leaves, self.modes
        )

    def __tw_structure__(self) -> tuple[Any, ...]:
        """What may not change in a region: all but the tensor map."""
        return self.key()

    def key(self) -> tuple[Any, ...]:
        return self.op, self.value_type, self.box, self.swizzle, self.shared, self.leaves, self.modes

    def __str__(self) -> str:
        return f"TMA Atom\n  Box:        {self.box}\n  Value type: {self.value_type.facts.name}"


def _swizzle_text(size: int) -> str:
    return f"a swizzle of {size} bytes" if size else "no swizzle"


def _elements(tensor: Tensor) -> int:
    count = algebra.product(tensor.shape)
    if not isinstance(count, int):
        raise CompileError(
            "a tensor copy of a tile whose size is known only at run time",
            location=user_location(5),
            values={"tensor": tensor},
            hint="tile the tensors first, and partition them with tma_partition",
        )
    return count


def tma_partition(
    atom: TmaAtom,
    cta_coord: Any,
    cta_layout: Any,
    smem_tensor: Tensor,
    gmem_tensor: Tensor,
    *,
    loc: object = None,
    ip: object = None,
) -> tuple[Tensor, Tensor]:
    """The parts of both sides that this block copies: `((box, boxes), rests...)` of shared memory and coordinates.

    Mode 0 of both tensors is the tile. `cta_coord` in `cta_layout` is the block among those that share the tile; each
    block copies its part of a box that goes to several.

    Raises:
        CompileError: `atom` comes from elsewhere than make_tiled_tma_atom, or the tiles are of different sizes.
    """
    trace.device("tma_partition")
    if not isinstance(atom, TmaAtom):
        raise CompileError(f"tma_partition takes a TMA atom, not {type(atom).__name__}", location=user_location())
    tiles = [_tile(tensor) for tensor in (smem_tensor, gmem_tensor)]
    sizes = [algebra.size(tile) for tile in tiles]
    if not all(isinstance(size, int) for size in sizes) or sizes[0] != sizes[1] or sizes[0] % atom.values:
        raise CompileError(
            "mode 0 of both tensors of tma_partition is one tile, of whole boxes",
            location=user_location(),
            values={"shared memory": tiles[0], "coordinates": tiles[1], "elements of a box": atom.values},
            hint="tile the coordinates with local_tile, and group the modes of the tile: group_modes(tensor, 0, 2)",
        )
    order = _in_order_of_memory(tiles[0], atom)
    blocks = cta_layout if isinstance(cta_layout, Layout) else Layout(cta_layout)
    first = blocks(cta_coord) * (atom.values // int(algebra.cosize(blocks)))
    return tuple(_part(tensor, order, first) for tensor in (smem_tensor, gmem_tensor))  # type: ignore[return-value]


def _tile(tensor: Tensor) -> Layout:
    layout = tensor.layout.outer if isinstance(tensor.layout, ComposedLayout) else tensor.layout
    return layout if not isinstance(layout.shape, tuple) else next(iter(layout))


def _in_order_of_memory(tile: Layout, atom: TmaAtom) -> Layout:
    """The tile's elements in the order in which they lie in shared memory, by boxes."""
    inverse = algebra.right_inverse(tile)
    count = int(algebra.size(tile))
    if algebra.size(inverse) != count:
        inverse = algebra.composition(algebra.make_layout(inverse, Layout(count // int(algebra.size(inverse)),
                                                          int(algebra.size(inverse)))), Layout(count))  # fmt: skip
    return algebra.logical_divide(inverse, Layout(atom.values))


def _part(tensor: Tensor, order: Layout, first: Any) -> Tensor:
    shape = tensor.shape
    rank = len(shape) if isinstance(shape, tuple) else 1
    whole = (order,) + (None,) * (rank - 1) if isinstance(shape, tuple) else order
    part = tensor.view("composition", whole)
    if isinstance(first, int) and first == 0:
        return part
    return part.view("domain_offset", ((first, 0), *(0,) * (rank - 1)) if isinstance(shape, tuple) else (first, 0))


def prefetch_descriptor(tma_atom: Any, *, loc: object = None, ip: object = None) -> None:
    """Bring the tensor map of a TMA atom near, before the first copy. One thread of the warp does it."""
    trace.device("prefetch_descriptor")
    if not isinstance(tma_atom, TmaAtom):
        raise CompileError(
            f"prefetch_descriptor takes a TMA atom, not {type(tma_atom).__name__}", location=user_location()
        )
    with one_thread_of_warp():
        build.cute("tma_prefetch", (), ((tma_atom.map,), ()))
