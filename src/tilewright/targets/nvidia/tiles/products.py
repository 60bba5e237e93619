"""Products of tiles.

Elements of 8 and 16 bits are multiplied by `mma.sync`: both operands go to shared memory, whose rows are 16 bytes
longer than the tile's so that `ldmatrix` finds them in different banks, and from there to the fragments of a tiled MMA.
Warps stand side by side along M and N so that each has about a square.

Other elements (Float32, Int32) are multiplied and added one by one, exactly as written: each thread has a block of the
sums, and reads a column of A and a row of B for each step of K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types
from tilewright.lang.atoms import make_copy_atom, make_tiled_copy_A, make_tiled_copy_B, make_tiled_mma
from tilewright.lang.atoms.copying import copy
from tilewright.lang.atoms.gemm import gemm
from tilewright.lang.atoms.tiled_mma import TiledMma
from tilewright.lang.numbers.numeric import Int32, from_mlir_type
from tilewright.lang.nvgpu import warp
from tilewright.lang.tensors.algebra import make_identity_tensor
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout import Layout
from tilewright.targets.nvidia.tiles.block import Block
from tilewright.targets.nvidia.tiles.distribution import Coordinate, Distribution, blocked, of_fragments
from tilewright.targets.nvidia.tiles.exchange import write

if TYPE_CHECKING:
    from mlir import ir

Operand = tuple["ir.Value", Distribution]
_ROW_PAD_BYTES = 16
_ATOM_MN = (16, 8)
_WARP = 32
_LDMATRIX_BITS = 16  # of the elements that ldmatrix can transpose
_MATRICES_A = 4  # of 8 rows that an ldmatrix of A reads: two along M, two along K


@dataclass(frozen=True)
class Product:
    """What multiplies tiles of a shape: a tiled MMA, or None for one element at a time."""

    shape: tuple[int, int, int]
    tiled: TiledMma | None
    held: Distribution

    @classmethod
    def of(cls, left: Coordinate, right: Coordinate, element: ir.Type, threads: int) -> Product:
        """The product of tiles of these shapes, (M, K) and (K, N), with elements of a type.

        Raises:
            CompileError: no instruction multiplies them.
        """
        (m, k), n = left, right[1]
        atom = _atom(element)
        if atom is None:
            return cls((m, n, k), None, blocked((m, n), threads, 1, 4))
        step = atom.shape_mnk[2]
        if m % _ATOM_MN[0] or n % _ATOM_MN[1] or k % step:
            raise CompileError(
                f"tile.dot of ({m}, {k}) and ({k}, {n}) does not fill the instructions that multiply",
                values={"multiples of": f"M {_ATOM_MN[0]}, N {_ATOM_MN[1]}, K {step}"},
                hint="take larger tiles; elements outside the tensors are padded with zeros",
            )
        along_m, along_n = _warps(m, n, threads // _WARP)
        wide = min(2 * _ATOM_MN[1], n // along_n)  # two atoms along N are read by one ldmatrix
        tiled = make_tiled_mma(atom, (along_m, along_n, 1), (_ATOM_MN[0] * along_m, wide * along_n, step))
        whole = make_identity_tensor((m, n))

        def part(thread: int) -> list[Coordinate]:
            return [tuple(item) for item in tiled.get_slice(thread).partition_C(whole)]

        return cls((m, n, k), tiled, of_fragments((m, n), threads, along_m * along_n * _WARP, part))


def _atom(element: ir.Type) -> Any:
    """The instruction for elements of a type; None where they are multiplied one by one."""
    dtype = from_mlir_type(element)
    name = dtype.facts.name
    if name in ("f16", "bf16"):
        return warp.MmaF16BF16Op(dtype, from_mlir_type(types.parse("f32")), (16, 8, 16))
    if name in ("f8e4m3fn", "f8e5m2") or dtype.__name__ in ("Float8E4M3FN", "Float8E5M2"):
        return warp.MmaFP8Op(dtype, from_mlir_type(types.parse("f32")), (16, 8, 32))
    if name == "i8":
        return warp.MmaI8Op(dtype, (16, 8, 32))
    if name in ("f32", "i32", "u32"):
        return None
    raise CompileError(
        f"tile.dot of {dtype} has no instruction here",
        hint="Float16, BFloat16, Float8E4M3FN, Float8E5M2, Int8, Float32 and Int32 are multiplied: convert with .to()",
    )


def _warps(m: int, n: int, count: int) -> tuple[int, int]:
    """Warps along M and N: at most `count`, each with about a square of whole atoms."""
    along_m = along_n = 1
    while along_m * along_n < count:
        can_m, can_n = m // along_m > _ATOM_MN[0], n // along_n > _ATOM_MN[1]
        if not can_m and not can_n:
            break
        if can_m and (not can_n or m // along_m >= n // along_n):
            along_m *= 2
        else:
            along_n *= 2
    return along_m, along_n


def multiply(block: Block, op: ir.Operation, product: Product, a: Operand, b: Operand, c: ir.Value) -> ir.Value:
    """The sums after a `cute.tile_dot`; `c` are those before it, as the product holds them."""
    if product.tiled is None:
        return _one_by_one(block, op, product, a, b, c)
    return _by_warps(block, op, product, a, b, c)


@dataclass(frozen=True)
class Staged:
    """An operand in shared memory; `by_k`: K is contiguous."""

    memory: Tensor
    by_k: bool


def _by_warps(block: Block, op: ir.Operation, product: Product, a: Operand, b: Operand, c: ir.Value) -> ir.Value:
    left, right = _staged(block, a, k_mode=1), _staged(block, b, k_mode=0)
    block.meet_again(op)
    write(block, left.memory, *a)
    write(block, right.memory, *b)
    block.meet()
    return multiply_staged(block, product, left, right, c)


def multiply_staged(block: Block, product: Product, a: Staged, b: Staged, c: ir.Value) -> ir.Value:
    """The sums after a product of operands in shared memory, A (M, K) and B (K, N)."""
    (m, n, k), tiled, right = product.shape, product.tiled, b.memory
    assert tiled is not None
    as_nk = make_tensor(right.iterator, Layout((n, k), right.stride[::-1]))
    mine = tiled.get_slice(block.thread & (tiled.size - 1))
    sums = tiled.make_fragment_C(tiled.partition_shape_C((m, n)))
    sums.store(TensorSSA(c, sums.shape, sums.element_type))
    left_parts = _Fragments.of("A", tiled, mine, a.memory, a.by_k, _MATRICES_A)
    right_parts = _Fragments.of("B", tiled, mine, as_nk, b.by_k, _matrices_of_b(tiled))
    for step in range(k // tiled.tile_size(2)):
        first, second = left_parts.take(step), right_parts.take(step)
        gemm(tiled, sums, first, second, sums)
    found = sums.load()
    return found.value


def _matrices_of_b(tiled: TiledMma) -> int:
    """How many matrices of 8 rows an ldmatrix of B reads: two along K, and two along N where the tile has room."""
    return 4 if tiled.tile_size(1) >= 2 * tiled._covered(1) else 2


def _staged(block: Block, operand: Operand, k_mode: int) -> Staged:
    """Shared memory for an operand. It lies as the threads hold it, so that they write 16 bytes at a time; K is
    contiguous where ldmatrix cannot transpose."""
    vector, held = operand
    element = vector.type.element_type
    width = from_mlir_type(element).width
    by_k = width < _LDMATRIX_BITS or held.run(k_mode, 2) > 1 or held.run(1 - k_mode, 2) == 1
    fast = k_mode if by_k else 1 - k_mode
    row = row_elements(held.shape, fast, width)
    stride = tuple(1 if mode == fast else row for mode in (0, 1))
    return Staged(block.shared(element, Layout(held.shape, stride), row * held.shape[1 - fast]), by_k)


def row_elements(shape: Coordinate, fast: int, width: int) -> int:
    """The elements of `width` bits from one row of an operand to the next in shared memory."""
    return shape[fast] + _ROW_PAD_BYTES * 8 // width


@dataclass(frozen=True)
class _Fragments:
    """An operand in shared memory, and the registers that hold a step of K of it."""

    tiled_copy: Any
    source: Tensor
    registers: Tensor
    target: Tensor

    @classmethod
    def of(cls, name: str, tiled: TiledMma, mine: Any, memory: Tensor, by_k: bool, matrices: int) -> _Fragments:
        dtype = memory.element_type
        read = warp.LdMatrix8x16x8bOp if dtype.width == 8 else warp.LdMatrix8x8x16bOp
        atom = make_copy_atom(read(not by_k, matrices), dtype)
        made = (make_tiled_copy_A if name == "A" else make_tiled_copy_B)(atom, tiled)
        part = (mine.partition_A if name == "A" else mine.partition_B)(memory)
        registers = (tiled.make_fragment_A if name == "A" else tiled.make_fragment_B)(part[None, None, 0])
        slice_ = made.get_slice(mine.thr_idx)
        return cls(made, slice_.partition_S(memory), registers, slice_.retile(registers))

    def take(self, step: int) -> Tensor:
        """Read a step of K."""
        copy(self.tiled_copy, self.source[None, None, step], self.target)
        return self.registers


def _one_by_one(block: Block, op: ir.Operation, product: Product, a: Operand, b: Operand, c: ir.Value) -> ir.Value:
    m, n, k = product.shape
    element = a[0].type.element_type
    left = block.shared(element, Layout((m, k), (k + 1, 1)), (k + 1) * m)
    right = block.shared(element, Layout((k, n), (n, 1)), n * k)
    block.meet_again(op)
    write(block, left, *a)
    write(block, right, *b)
    block.meet()
    return _steps(block, product.held, left, right, k, c)


def _steps(block: Block, held: Distribution, left: Tensor, right: Tensor, count: int, sums: ir.Value) -> ir.Value:
    """A loop over K."""
    index = types.parse("i32")
    bounds = [build.constant(number, index) for number in (0, count, 1)]
    loop = build.emit("scf.for", [sums.type], [*bounds, sums], regions=1)
    body = loop.regions[0].blocks.append(index, sums.type, arg_locs=[loop.location] * 2)
    with mlir.ir.InsertionPoint(body):
        step = Int32.from_ir(body.arguments[0])
        step.bound = count
        columns = _picked(block, held, 0, lambda at: left[at, step])
        rows = _picked(block, held, 1, lambda at: right[step, at])
        build.emit("scf.yield", (), (_added(columns, rows, body.arguments[1]),))
    return loop.results[0]


def _picked(block: Block, held: Distribution, mode: int, element: Any) -> ir.Value:
    """For each of the thread's sums the element of its row or column."""
    base = block.part(held, mode)
    found = {at: element(base + at).ir_value() for at in dict.fromkeys(value[mode] for value in held.values)}
    dtype = from_mlir_type(next(iter(found.values())).type)
    return build.value(
        "vector.from_elements",
        types.vector(len(held.values), dtype.facts.name),
        [found[value[mode]] for value in held.values],
    )


def _added(left: ir.Value, right: ir.Value, sums: ir.Value) -> ir.Value:
    if isinstance(left.type.element_type, mlir.ir.IntegerType):
        return build.value("arith.addi", sums.type, (build.value("arith.muli", sums.type, (left, right)), sums))
    return build.value("math.fma", sums.type, (left, right, sums))
