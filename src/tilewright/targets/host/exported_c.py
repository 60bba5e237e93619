"""The C interface of exported functions: how parameters lie in memory, and the code that takes them from there.

A tensor is a struct of its address and of the extents and strides that were left to run time; a tuple a struct of its
items; numbers, pointers and streams are themselves. `__tw_run_<name>(void **args, int count)` gets the address of
each, packs them as tvm-ffi does and calls the checked function.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.base.errors import CompileError
from tilewright.base.signature import (
    Dim,
    Param,
    PointerParam,
    ScalarParam,
    Signature,
    StreamParam,
    TensorParam,
    TupleParam,
)
from tilewright.targets.host import abi
from tilewright.targets.host.irtext import Body

_C_TYPES = {
    "bool": ("bool", "i8"),
    **{f"i{bits}": (f"int{bits}_t", f"i{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": (f"uint{bits}_t", f"i{bits}") for bits in (8, 16, 32, 64)},
    "f16": ("uint16_t", "half"),
    "tf32": ("float", "float"),
    "f32": ("float", "float"),
    "f64": ("double", "double"),
}
_SIZES = {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}


def passed(signature: Signature) -> list[Param]:
    """The parameters that callers pass."""
    return [param for param in signature.params if not (isinstance(param, StreamParam) and param.env)]


_C_WORDS = """
    auto bool break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
