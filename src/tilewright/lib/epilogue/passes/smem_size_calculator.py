"""Shared memory that the tensors of an epilogue need where a kernel stages them."""

from __future__ import annotations

from typing import ClassVar

from tilewright.base.errors import EpilogueError
from tilewright.hw import chips
from tilewright.lib.epilogue.nodes import NodeBase, StoreNode
from tilewright.lib.epilogue.passes.pass_get_impl import PassGetImpl
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase

TILES = ((64, 128), (128, 128), (128, 256), (256, 128))
"""The tiles (M, N) that a product may have."""


class PassSharedMemoryBudget(EVTPassBase):
    """Keeps in `dag_ir.smem_bytes` the bytes of staging by tile, for the `tiles` that fit; an error where none does.

    A tensor in full takes a tile of its elements, D's place being C's where both are there; a row N elements, a column
    M, of those rows and columns that are loaded or reduced, in the type of memory. `reserved` are the bytes that the
    kernel uses itself, `capacity` those of a block, by default what the architecture allows.
    """

    dependencies = (PassGetImpl,)
    options: ClassVar = {"tiles": TILES, "reserved": 0, "capacity": None}

    def call(self) -> None:
        capacity = self.values["capacity"] or chips.chip(f"sm_{self.dag_ir.arch}").shared_optin
        needed = {tuple(tile): self._bytes(*tile) for tile in self.values["tiles"]}
        fitting = {tile: size for tile, size in needed.items() if size + self.values["reserved"] <= capacity}
        if not fitting:
            raise EpilogueError(
                "The epilogue consumes too much shared memory. No valid tile description is found in the generator.",
                values={f"tile {m} x {n}": f"{size} bytes of {capacity}" for (m, n), size in needed.items()},
                hint="let the epilogue load and store fewer tensors, or do a part of it in a kernel of its own",
            )
        self.dag_ir.smem_bytes = fitting

    def _bytes(self, rows: int, columns: int) -> int:
        metas = self.dag_ir.nodes_meta
        source = next((meta for meta in metas if meta.underlying_impl == "load_src"), None)
        shared = min((_size(meta, rows, columns) for meta in (source, self._d()) if meta is not None), default=0)
        return sum(_size(meta, rows, columns) for meta in metas) - (shared if source and self._d() else 0)

    def _d(self) -> NodeBase | None:
        return next((meta for meta in self.dag_ir.nodes_meta if meta.underlying_impl == "store_d"), None)


def _size(meta: NodeBase, rows: int, columns: int) -> int:
    elements = {
        "load_src": rows * columns,
        "aux_load": rows * columns,
        "store_d": rows * columns,
        "aux_store": rows * columns,
        "row_broadcast": columns,
        "row_reduction": columns,
        "column_broadcast": rows,
        "column_reduction": rows,
    }.get(meta.underlying_impl or "", 0)
    element = meta.element
    if isinstance(meta, StoreNode) and meta.is_reduction:
        element = meta.element_output
    return 0 if element is None else elements * element.facts.bytes
