"""Operations that NVIDIA's `nvvm` dialect has and MLIR's has not, on MLIR values."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import atomics
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Float32, Int32, Int64, Numeric, Uint32, Uint64, as_numeric
from tilewright.lang.nvgpu import extremes
from tilewright.lang.nvgpu.instructions import instruction
from tilewright.lang.tensors.pointer import AddressSpace, pointer_at


class AtomicOpKind(Enum):
    """What `atomicrmw` does with the number in memory."""

    AND = "and"
    OR = "or"
    XOR = "xor"
    ADD = "add"
    FADD = "fadd"
    MAX = "max"
    MIN = "min"
    UMAX = "umax"
    UMIN = "umin"
    FMAX = "fmax"
    FMIN = "fmin"
    INC = "inc"
    DEC = "dec"
    EXCH = "exch"
    CAS = "cas"


_UNSIGNED: dict[type[Numeric], type[Numeric]] = {Int32: Uint32, Int64: Uint64}


def atomicrmw(*args: Any, **kwargs: Any) -> Any:
    """`atomicrmw([res], op, ptr, a, *, mem_order=None, syncscope=None)`: the old number at `ptr`, as an MLIR value.

    `ptr` is an LLVM pointer, `a` an MLIR value of 32 or 64 bits (FADD: also of 16). `res`, its type, may be left out.

    Raises:
        CompileError: kind and type do not go together, or the kind is CAS.
    """
    op, ptr, a, order, scope = _arguments(args, kwargs)
    name = op.name.lower()
    if op is AtomicOpKind.CAS:
        raise CompileError(
            "nvvm.atomicrmw CAS is not built", location=user_location(), hint="cute.arch.atomic_cas(ptr, cmp=, val=)"
        )
    number = as_numeric(a)
    if name.startswith("f") != type(number).is_float and op is not AtomicOpKind.EXCH:
        raise CompileError(
            f"nvvm.atomicrmw {op.name} of a {type(number)}",
            location=user_location(),
            hint="FADD, FMAX and FMIN take floats, the others integers",
        )
    if name.startswith("u"):
        number = _UNSIGNED.get(type(number), type(number))(number)
    function = getattr(atomics, f"atomic_{name.removeprefix('u') if name[0] == 'u' else _plain(name)}")
    old = function(ptr, number, sem=order, scope=scope)
    return old.ir_value()


def _plain(name: str) -> str:
    return "add" if name == "fadd" else name


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[AtomicOpKind, Any, Any, Any, Any]:
    """Kind, pointer, value, order and scope: the result's type comes first or not at all."""
    given = dict(kwargs)
    given.pop("res", None)
    given.pop("loc", None)
    given.pop("ip", None)
    names = ("op", "ptr", "a", "b") if args and isinstance(args[0], AtomicOpKind) else ("res", "op", "ptr", "a", "b")
    given |= dict(zip([name for name in names if name not in kwargs] if kwargs else names, args, strict=False))
    given.pop("res", None)
    missing = [name for name in ("op", "ptr", "a") if given.get(name) is None]
    unknown = sorted(given.keys() - {"op", "ptr", "a", "b", "mem_order", "syncscope"})
    if missing or unknown or not isinstance(given["op"], AtomicOpKind):
        raise CompileError(
            "nvvm.atomicrmw takes op=, ptr= and a=",
            location=user_location(),
            values={"missing": ", ".join(missing) or None, "unknown": ", ".join(unknown) or None},
            hint="nvvm.atomicrmw(op=nvvm.AtomicOpKind.ADD, ptr=pointer.llvm_ptr, a=value.ir_value())",
        )
    return given["op"], given["ptr"], given["a"], _word(given.get("mem_order")), _word(given.get("syncscope"))


def _word(choice: Any) -> str | None:
    """`relaxed` of `MemOrderKind.RELAXED`, `gpu` of `MemScopeKind.GPU`."""
    return None if choice is None else str(getattr(choice, "name", choice)).lower()


def fmax(*args: Any, c: Any = None, abs: Any = None, nan: Any = None, ftz: Any = None, **_: object) -> Any:
    """`fmax([res], a, b)`: the greater of two or, with `c`, three Float32, as an MLIR value."""
    return _extreme(extremes.fmax, args, c, bool(abs), bool(nan), bool(ftz))


def fmin(*args: Any, c: Any = None, abs: Any = None, nan: Any = None, ftz: Any = None, **_: object) -> Any:
    """`fmin([res], a, b)`: the lesser of two or, with `c`, three Float32, as an MLIR value."""
    return _extreme(extremes.fmin, args, c, bool(abs), bool(nan), bool(ftz))


def _extreme(function: Any, args: tuple[Any, ...], c: Any, abs: bool, nan: bool, ftz: bool) -> Any:
    a, b = (Float32(as_numeric(item)) for item in args[-2:])
    best = function(a, b, abs=abs, nan=nan, ftz=ftz)
    if c is not None:
        best = function(best, Float32(as_numeric(c)), abs=abs, nan=nan, ftz=ftz)
    return best.ir_value()


def mbarrier_try_wait_parity_timelimit(
    addr: Any, phase: Any, ticks: Any, *, loc: object = None, ip: object = None
) -> Any:
    """Whether the phase of parity `phase` is complete, after waiting for it about `ticks` nanoseconds, as an i1."""
    at = pointer_at(addr, Int64, AddressSpace.smem).toint()
    text = "{ .reg .pred done; mbarrier.try_wait.parity.shared.b64 done, [$1], $2, $3; selp.b32 $0, 1, 0, done; }"
    operands = (at, Int32(as_numeric(phase)), Int32(as_numeric(ticks)))
    done = instruction(text, operands, result=Int32, feature="mbarrier.try_wait")
    return Boolean(done != 0).ir_value()