"""
_CPP_WORDS = "class delete namespace new operator private public template this throw try using virtual"
_RESERVED = frozenset((*_C_WORDS.split(), *_CPP_WORDS.split(), "module"))


def identifier(name: str) -> str:
    """`name` as a C identifier."""
    made = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "arg"
    return f"{made}_" if made in _RESERVED or made[0].isdigit() else made


@dataclass(frozen=True)
class Member:
    """A member of a struct: its C declaration without the semicolon, and where it lies, in bytes."""

    declaration: str
    offset: int


@dataclass(frozen=True)
class Struct:
    """How a parameter lies in memory; `members` is empty for one that is a plain value of C type `type`."""

    type: str
    size: int
    align: int
    members: tuple[Member, ...] = ()
    inner: tuple[Struct, ...] = ()


def layout(param: Param, prefix: str) -> Struct:
    """The C type of a parameter; structs are named `<prefix>_Tensor_<name>_t` and `<prefix>_Tuple_<name>_t`.

    Raises:
        CompileError: C has no such type.
    """
    match param:
        case TensorParam():
            return _tensor_layout(param, prefix)
        case TupleParam():
            inner = [layout(item, prefix) for item in param.items]
            names = [f"item{index}" for index in range(len(inner))]
            parts = [(f"{item.type} {name}", item.size, item.align) for item, name in zip(inner, names, strict=True)]
            return _struct(f"{prefix}_Tuple_{identifier(param.name)}_t", parts, tuple(inner))
        case ScalarParam():
            if param.dtype not in _C_TYPES:
                raise CompileError(
                    f"parameter {param.name!r}: C has no number of type {param.dtype}",
                    hint="pass it in a tensor of one element, or export with function_name= for tvm-ffi",
                )
            name, machine = _C_TYPES[param.dtype]
            return Struct(name, _SIZES[machine], _SIZES[machine])
        case _:
            return Struct("void *", 8, 8)


def _tensor_layout(param: TensorParam, prefix: str) -> Struct:
    parts: list[tuple[str, int, int]] = [("void *data", 8, 8)]
    for dims, name in ((param.shape, "dynamic_shapes"), (param.stride, "dynamic_strides")):
        count, width = _dynamic(dims)
        if count:
            parts.append((f"int{width}_t {name}[{count}]", count * width // 8, width // 8))
    return _struct(f"{prefix}_Tensor_{identifier(param.name)}_t", parts)


def _dynamic(dims: tuple[Dim, ...]) -> tuple[int, int]:
    """How many of `dims` are left to run time, and the bits of the widest."""
    found = [dim.width for dim in dims if dim.value is None]
    return len(found), max(found, default=32)


def _struct(type_: str, parts: list[tuple[str, int, int]], inner: tuple[Struct, ...] = ()) -> Struct:
    members, end, align = [], 0, 1
    for declaration, size, part_align in parts:
        end = -(-end // part_align) * part_align
        members.append(Member(declaration, end))
        end, align = end + size, max(align, part_align)
    return Struct(type_, -(-end // align) * align, align, tuple(members), inner)


def packed_ir(signature: Signature, name: str, checked: str, device: int) -> str:
    """LLVM IR of `i32 @<name>(ptr args, i32 count)`: the addresses of the arguments, and perhaps of the result.

    `device` is the DLPack type of where tensors are.
    """
    params = passed(signature)
    body = Body()
    count = len(params)
    enough = body.value(f"icmp sge i32 %count, {count}")
    body.do(f"br i1 {enough}, label %pack, label %few")
    body.start("few")
    body.do(f"ret i32 {abi.RAISED}")
    body.start("pack")
    array = body.alloca(f"[{max(count, 1) * abi.ANY_SIZE} x i8]")
    for index, param in enumerate(params):
        address = body.load("ptr", "%args", 8 * index)
        _pack(body, param, address, body.offset(array, index * abi.ANY_SIZE), device)
    result = body.alloca(f"[{abi.ANY_SIZE} x i8]")
    status = body.value(f"call i32 @{checked}(ptr null, ptr {array}, i32 {count}, ptr {result})")
    wants = body.value(f"icmp sgt i32 %count, {count}")
    body.do(f"br i1 {wants}, label %give, label %end")
    body.start("give")
    body.do(f"store i32 {status}, ptr {body.load('ptr', '%args', 8 * count)}")
    body.do("br label %end")
    body.start("end")
    body.do(f"ret i32 {status}")
    lines = "\n".join([*body.allocas, *body.lines])
    declaration = f"declare i32 @{checked}(ptr, ptr, i32, ptr)"
    return f"{declaration}\ndefine i32 @{name}(ptr %args, i32 %count) noinline optnone {{\nentry:\n{lines}\n}}\n"


def _pack(body: Body, param: Param, address: str, any_: str, device: int) -> None:
    """Write the argument at `address` as a TVMFFIAny at `any_`."""
    match param:
        case TensorParam():
            _any(body, any_, abi.DLTENSOR, f"ptr {_dltensor(body, param, address, device)}")
        case TupleParam():
            _any(body, any_, abi.ARRAY, f"ptr {_array(body, param, address, device)}")
        case ScalarParam():
            kind, value = _scalar(body, param, address)
            _any(body, any_, kind, value)
        case PointerParam() | StreamParam():
            _any(body, any_, abi.OPAQUE, f"ptr {body.load('ptr', address)}")


def _any(body: Body, any_: str, kind: int, value: str) -> None:
    body.do(f"store i64 {kind}, ptr {any_}")
    body.do(f"store {value}, ptr {body.offset(any_, abi.ANY_VALUE)}")


def _scalar(body: Body, param: ScalarParam, address: str) -> tuple[int, str]:
    _, machine = _C_TYPES[param.dtype]
    value = body.load(machine, address)
    if machine in ("half", "float"):
        value = body.value(f"fpext {machine} {value} to double")
    if machine in ("half", "float", "double"):
        return abi.FLOAT, f"double {value}"
    if machine != "i64":
        extend = "sext" if param.dtype.startswith("i") else "zext"
        value = body.value(f"{extend} {machine} {value} to i64")
    return (abi.BOOL if param.dtype == "bool" else abi.INT), f"i64 {value}"


def _array(body: Body, param: TupleParam, address: str, device: int) -> str:
    """An array object of tvm-ffi on the stack: a header nobody reads, the items, their number."""
    items = body.alloca(f"[{len(param.items) * abi.ANY_SIZE} x i8]")
    for index, (item, member) in enumerate(zip(param.items, layout(param, "").members, strict=True)):
        _pack(body, item, body.offset(address, member.offset), body.offset(items, index * abi.ANY_SIZE), device)
    made = body.alloca(f"[{abi.OBJECT_HEADER + 16} x i8]")
    body.do(f"store ptr {items}, ptr {body.offset(made, abi.OBJECT_HEADER)}")
    body.do(f"store i64 {len(param.items)}, ptr {body.offset(made, abi.OBJECT_HEADER + 8)}")
    return made


def _dltensor(body: Body, param: TensorParam, address: str, device: int) -> str:
    """A DLTensor on the stack. Its device is the first of the kind; the call takes the thread's current one."""
    rank = len(param.shape)
    made, numbers = body.alloca("[48 x i8]"), body.alloca(f"[{max(2 * rank, 1)} x i64]")
    members = _tensor_layout(param, "").members
    offsets = {member.declaration.split()[1].partition("[")[0]: member.offset for member in members}
    for start, dims, name in ((0, param.shape, "dynamic_shapes"), (rank, param.stride, "dynamic_strides")):
        _numbers(body, dims, body.offset(numbers, 8 * start), address, offsets.get(name, 0))
    code, bits = abi.DTYPES[param.dtype]
    kind = rank | code << 32 | bits << 40 | 1 << 48
    body.do(f"store ptr {body.load('ptr', address)}, ptr {made}")
    body.do(f"store i64 {device}, ptr {body.offset(made, abi.DL_DEVICE)}")
    body.do(f"store i64 {kind}, ptr {body.offset(made, abi.DL_NDIM)}")
    body.do(f"store ptr {numbers}, ptr {body.offset(made, abi.DL_SHAPE)}")
    body.do(f"store ptr {body.offset(numbers, 8 * rank)}, ptr {body.offset(made, abi.DL_STRIDES)}")
    body.do(f"store i64 0, ptr {body.offset(made, abi.DL_OFFSET)}")
    return made


def _numbers(body: Body, dims: tuple[Dim, ...], target: str, address: str, offset: int) -> None:
    """Write extents or strides as 64-bit numbers; those of run time come from the struct."""
    _, width = _dynamic(dims)
    position = 0
    for mode, dim in enumerate(dims):
        value = str(dim.value)
        if dim.value is None:
            value = body.load(f"i{width}", address, offset + position * width // 8)
            position += 1
            if width == 32:
                value = body.value(f"sext i32 {value} to i64")
        body.do(f"store i64 {value}, ptr {body.offset(target, 8 * mode)}")
