"""What block-level code calls: loads, stores, products, reductions, mathematics, and the work of a persistent block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, types
from tilewright.lang import trace
from tilewright.lang.arch import block_idx, grid_dim
from tilewright.lang.control.ranges import range as Range
from tilewright.lang.locations import user_location
from tilewright.lang.numbers import arithmetic
from tilewright.lang.numbers.numeric import Boolean, Float32, Int32, Numeric, as_numeric, common_type
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tiles.tile import Tile, as_tile, full, number_type_beside, pair, tile_shape

if TYPE_CHECKING:
    from mlir import ir


def load(tensor: Any, coord: Any, shape: Sequence[int], *, pad: int | float = 0) -> Tile:
    """The tile of `shape` at `coord`, which counts in tiles: element (r, c) is `tensor[coord[0] * shape[0] + r, ...]`.

    Args:
        tensor: in global memory, of the rank of the shape.
        coord: one integer for each mode, of Python or of run time.
        shape: ints known while compiling.
        pad: what elements outside the tensor are, such as 0 or `-float("inf")`.

    Raises:
        CompileError: ranks differ, or the tensor is no memory.
    """
    trace.device("tile.load")
    extents = tile_shape(shape, "tile.load")
    numbers = _coordinate(tensor, coord, extents, "tile.load")
    dtype = tensor.element_type
    operation = build.cute(
        "tile_load",
        (types.tile(extents, dtype.facts.name),),
        ((tensor.value,), numbers),
        pad=_pad(pad, dtype),
    )
    return Tile(operation.results[0], extents, dtype)


def store(tensor: Any, coord: Any, value: Tile) -> None:
    """Write `value` where `load` of its shape would read; elements outside the tensor are dropped.

    Raises:
        CompileError: ranks or element types differ.
    """
    trace.device("tile.store")
    value = as_tile(value, "tile.store")
    numbers = _coordinate(tensor, coord, value.shape, "tile.store")
    if value.dtype is not tensor.element_type:
        raise CompileError(
            f"a tile of {value.dtype} is stored into a tensor of {tensor.element_type}",
            location=user_location(),
            values={"tile": value, "tensor": tensor},
            hint=f"convert it: tile.store(tensor, coord, value.to({tensor.element_type}))",
        )
    build.cute("tile_store", (), ((value.value,), (tensor.value,), numbers))


def _coordinate(tensor: Any, coord: Any, shape: tuple[int, ...], what: str) -> list[ir.Value]:
    """The coordinate as machine numbers."""
    if not isinstance(tensor, Tensor) or tensor.is_coordinates:
        raise CompileError(
            f"{what} takes a tensor of memory, not {type(tensor).__name__}",
            location=user_location(),
            hint="pass a cute.Tensor to the kernel",
        )
    given = tuple(coord) if isinstance(coord, tuple | list) else (coord,)
    rank = len(tensor.shape) if isinstance(tensor.shape, tuple) else 1
    if not rank == len(shape) == len(given):
        raise CompileError(
            f"{what} needs a coordinate and a tile of the tensor's rank",
            location=user_location(),
            values={"tensor": tensor, "coordinate": f"{len(given)} integers", "tile": shape},
            hint="a view of another rank is made before: tensor[None, None, batch]",
        )
    numbers = [as_numeric(item) for item in given]
    for number in numbers:
        if not type(number).is_integer:
            raise CompileError(
                f"{what}: a coordinate is of integers, not {type(number)}",
                location=user_location(),
                hint="coordinates count in tiles: (row // 64, 0), not elements",
            )
    return [Int32(number).ir_value() for number in numbers]


def _pad(pad: int | float, dtype: type[Numeric]) -> ir.Attribute:
    if isinstance(pad, bool) or not isinstance(pad, int | float):
        raise CompileError(
            f"pad is a number known while compiling, not {type(pad).__name__}",
            location=user_location(),
            hint='0, or -float("inf") before a maximum',
        )
    number = dtype(pad).value
    return build.attribute(f"{_written(float(number))} : f64")


def _written(number: float) -> str:
    """A float as MLIR reads it."""
    special = {"inf": "0x7FF0000000000000", "-inf": "0xFFF0000000000000", "nan": "0x7FF8000000000000"}
    text = repr(number)
    return special.get(text) or (text if "." in text else f"{float(text):e}")


def zeros(shape: Sequence[int], dtype: type[Numeric] = Float32) -> Tile:
    """A tile of zeros."""
    return full(shape, 0, dtype)


def dot(a: Tile, b: Tile, acc: Tile | None = None) -> Tile:
    """The matrix product of (M, K) and (K, N), plus `acc`: Float32 of floats, Int32 of integers.

    Raises:
        CompileError: shapes or element types do not fit.
    """
    trace.device("tile.dot")
    a, b = as_tile(a, "tile.dot"), as_tile(b, "tile.dot")
    if "u" in (a.dtype.facts.arithmetic_kind, b.dtype.facts.arithmetic_kind):
        raise CompileError(
            "tile.dot takes signed elements",
            location=user_location(),
            values={"a": a, "b": b},
            hint="convert the tiles, such as x.to(cutlass.Int32)",
        )
    fits = len(a.shape) == len(b.shape) == 2 and a.shape[1] == b.shape[0] and a.dtype is b.dtype
    wanted = Float32 if a.dtype.is_float else Int32
    if acc is None and fits:
        acc = zeros((a.shape[0], b.shape[1]), wanted)
    if not fits or as_tile(acc, "tile.dot").shape != (a.shape[0], b.shape[1]) or as_tile(acc, "").dtype is not wanted:
        raise CompileError(
            "tile.dot takes (M, K) and (K, N) of one type, and an accumulator (M, N)",
            location=user_location(),
            values={"a": a, "b": b, "acc": acc},
            hint=f"the accumulator of {a.dtype} is {wanted}",
        )
    type_ = types.tile((a.shape[0], b.shape[1]), wanted.facts.name)
    groups = ((a.value,), (b.value,), (as_tile(acc, "tile.dot").value,))
    return Tile(build.cute("tile_dot", (type_,), groups).results[0], (a.shape[0], b.shape[1]), wanted)


def sum(x: Tile, axis: int) -> Tile:
    """The sum over one axis, which is left with extent 1; in the element type."""
    return _reduce("add", x, axis)


def max(x: Tile, axis: int) -> Tile:
    """The greatest over one axis, which is left with extent 1; NaNs are passed over."""
    return _reduce("max", x, axis)


def _reduce(kind: str, x: Tile, axis: int) -> Tile:
    x = as_tile(x, f"tile.{'sum' if kind == 'add' else kind}")
    rank = len(x.shape)
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise CompileError(
            f"there is no axis {axis}", location=user_location(), values={"tile": x}, hint=f"axes are 0 to {rank - 1}"
        )
    x = x.to(Int32) if x.dtype is Boolean else x
    shape = tuple(1 if mode == axis % rank else extent for mode, extent in enumerate(x.shape))
    made = build.cute(
        "tile_reduce",
        (types.tile(shape, x.dtype.facts.name),),
        ((x.value,),),
        kind=build.string(kind + x.dtype.facts.arithmetic_kind),
        axis=build.i32(axis % rank),
    )
    return Tile(made.results[0], shape, x.dtype)


def where(condition: Tile, x: Any, y: Any) -> Tile:
    """Elements of `x` where `condition`, else of `y`; shapes broadcast."""
    condition = as_tile(condition, "tile.where")
    condition = condition if condition.dtype is Boolean else condition != 0
    x, y = _like(condition, x, y), _like(condition, y, x)
    dtype = x.dtype if x.dtype is y.dtype else common_type(x.dtype, y.dtype)
    met = pair(x.to(dtype), y.to(dtype))
    assert met is not None
    met_with = pair(condition, met[0])
    assert met_with is not None
    condition, x = met_with
    return Tile(arithmetic.select(condition.value, x.value, met[1].broadcast_to(x.shape).value), x.shape, dtype)


def _like(condition: Tile, item: Any, other: Any) -> Tile:
    """One choice of `where` as a tile; a number takes the type of the other choice."""
    if isinstance(item, Tile):
        return item
    dtype = number_type_beside(other.dtype, item) if isinstance(other, Tile) else type(as_numeric(item))
    return full(condition.shape, item, dtype)


def maximum(x: Any, y: Any) -> Tile:
    """The greater of each two elements; a NaN gives the other."""
    return _extreme("max", x, y)


def minimum(x: Any, y: Any) -> Tile:
    """The lesser of each two elements; a NaN gives the other."""
    return _extreme("min", x, y)


def _extreme(name: str, x: Any, y: Any) -> Tile:
    first, second = (x, y) if isinstance(x, Tile) else (y, x)
    found = pair(as_tile(first, f"tile.{name}imum"), second)
    if found is None:
        raise CompileError(
            f"tile.{name}imum of a tile and {type(second).__name__}",
            location=user_location(),
            hint="it takes tiles and numbers",
        )
    a, b = found
    dtype = a.dtype if a.dtype is b.dtype else common_type(a.dtype, b.dtype)
    value = arithmetic.binary(name, dtype.facts.arithmetic_kind, a.to(dtype).value, b.to(dtype).value)
    return Tile(value, a.shape, dtype)


def _unary(op: str, doc: str) -> Callable[..., Tile]:
    def function(x: Tile, fastmath: bool = False) -> Tile:
        x = as_tile(x, f"tile.{name}")
        x = x if x.dtype.is_float else x.to(Float32)
        attributes = {"fastmath": build.attribute("#arith.fastmath<fast>")} if fastmath else None
        return x.mapped(lambda value: build.value(op, value.type, (value,), attributes))

    name = function.__name__ = op.rpartition(".")[2]
    function.__doc__ = f"{doc} With `fastmath` by the approximate instruction, where there is one."
    return function


exp = _unary("math.exp", "e to the x.")
exp2 = _unary("math.exp2", "2 to the x.")
log = _unary("math.log", "Natural logarithm.")
log2 = _unary("math.log2", "Logarithm to base 2.")
sqrt = _unary("math.sqrt", "Square root.")
rsqrt = _unary("math.rsqrt", "1 / sqrt(x).")
tanh = _unary("math.tanh", "Hyperbolic tangent.")
erf = _unary("math.erf", "Error function.")
sin = _unary("math.sin", "Sine of x in radians.")
cos = _unary("math.cos", "Cosine of x in radians.")


def persistent(count: Any) -> Range:
    """The numbers below `count` that are this block's in a grid of (n, 1, 1) blocks: its own, then every n-th.

    `for work in tile.persistent(count):` is a loop of run time.
    """
    trace.device("tile.persistent")
    return Range(block_idx()[0], count, grid_dim()[0])
