"""Atomic operations with what NVIDIA's instructions add: several numbers in one step, and folds that give nothing."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, types, vectors
from tilewright.lang import atomics, trace
from tilewright.lang.accesses import as_pointer, as_vector, check_order
from tilewright.lang.atomics import FOLDS, fold
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Float16,
    Float32,
    Float64,
    Int32,
    Int64,
    Numeric,
    Uint32,
    Uint64,
    as_numeric,
    number_type,
)
from tilewright.lang.nvgpu.instructions import instruction
from tilewright.lang.nvgpu.ordered import SPACE, listed, machine_words
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.tensor_ssa import TensorSSA

_PTX_NAMES: dict[str, type[Numeric]] = {
    "s32": Int32,
    "u32": Uint32,
    "s64": Int64,
    "u64": Uint64,
    "b32": Uint32,
    "b64": Uint64,
    "f16": Float16,
    "bf16": BFloat16,
    "f32": Float32,
    "f64": Float64,
}


def atomic_add(ptr: Any, val: Any, *, sem: Any = None, scope: Any = None, loc: object = None, ip: object = None) -> Any:
    """Add `val` to the number at `ptr` and give the old one. Integers of 32 and 64 bits, floats of 16 to 64; a
    TensorSSA of two 16-bit floats is added at once."""
    pair = as_vector(val)
    if pair is not None:
        trace.device("atomic_add")
        return _add_pair(ptr, pair, sem, scope)
    return atomics.atomic_add(ptr, val, sem=sem, scope=scope)


def red(
    ptr: Any,
    val: Any,
    *,
    op: str = "add",
    dtype: Any = None,
    sem: Any = None,
    scope: Any = None,
    loc: object = None,
    ip: object = None,
) -> None:
    """Fold `val` into the number at `ptr` with `op` and give nothing back.

    `op` is add, min, max, and, or, xor, inc or dec; `dtype` a number type or PTX's name of one, by default that of
    `val`; `sem` is `relaxed` or `release`. Two or four Float32 as a TensorSSA or MLIR vector are added to global memory
    by one instruction (sm_90), each of them atomically.
    """
    trace.device("arch.red")
    check_order(sem, scope, "arch.red", ("relaxed", "release"))
    if op not in FOLDS:
        raise CompileError(f"arch.red has no op {op!r}", location=user_location(), hint=", ".join(FOLDS))
    vector = as_vector(val)
    if vector is not None:
        _red_vector(ptr, vector, op, sem, scope)
        return
    cls = _PTX_NAMES.get(dtype, dtype) if isinstance(dtype, str) else dtype
    number = as_numeric(val) if cls is None else number_type(cls)(as_numeric(val))
    fold(op, ptr, number, sem, scope)


_PAIRS: dict[type[Numeric], tuple[str, str]] = {
    Float16: ("noftz.f16x2", "atom.add.f16x2"),
    BFloat16: ("noftz.bf16x2", "atom.add.bf16x2"),
}


def _add_pair(ptr: Any, val: TensorSSA, sem: Any, scope: Any) -> TensorSSA:
    """Add two 16-bit floats, each atomically; gives the old ones."""
    check_order(sem, scope, "atomic_add")
    if val.dtype not in _PAIRS or val.size != 2:
        raise CompileError(
            "atomic_add of a TensorSSA", location=user_location(3), values={"value": val},
            hint="it takes two Float16 or BFloat16; arch.red adds two or four Float32",
        )  # fmt: skip
    name, feature = _PAIRS[val.dtype]
    pointer = as_pointer(ptr, val.dtype)
    place = f".{sem or 'relaxed'}.{scope or 'gpu'}{SPACE.get(pointer.memspace, '')}"
    (word,) = machine_words(val)
    old = instruction(f"atom{place}.add.{name} $0, [$1], $2;", (pointer.toint(), word), result=Uint32, feature=feature)
    single = build.value("vector.broadcast", types.vector(1, "u32"), (old.ir_value(),))
    return TensorSSA(single, (1,), Uint32).bitcast(val.dtype)


def _red_vector(ptr: Any, val: TensorSSA, op: str, sem: Any, scope: Any) -> None:
    """Add two or four Float32 to global memory, each atomically."""
    if op != "add" or val.dtype is not Float32 or val.size not in (2, 4):
        raise CompileError(
            f"arch.red {op} of a vector", location=user_location(3), values={"value": val},
            hint="vectors of two or four Float32 are added; fold others one by one",
        )  # fmt: skip
    pointer = as_pointer(ptr, Float32)
    if pointer.memspace is not AddressSpace.gmem:
        raise CompileError(
            "arch.red of a vector outside global memory", location=user_location(3), values={"pointer": pointer},
            hint="fold one number at a time",
        )  # fmt: skip
    text = f"red.{sem or 'relaxed'}.{scope or 'gpu'}.global.add.v{val.size}.f32 [$0], {listed(val.size)};"
    values: list[Any] = [Float32.from_ir(vectors.extract(val.value, number)) for number in range(val.size)]
    instruction(text, (pointer.toint(), *values), feature="red.v4.f32")
