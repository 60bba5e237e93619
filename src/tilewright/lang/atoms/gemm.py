"""`cute.gemm`: D = A * B + C over register fragments."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang.atoms.fma_operands import lie_in_memory, steps_in_registers, with_values
from tilewright.lang.atoms.mma_atom import AsyncMmaOp, MmaAtom, MmaUniversalOp
from tilewright.lang.leaves import describe
from tilewright.lang.locations import user_location
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import product


def gemm(atom: Any, d: Tensor, a: Any, b: Tensor, c: Tensor, *, loc: object = None, ip: object = None) -> None:
    """D = A * B + C with an MMA atom or tiled MMA, on the thread's fragments.

    Fragments are `A (V,M,K)`, `B (V,N,K)`, `C` and `D (V,M,N)`, where V is what one instruction takes; without the
    mode K they stand for one step, and single instructions have V alone. The sums over K are taken in order. Products
    of a warpgroup run on after this; D and C are one tensor, see `cute.nvgpu.warpgroup`.

    A sparse A is given with its words, `(a, words)`, see `cute.nvgpu.warpgroup`.

    Products of single numbers (`MmaUniversalOp`) may leave out the mode V, and take A and B from any memory.

    Raises:
        CompileError: shapes, types or memories do not fit the atom.
    """
    if not isinstance(atom, MmaAtom):
        raise CompileError(
            f"cute.gemm takes an MMA atom or tiled MMA first, not {type(atom).__name__}", location=user_location()
        )
    with_words = isinstance(atom.op, AsyncMmaOp) and isinstance(a, tuple | list) and len(a) == 2
    for name, tensor in (("d", d), ("a", a[0] if with_words else a), ("b", b), ("c", c)):
        if not isinstance(tensor, Tensor):
            raise CompileError(
                f"cute.gemm takes a tensor as `{name}`, not {describe(tensor)}",
                location=user_location(),
                hint="gemm(atom, d, a, b, c): d = a * b + c on the thread's fragments",
            )
    if isinstance(atom.op, AsyncMmaOp):
        atom.op.issue(atom, d, a, b, c)
        return
    if isinstance(atom.op, MmaUniversalOp):
        d, a, b, c = with_values(d, a, b, c)
        if lie_in_memory(a, b):
            _check_shapes(d, a, b, c)
            for step in steps_in_registers(d, a, b, c):
                _multiply(atom, *step)
            return
    _multiply(atom, d, a, b, c)


def _multiply(atom: MmaAtom, d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> None:
    """The operation, on fragments in registers."""
    for name, tensor in (("A", a), ("B", b), ("C", c), ("D", d)):
        _check_operand(atom, name, tensor)
    _check_shapes(d, a, b, c)
    groups = ((d.value,), (a.value,), (b.value,), (c.value,))
    build.cute("gemm", (), groups, atom=build.string(atom.text))


def mma_atom_call(atom: Any, d: Tensor, a: Tensor, b: Tensor, c: Tensor, **_: object) -> None:
    """Multiply with a single instruction: `gemm` for fragments of one mode."""
    gemm(atom, d, a, b, c)


def _check_operand(atom: MmaAtom, name: str, tensor: Tensor) -> None:
    operand = "C" if name == "D" else name
    if tensor.is_coordinates or tensor.memspace is not AddressSpace.rmem:
        raise CompileError(
            f"operand {name} of cute.gemm must lie in registers",
            location=user_location(4),
            values={name: tensor},
            hint=f"copy it to a fragment made with make_fragment_{operand} first",
        )
    wanted = atom.dtype(operand)
    if tensor.element_type is not wanted:
        raise CompileError(
            f"operand {name} of the MMA is {wanted}, and the fragment {tensor.element_type}",
            location=user_location(4),
            values={name: tensor, "atom": atom.text},
            hint="convert with .load().to(dtype)",
        )
    held = product(_shape(tensor)[0])
    if held != atom.values(operand):
        raise CompileError(
            f"the MMA takes {atom.values(operand)} values a thread of operand {name}, and its first mode has {held}",
            location=user_location(4),
            values={name: tensor.layout, "atom": atom.text},
            hint=f"make the fragment with make_fragment_{operand} of a tensor from partition_{operand}",
        )


def _check_shapes(d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> None:
    ranks = tuple(len(_shape(tensor)) for tensor in (d, a, b, c))
    extents = {name: [product(mode) for mode in _shape(t)] for name, t in (("D", d), ("A", a), ("B", b), ("C", c))}
    fits = ranks in ((1, 1, 1, 1), (3, 2, 2, 3), (3, 3, 3, 3))
    if fits and ranks[0] == 3:
        fits = extents["A"][1] == extents["C"][1] and extents["B"][1] == extents["C"][2]
        fits = fits and extents["A"][2:] == extents["B"][2:]
    if not fits or extents["C"] != extents["D"]:
        raise CompileError(
            "fragments of cute.gemm do not fit each other",
            location=user_location(4),
            values={name: tensor.layout for name, tensor in (("D", d), ("A", a), ("B", b), ("C", c))},
            hint="A (V,M,K), B (V,N,K), C and D (V,M,N), or A (V,M), B (V,N) for one step of K",
        )


def _shape(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.shape if isinstance(tensor.shape, tuple) else (tensor.shape,)
