"""Loads and stores with an order or a cache operator: PTX's `ld` and `st`.

`sem` and `scope` are those of PTX ISA 9.0, "Memory Consistency Model"; `cop` is one of its cache operators. A load or
store with neither is a plain one.
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import trace
from tilewright.lang.accesses import as_pointer, as_vector, check_order, stored_type
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Numeric, Uint8, Uint16, Uint32, Uint64, as_numeric, number_type
from tilewright.lang.nvgpu.instructions import instruction
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor_ssa import TensorSSA

LOAD_CACHE = ("ca", "cg", "cs", "lu", "cv")
STORE_CACHE = ("wb", "cg", "cs", "wt")
SPACE = {AddressSpace.gmem: ".global", AddressSpace.smem: ".shared"}
_REGISTER: dict[int, type[Numeric]] = {8: Uint16, 16: Uint16, 32: Uint32, 64: Uint64}
_STRONG = ("relaxed", "acquire", "release")


def load(
    ptr: Any, dtype: Any = None, *, sem: Any = None, scope: Any = None, cop: Any = None, loc: object = None,
    ip: object = None,
) -> Any:  # fmt: skip
    """The number of type `dtype` at `ptr`.

    `sem` is None, `relaxed`, `acquire` or `volatile`; `cop` is `ca`, `cg`, `cs`, `lu` or `cv`.
    """
    trace.device("arch.load")
    _check_access("arch.load", sem, scope, cop, ("relaxed", "acquire", "volatile"), LOAD_CACHE)
    cls = number_type(dtype if dtype is not None else stored_type(ptr))
    _check_width("arch.load", cls.width)
    pointer = as_pointer(ptr, cls)
    text = f"ld{_qualifiers(pointer, sem, scope, cop)}.{_untyped(cls.width)} $0, [$1];"
    bits = instruction(text, (pointer.toint(),), result=_REGISTER[cls.width], feature=_feature(sem, scope))
    return _as_type(bits, cls)


def store(
    ptr: Any, val: Any, *, sem: Any = None, scope: Any = None, cop: Any = None, loc: object = None, ip: object = None
) -> None:
    """Write `val` at `ptr`: a number, or 4, 8 or 16 bytes as a TensorSSA or MLIR vector.

    `sem` is None, `relaxed`, `release` or `volatile`; `cop` is `wb`, `cg`, `cs` or `wt`.
    """
    trace.device("arch.store")
    _check_access("arch.store", sem, scope, cop, ("relaxed", "release", "volatile"), STORE_CACHE)
    words, form, pointer = _written(ptr, val)
    text = f"st{_qualifiers(pointer, sem, scope, cop)}{form} [$0], {listed(len(words))};"
    instruction(text, (pointer.toint(), *words), feature=_feature(sem, scope))


def _written(ptr: Any, val: Any) -> tuple[list[Numeric], str, Pointer]:
    """What a store writes as machine words, the end of its opcode, and where."""
    vector = as_vector(val)
    if vector is not None:
        words = machine_words(vector)
        return words, f"{vector_mark(len(words))}.b32", as_pointer(ptr, vector.dtype)
    stored = stored_type(ptr)
    number = as_numeric(val) if stored is None else stored(as_numeric(val))
    width = number.width
    _check_width("arch.store", width)
    return [_as_register(number)], f".{_untyped(width)}", as_pointer(ptr, type(number))


def listed(count: int) -> str:
    """The operands from `$1` on, in braces where there are several."""
    names = ", ".join(f"${number + 1}" for number in range(count))
    return names if count == 1 else "{" + names + "}"


def vector_mark(count: int) -> str:
    """`.v2` or `.v4` for several operands."""
    return "" if count == 1 else f".v{count}"


def machine_words(vector: TensorSSA) -> list[Numeric]:
    """The bits of 4, 8 or 16 bytes in words of 32."""
    bits = vector.size * vector.dtype.width
    if bits not in (32, 64, 128) or vector.dtype is Boolean:
        raise CompileError(
            "a vector of another size than 4, 8 or 16 bytes", location=user_location(3), values={"vector": vector}
        )
    return list(vector.bitcast(Uint32))


def _as_register(number: Numeric) -> Numeric:
    """A number in a register of at least 16 bits."""
    if type(number) is Boolean:
        return Uint16(number)
    unsigned = {8: Uint8, 16: Uint16, 32: Uint32, 64: Uint64}[number.width]
    bits: Numeric = number if type(number) is unsigned else number.bitcast(unsigned)
    return Uint16(bits) if number.width == 8 else bits


def _as_type(bits: Numeric, cls: type[Numeric]) -> Numeric:
    if cls is Boolean:
        return Boolean(bits)
    narrow = Uint8(bits) if cls.width == 8 else bits
    return narrow if type(narrow) is cls else narrow.bitcast(cls)


def _untyped(width: int) -> str:
    return "u8" if width == 8 else f"b{width}"


def _check_width(name: str, width: int) -> None:
    if width not in _REGISTER:
        raise CompileError(f"{name} of {width} bits", location=user_location(3), hint="it takes 8, 16, 32 or 64 bits")


def _qualifiers(pointer: Pointer, sem: Any, scope: Any, cop: Any) -> str:
    order = f".{sem}" if sem else ""
    order += f".{scope or 'gpu'}" if sem in _STRONG else ""
    return order + SPACE.get(pointer.memspace, "") + (f".{cop}" if cop else "")


def _feature(sem: Any, scope: Any) -> str:
    if scope == "cluster":
        return "cluster"
    return "ld.acquire" if sem in _STRONG else ""


def _check_access(name: str, sem: Any, scope: Any, cop: Any, orders: tuple[str, ...], caches: tuple[str, ...]) -> None:
    check_order(sem, scope, name, orders)
    if cop is not None and cop not in caches:
        raise CompileError(
            f"{name} has no cop {cop!r}", location=user_location(3), hint=f"cop is one of {', '.join(caches)}"
        )
    if cop is not None and sem is not None:
        raise CompileError(
            f"{name} with a cop and a sem", location=user_location(3), values={"cop": cop, "sem": sem},
            hint="ordered accesses go to the memory that the scope shares: leave cop out",
        )  # fmt: skip
    if scope is not None and sem not in _STRONG:
        raise CompileError(
            f"{name} with a scope but no order", location=user_location(3), values={"scope": scope, "sem": sem},
            hint='give sem="relaxed", say',
        )  # fmt: skip
