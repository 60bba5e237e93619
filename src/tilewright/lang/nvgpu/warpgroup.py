"""Products of a warpgroup (`wgmma`, sm_90a): 128 threads multiply tiles that lie in shared memory.

The product runs on while the threads do. `fence` comes before the first product that uses registers which the threads
wrote, `commit_group` closes a group of products, and `wait_group` waits for groups: only then may the accumulator be
read or written, and the tiles be overwritten. PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix Instructions".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilewright import layout as algebra
from tilewright.base.errors import CompileError, LayoutError
from tilewright.hw.atoms import wgmma
from tilewright.ir import atom_text, build
from tilewright.lang import trace
from tilewright.lang.atoms.mma_atom import AsyncMmaOp, MmaAtom, MmaTraits
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Boolean,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Int8,
    Int32,
    Numeric,
    TFloat32,
    Uint8,
    Uint32,
    as_numeric,
    number_type,
)
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import ComposedLayout, Layout

WARPGROUP = Layout(wgmma.WARPGROUP, 1)
_PTX: dict[type[Numeric], str] = {
    Float16: "f16", BFloat16: "bf16", TFloat32: "tf32", Float32: "f32", Int8: "s8", Uint8: "u8", Int32: "s32",
    Float8E4M3FN: "e4m3", Float8E5M2: "e5m2",
}  # fmt: skip


class OperandMajorMode(Enum):
    """Which mode of an operand is contiguous: K, or M (of A) and N (of B)."""

    K = "k"
    MN = "mn"


class OperandSource(Enum):
    """Where operand A lies."""

    SMEM = "smem"
    RMEM = "rmem"


class Field(Enum):
    """What can be set of an atom: whether products add to the accumulator, or overwrite it."""

    ACCUMULATE = "accumulate"


class SmemLayoutAtomKind(Enum):
    """Layouts of shared memory that a product reads: the contiguous mode, and the bytes of the swizzle."""

    MN_INTER = ("mn", 0)
    MN_SW32 = ("mn", 32)
    MN_SW64 = ("mn", 64)
    MN_SW128 = ("mn", 128)
    K_INTER = ("k", 0)
    K_SW32 = ("k", 32)
    K_SW64 = ("k", 64)
    K_SW128 = ("k", 128)


def make_smem_layout_atom(
    kind: SmemLayoutAtomKind, element_type: type[Numeric], *, loc: object = None, ip: object = None
) -> ComposedLayout:
    """The least tile of a layout in shared memory, to repeat with tile_to_shape. Its swizzle counts bytes.

    Modes are (M or N, K); 8 rows of the contiguous mode, each of 16 bytes or of those of the swizzle.
    """
    major, swizzle = kind.value
    outer = wgmma.smem_atom(number_type(element_type).width, swizzle, k_major=major == "k").outer
    return ComposedLayout(wgmma.byte_swizzle(swizzle), 0, outer)


@dataclass(frozen=True)
class WarpgroupMmaOp(AsyncMmaOp):
    """`wgmma` of A (M,K) and B (N,K) into D (M,N): M is 64, N a multiple of 8 up to 256, K 256 bits.

    With `sparse` K is 512 bits, and A (M,K/2) has two of each four elements along K (one of each two of TFloat32).
    `cute.gemm` takes it with a word of 32 bits for each instruction, which say where they are: `(a, words)`, a register
    tensor of Uint32 or Int32 over the instructions along M and K (`utils.sparse.compress` makes both).

    Raises:
        CompileError: there is no such instruction.
    """

    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    acc_dtype: type[Numeric]
    shape_mnk: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    sparse: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape_mnk", tuple(int(extent) for extent in self.shape_mnk))
        types = [_PTX.get(dtype, "") for dtype in (self.a_dtype, self.b_dtype, self.acc_dtype)]
        try:
            wgmma.check_form(types[0], types[1], types[2], self.shape_mnk, self.sparse)
            if self.a_src is OperandSource.SMEM:
                wgmma.check_major(types[0], self.a_major_mode is OperandMajorMode.K, "A")
            elif self.a_major_mode is not OperandMajorMode.K:
                raise LayoutError("A in registers is K-major", hint="OperandMajorMode.K")
            wgmma.check_major(types[1], self.b_major_mode is OperandMajorMode.K, "B")
        except LayoutError as error:
            raise CompileError(
                f"no wgmma of {self.a_dtype} and {self.b_dtype} into {self.acc_dtype} of shape {self.shape_mnk}: "
                f"{error.message}",
                location=user_location(3),
                hint=error.hint,
            ) from error

    @property
    def ab_dtype(self) -> type[Numeric]:
        return self.a_dtype

    def in_memory(self, operand: str) -> bool:
        return operand == "B" or self.a_src is OperandSource.SMEM

    def traits(self) -> MmaTraits:
        m, n, k = self.shape_mnk
        packed = 1 + self.sparse
        a = wgmma.operand_a(self.a_dtype.width) if self.a_src is OperandSource.RMEM else _whole_tile(m, k // packed)
        types = (self.a_dtype, self.b_dtype, self.acc_dtype)
        return MmaTraits(self.shape_mnk, WARPGROUP, a, _whole_tile(n, k), wgmma.operand_d(n), *types, packed)

    def text(self) -> str:
        m, n, k = self.shape_mnk
        types = {name: _PTX[dtype] for name, dtype in (("a", self.a_dtype), ("b", self.b_dtype), ("c", self.acc_dtype))}
        majors = {"a_major": self.a_major_mode.value, "b_major": self.b_major_mode.value}
        sparse = {"sparse": 1} if self.sparse else {}
        return atom_text.write("wgmma", shape=f"{m}x{n}x{k}", **types, **majors, **sparse)

    def issue(self, atom: MmaAtom, d: Tensor, a: Any, b: Tensor, c: Tensor) -> None:
        trace.device("wgmma")
        a, words = self._with_words(a)
        if d is not c and not _same_tensor(d, c):
            raise CompileError(
                "a product of a warpgroup adds to the accumulator in place",
                location=user_location(3),
                values={"d": d, "c": c},
                hint="cute.gemm(tiled_mma, acc, a, b, acc); set Field.ACCUMULATE to False to overwrite it",
            )
        for name, tensor in (("A", a), ("B", b), ("D", d)):
            self._check_operand(atom, name, tensor)
        _check_modes(d, a, b)
        accumulate = Boolean(as_numeric(atom.accumulate)).ir_value()
        metadata = self._metadata(words, a) if words is not None else []
        groups = ((d.value,), (a.value,), (b.value,), (accumulate,), metadata)
        build.cute("wgmma", (), groups, atom=build.string(self.text()))

    def _with_words(self, a: Any) -> tuple[Tensor, Tensor | None]:
        """A, and the words of a sparse one."""
        given = isinstance(a, tuple | list)
        if given != self.sparse:
            raise CompileError(
                "a sparse A comes with its words" if self.sparse else "A of this product is not sparse",
                location=user_location(3),
                hint="cute.gemm(mma, acc, (a, words), b, acc)" if self.sparse else "give cute.gemm the tensor alone",
            )
        return (a[0], a[1]) if given else (a, None)

    def _metadata(self, words: Any, a: Tensor) -> list[Any]:
        """The words of all instructions, those along M first."""
        extents = [algebra.product(mode) for mode in _modes(a)[1:]]
        count = algebra.product(tuple(extents)) if extents else 1
        fits = isinstance(words, Tensor) and not words.is_coordinates and words.memspace is AddressSpace.rmem
        if not fits or words.element_type not in (Int32, Uint32) or algebra.size(words.layout) != count:
            raise CompileError(
                "the words of a sparse A are a register tensor of Uint32, one for each instruction along M and K",
                location=user_location(4),
                values={"words": words, "instructions": count},
                hint="copy them from metadata[m, k, thread of the warpgroup], as utils.sparse.compress makes it",
            )
        return [Int32(words[number]).ir_value() for number in range(count)]

    def _check_operand(self, atom: MmaAtom, name: str, tensor: Tensor) -> None:
        operand = "C" if name == "D" else name
        space = AddressSpace.smem if operand != "C" and self.in_memory(operand) else AddressSpace.rmem
        if tensor.is_coordinates or tensor.memspace is not space:
            raise CompileError(
                f"operand {name} of this product lies in {space}",
                location=user_location(3),
                values={name: tensor},
                hint=_PLACE_HINTS[space],
            )
        wanted = atom.dtype(operand)
        if tensor.element_type is not wanted and (wanted, tensor.element_type) != (TFloat32, Float32):
            raise CompileError(
                f"operand {name} of the MMA is {wanted}, and the tensor {tensor.element_type}",
                location=user_location(3),
                values={name: tensor, "atom": atom.text},
            )
        held = algebra.product(_modes(tensor)[0])
        if held != atom.values(operand):
            raise CompileError(
                f"the MMA takes {atom.values(operand)} values of operand {name}, and its first mode has {held}",
                location=user_location(3),
                values={name: tensor.layout, "atom": atom.text},
                hint=f"partition it with partition_{operand} of a slice of the tiled MMA",
            )


_PLACE_HINTS = {
    AddressSpace.smem: "give it what make_fragment_A or make_fragment_B makes of a partitioned tensor in shared memory",
    AddressSpace.rmem: "make it with cute.make_rmem_tensor(tiled_mma.partition_shape_C((m, n)), dtype); A in registers "
    "is of an operation with OperandSource.RMEM",
}


class MmaF16BF16Op(WarpgroupMmaOp):
    """`wgmma` of Float16 or BFloat16 into Float32 (Float16 also into Float16), shape (64, N, 16)."""

    def __init__(
        self,
        ab_dtype: type[Numeric],
        acc_dtype: type[Numeric],
        instruction_shape: tuple[int, int, int],
        a_src: OperandSource = OperandSource.SMEM,
        a_major_mode: OperandMajorMode = OperandMajorMode.K,
        b_major_mode: OperandMajorMode = OperandMajorMode.K,
        sparse: bool = False,
    ) -> None:
        super().__init__(ab_dtype, ab_dtype, acc_dtype, instruction_shape, a_src, a_major_mode, b_major_mode, sparse)


class MmaTF32Op(WarpgroupMmaOp):
    """`wgmma` of TFloat32 (tensors may be Float32) into Float32, shape (64, N, 8), K-major."""

    def __init__(
        self, instruction_shape: tuple[int, int, int], a_src: OperandSource = OperandSource.SMEM,
        a_major_mode: OperandMajorMode = OperandMajorMode.K, b_major_mode: OperandMajorMode = OperandMajorMode.K,
        sparse: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(TFloat32, TFloat32, Float32, instruction_shape, a_src, a_major_mode, b_major_mode, sparse)


class MmaF8Op(WarpgroupMmaOp):
    """`wgmma` of Float8E4M3FN and Float8E5M2 into Float32 or Float16, shape (64, N, 32), K-major."""


class MmaI8Op(WarpgroupMmaOp):
    """`wgmma` of Int8 and Uint8 into Int32, shape (64, N, 32), K-major."""


def _whole_tile(rows: int, columns: int) -> Layout:
    """(thread, value) of an operand in shared memory: all threads read the whole tile."""
    return Layout((wgmma.WARPGROUP, (rows, columns)), (0, (1, rows)))


def _same_tensor(d: Tensor, c: Tensor) -> bool:
    if d.is_coordinates or c.is_coordinates:
        return False
    return bool(d.layout == c.layout and d.value == c.value)


def _modes(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.shape if isinstance(tensor.shape, tuple) else (tensor.shape,)


def _check_modes(d: Tensor, a: Tensor, b: Tensor) -> None:
    """A is (V,M,K) or (V,M), B (V,N,K) or (V,N), D (V,M,N); or V alone."""
    extents = {name: [algebra.product(mode) for mode in _modes(t)[1:]] for name, t in (("D", d), ("A", a), ("B", b))}
    padded = {name: (*found, 1, 1)[:2] for name, found in extents.items()}
    (m, n), (rows, k), (columns, again) = padded["D"], padded["A"], padded["B"]
    static = all(isinstance(extent, int) for found in extents.values() for extent in found)
    if not static or any(len(found) > 2 for found in extents.values()) or (rows, columns, k) != (m, n, again):
        raise CompileError(
            "the operands of cute.gemm do not fit each other",
            location=user_location(4),
            values={"D": d.layout, "A": a.layout, "B": b.layout},
            hint="A (V,M,K), B (V,N,K), D (V,M,N), or A (V,M), B (V,N) for one step of K; fix the stage",
        )


def fence(*, loc: object = None, ip: object = None) -> None:
    """Order the warpgroup's accesses to registers with its products: before the first product, and after writes."""
    trace.device("warpgroup.fence")
    build.cute("wgmma_fence", ())


