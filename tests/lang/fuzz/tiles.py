"""Statements of random programs about tensors with layouts: views, divisions, recasts, copies, partial reductions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.lang.fuzz.generator import Generator
from tests.lang.fuzz.tensors import leaves, size

SHAPES: list[Any] = [(8,), (4, 2), (2, 4), (4, 4), (3, 2), (2, 2, 2), (2, (2, 2)), ((2, 2), 2), ((2, 2), (2, 2))]
MATRICES = [(4, 2), (2, 4), (4, 4), (8, 4), (2, 6)]
RECASTS = ["Int8", "Uint8", "Int16", "Uint16", "Int32", "Uint32", "Int64", "Uint64"]
FOLDS = ["ADD", "MUL", "MAX", "MIN", "AND", "OR", "XOR"]


@dataclass(frozen=True)
class Tile:
    """A tensor of a program. `shape` is None where only linear indices count; `compact`: the first mode is fastest."""

    type: str
    shape: Any
    count: int
    compact: bool = False
    plain: bool = True  # no swizzle


class Tiles(Generator):
    """The part of the generator that knows tensors with layouts."""

    tiles: dict[str, Tile]

    def make_tiles(self) -> None:
        r = self.random
        for _ in range(r.randint(0, 2)):
            self.register_tile()
        if self.device and r.random() < 0.5:
            self.shared_tile()

    def _add(self, depth: int, made: str, tile: Tile, fill: str = "") -> str:
        """Name a tensor, and fill it."""
        name = self.fresh("d")
        self.emit(depth, f"{name} = {made}")
        if fill:
            self.emit(depth, f"{name}.fill({fill})")
        self.tiles = self.tiles | {name: tile}
        return name

    def register_tile(self) -> None:
        r = self.random
        shape, type_ = r.choice([*SHAPES, *MATRICES]), r.choice(self.types.names)
        stride, compact = self._stride(shape)
        layout = f"cute.make_layout({shape}{stride})"
        layout = r.choice([layout, str(shape)]) if compact else layout
        tile = Tile(type_, shape, size(shape), compact)
        self._add(1, f"cute.make_rmem_tensor({layout}, {type_})", tile, self.expression(type_, 1))

    def _stride(self, shape: Any) -> tuple[str, bool]:
        """Strides of some order of the modes, with gaps or without."""
        r = self.random
        order = list(range(len(leaves(shape))))
        if r.random() < 0.5:
            return "", True
        r.shuffle(order)
        strides, step = [0] * len(order), 1
        for place in order:
            strides[place] = step
            step *= leaves(shape)[place] + (r.random() < 0.15)
        return f", stride={_nest(shape, iter(strides))}", False

    def shared_tile(self) -> None:
        """A part of shared memory for each thread, swizzled or not; then a look at a neighbour's."""
        r = self.random
        rows, columns = r.choice([(4, 2), (2, 4), (4, 4)])
        type_ = r.choice([name for name in self.types.names if self.types.all[name].width >= 8])
        row_major = r.random() < 0.5
        strides = (columns, 1) if row_major else (1, rows)
        step = rows * columns
        layout = f"cute.make_layout((32, {rows}, {columns}), stride=({step}, {strides[0]}, {strides[1]}))"
        swizzled = r.random() < 0.5
        if swizzled:
            swizzle = f"cute.make_swizzle({r.choice([1, 2])}, {r.choice([0, 1, 2])}, {r.choice([2, 3])})"
            layout = f"cute.make_composed_layout({swizzle}, 0, {layout})"
        whole = self.fresh("s")
        self.emit(1, f"{whole} = shared_like({type_}, {layout})")
        tile = Tile(type_, (rows, columns), step, not row_major, not swizzled)
        name = self._add(1, f"{whole}[t, None, None]", tile, self.expression(type_, 1))
        self.emit(1, f"{name}[{self._coord(tile)}] = {self.expression(type_, 1)}")
        self.emit(1, "cute.arch.sync_threads()")
        variable = self.fresh("v")
        place = f"(t + {r.randint(1, 31)}) % 32, {r.randrange(rows)}, {r.randrange(columns)}"
        self.emit(1, f"{variable} = {whole}[{place}]")
        self.emit(1, "cute.arch.sync_threads()")
        self.variables[variable] = type_

    # --- coordinates -------------------------------------------------------------------------------------------------

    def _coord(self, tile: Tile) -> str:
        r = self.random
        if tile.shape is None or r.random() < 0.3:
            return self._index_below(tile.count)
        parts = [self._mode(mode) for mode in tile.shape]
        return ", ".join(parts) if len(parts) > 1 else parts[0]

    def _mode(self, mode: Any) -> str:
        if isinstance(mode, tuple) and self.random.random() < 0.5:
            return f"({', '.join(self._mode(part) for part in mode)})"
        return self._index_below(size(mode))

    def _index_below(self, bound: int) -> str:
        if self.random.random() < 0.6:
            return str(self.random.randrange(bound))
        return f"({self.expression(self.random.choice(['Int32', 'Uint32', 'Int64', 'Uint8']), 1)}) % {bound}"

    def leaf(self, type_: str) -> str:
        tiles = [name for name, tile in getattr(self, "tiles", {}).items() if tile.type == type_]
        if tiles and self.random.random() < 0.3:
            name = self.random.choice(tiles)
            tile = self.tiles[name]
            return f"{name}[{self.random.randrange(tile.count)}]"
        return super().leaf(type_)

    # --- statements --------------------------------------------------------------------------------------------------

    def block(self, depth: int, nesting: int) -> None:
        before = self.tiles
        super().block(depth, nesting)
        self.tiles = before

    def tile_statement(self, depth: int, nesting: int) -> None:
        r = self.random
        name = r.choice(list(self.tiles))
        tile = self.tiles[name]
        choices: list[Callable[[int, str, Tile], None]] = [self.put, self.compute, self.compute]
        if self.types.all[tile.type].width < 8:  # a view may begin inside a byte, which is refused
            r.choice([*choices, self.copy_])(depth, name, tile)
            return
        if tile.shape is not None and self._flat(tile) and len(tile.shape) > 1:
            choices += [self.slice_, self.reduce, self.broadcast]
            choices += [self.divide, self.divide] if len(tile.shape) == 2 else []
        if tile.plain and tile.compact and tile.type in RECASTS and tile.shape is not None and self._flat(tile):
            choices += [self.recast, self.retile]
        choices += [self.copy_, self.compose] if tile.plain else [self.copy_]
        r.choice(choices)(depth, name, tile)

    def _flat(self, tile: Tile) -> bool:
        return all(isinstance(mode, int) for mode in tile.shape)

    def put(self, depth: int, name: str, tile: Tile) -> None:
        self.emit(depth, f"{name}[{self._coord(tile)}] = {self.expression(tile.type, 1)}")

    def compute(self, depth: int, name: str, tile: Tile) -> None:
        """Arithmetic on all numbers of a tile."""
        r = self.random
        value = self.fresh("w")
        self.emit(depth, f"{value} = {name}.load()")
        others = [item for item, known in self.tiles.items() if known.shape == tile.shape and tile.shape]
        other = r.choice([*others, name])
        operand = f"{other}.load()"
        if self.tiles[other].type != tile.type:
            through = ".to(Int64)" if self.types.all[tile.type].width == 128 else ""
            operand += f"{through}.to({tile.type})"
        steps = [f"cute.where({value} {r.choice(['<', '>=', '==', '!='])} {operand}, {value}, {operand})"]
        if tile.type == "Boolean":
            steps += [f"{value} {r.choice('&|^')} {operand}", f"~{value}"]
        else:
            steps += [f"{value} {r.choice('+-*')} {operand}", f"abs({value})", f"-{value}"]
            steps += [f"{value} {r.choice('+-*')} {self.expression(tile.type, 1)}", f"{r.randint(0, 7)} - {value}"]
        self.emit(depth, f"{value} = {r.choice(steps)}")
        self.emit(depth, f"{name}.store({value}.to({tile.type}))")

    def slice_(self, depth: int, name: str, tile: Tile) -> None:
        kept = self.random.randrange(len(tile.shape))
        parts = ["None" if place == kept else self._index_below(mode) for place, mode in enumerate(tile.shape)]
        made = Tile(tile.type, (tile.shape[kept],), tile.shape[kept], False, tile.plain)
        view = self._add(depth, f"{name}[{', '.join(parts)}]", made)
        self.put(depth, view, made)

    def reduce(self, depth: int, name: str, tile: Tile) -> None:
        """Fold along some modes; what is kept goes to variables."""
        r = self.random
        targets = [item for item in self.targets() if self.variables[item] == tile.type]
        if self.types.all[tile.type].kind not in "iu" or not targets:
            return self.put(depth, name, tile)
        kept = sorted(r.sample(range(len(tile.shape)), r.randint(1, len(tile.shape) - 1)))
        profile = ", ".join("None" if place in kept else "1" for place in range(len(tile.shape)))
        value = self.fresh("w")
        start = self.expression(tile.type, 1)
        self.emit(depth, f"{value} = {name}.load().reduce(cute.ReductionOp.{r.choice(FOLDS)}, {start}, ({profile}))")
        count = size(tuple(tile.shape[place] for place in kept))
        self.emit(depth, f"{r.choice(targets)} = {value}[{r.randrange(count)}]")
        return None

    def broadcast(self, depth: int, name: str, tile: Tile) -> None:
        """A row or column with the whole."""
        r = self.random
        if self.types.all[tile.type].kind not in "iu" or len(tile.shape) != 2:
            return self.put(depth, name, tile)
        value = self.fresh("w")
        self.emit(depth, f"{value} = {name}.load()")
        rows, columns = tile.shape
        part = r.choice([
            f"{value}[None, {r.randrange(columns)}].reshape(({rows}, 1))",
            f"{value}[{r.randrange(rows)}, None].reshape((1, {columns}))",
            f"{value}[None, {r.randrange(columns)}].reshape(({rows}, 1)).broadcast_to(({rows}, {columns}))",
            f"{value}[{r.randrange(rows)}, None]",
        ])  # fmt: skip
        self.emit(depth, f"{name}.store(({value} {r.choice('+-*&|^')} {part}).to({tile.type}))")
        return None

    def divide(self, depth: int, name: str, tile: Tile) -> None:
        r = self.random
        a, b = (r.choice([part for part in (1, 2, 3, 4) if mode % part == 0]) for mode in tile.shape)
        m, n = tile.shape[0] // a, tile.shape[1] // b
        i, j = self._index_below(m), self._index_below(n)
        made = r.choice([
            f"cute.local_tile({name}, ({a}, {b}), ({i}, {j}))",
            f"cute.zipped_divide({name}, ({a}, {b}))[(None, None), ({i}, {j})]",
            f"cute.flat_divide({name}, ({a}, {b}))[None, None, {i}, {j}]",
            f"cute.logical_divide({name}, ({a}, {b}))[(None, {i}), (None, {j})]",
        ])  # fmt: skip
        shape = (a, b)
        part = Tile(tile.type, shape, a * b, False, tile.plain)
        view = self._add(depth, made, part)
        self.put(depth, view, part)

    def compose(self, depth: int, name: str, tile: Tile) -> None:
        """Some elements in another order."""
        r = self.random
        count, stride = r.choice([(n, d) for n in (1, 2, 4) for d in (1, 2, 3) if (n - 1) * d < tile.count])
        if tile.shape is None or len(leaves(tile.shape)) > 1:
            count, stride = (2, 1) if tile.shape and leaves(tile.shape)[0] % 2 == 0 else (1, 1)
        made = Tile(tile.type, (count,), count, False, tile.plain)
        view = self._add(depth, f"cute.composition({name}, cute.make_layout(({count},), stride=({stride},)))", made)
        self.put(depth, view, made)

    def recast(self, depth: int, name: str, tile: Tile) -> None:
        """The same memory as integers of another width."""
        r = self.random
        width = self.types.all[tile.type].width
        widths = {item: self.types.all[item].width for item in RECASTS}
        # Where one element is left of the first mode, another may be the one that a recast divides next.
        fitting = [item for item in RECASTS if tile.shape[0] * width % (2 * widths[item]) == 0 and item != tile.type]
        if not fitting:
            return self.put(depth, name, tile)
        type_ = r.choice(fitting)
        shape = (tile.shape[0] * width // widths[type_], *tile.shape[1:])
        made = Tile(type_, shape, size(shape), True)
        view = self._add(depth, f"cute.recast_tensor({name}, {type_})", made)
        self.put(depth, view, made)
        return None

    def retile(self, depth: int, name: str, tile: Tile) -> None:
        """Another layout over the same memory."""
        r = self.random
        shapes = [shape for shape in [*SHAPES, *MATRICES] if size(shape) <= tile.count]
        if not shapes:
            return self.put(depth, name, tile)
        shape = r.choice(shapes)
        made = Tile(tile.type, shape, size(shape), True)
        view = self._add(depth, f"cute.make_tensor({name}.iterator, cute.make_layout({shape}))", made)
        self.put(depth, view, made)
        return None

    def copy_(self, depth: int, name: str, tile: Tile) -> None:
        """The tile in registers of its own."""
        if tile.shape is None:
            return self.put(depth, name, tile)
        r = self.random
        made = Tile(tile.type, tile.shape, tile.count)
        copy = self._add(depth, f"cute.make_rmem_tensor_like({name})", made)
        self.emit(depth, f"cute.{r.choice(['autovec_copy', 'basic_copy'])}({name}, {copy})")
        self.put(depth, copy, made)
        return None


def _nest(shape: Any, strides: Any) -> Any:
    return tuple(_nest(mode, strides) for mode in shape) if isinstance(shape, tuple) else next(strides)