def commit_group(*, loc: object = None, ip: object = None) -> None:
    """Close the group of all products that the warpgroup has begun since its last group."""
    trace.device("warpgroup.commit_group")
    build.cute("wgmma_commit", ())


def wait_group(group: Any, *, loc: object = None, ip: object = None) -> None:
    """Wait until at most `group` of the warpgroup's latest groups are unfinished; `group` is known while compiling.

    Raises:
        CompileError: `group` is known only at run time, or negative.
    """
    trace.device("warpgroup.wait_group")
    number = getattr(group, "value", group)
    if not isinstance(number, int) or number < 0:
        raise CompileError(
            "wait_group takes a number known while compiling",
            location=user_location(),
            values={"group": group},
            hint="PTX holds the number of groups in the instruction",
        )
    build.cute("wgmma_wait", (), (), groups=build.i32(number))


def setmaxregister_increase(reg_count: Any, *, loc: object = None, ip: object = None) -> None:
    """Raise the registers of each thread of the warpgroup to `reg_count`, once others have given up enough."""
    _set_registers(reg_count, "increase")


def setmaxregister_decrease(reg_count: Any, *, loc: object = None, ip: object = None) -> None:
    """Lower the registers of each thread of the warpgroup to `reg_count`, and give the others up."""
    _set_registers(reg_count, "decrease")


def _set_registers(count: Any, kind: str) -> None:
    trace.device(f"setmaxregister_{kind}")
    number = getattr(count, "value", count)
    if not isinstance(number, int) or not 24 <= number <= 256 or number % 8:
        raise CompileError(
            "the registers of a thread are a multiple of 8 from 24 to 256, known while compiling",
            location=user_location(3),
            values={"reg_count": count},
        )
    build.cute("set_registers", (), (), count=build.i32(number), kind=build.string(kind))
