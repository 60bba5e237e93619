"""The checked entry of a host function, as LLVM IR: from tvm-ffi's arguments to the leaves of the signature.

`wrapper_ir` writes `i32 @__tvm_ffi_<name>(ptr, ptr args, i32 count, ptr result)`. It checks every argument against
its parameter, in native code and in order, loads the leaves and calls the entry. A failed check sets an error of
kind ArgumentError that shows the whole tensor expected and the whole tensor given.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.base import spans
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
from tilewright.targets.host import abi, scalars
from tilewright.targets.host.irtext import Body, Messages, c_string, llvm_file, symbol

_MESSAGES = "messages"
_SIGNATURE = "signature"
_FAIL = [
    f"%message = getelementptr i8, ptr @{_MESSAGES}, i32 %failure",
    f"%failed = call i32 @__tw_fail_check(ptr @{abi.TABLE}, ptr %message, i64 %value, ptr %subject, ptr @{_SIGNATURE})",
    "ret i32 %failed",
]


def export_name(signature: Signature) -> str:
    """The symbol of the wrapper."""
    return "__tvm_ffi_" + re.sub(r"\W", "_", signature.name, flags=re.ASCII)


def entry_type(signature: Signature) -> str:
    """The LLVM type of the function that the wrapper calls."""
    return f"i32 ({', '.join(_entry_types(signature))})"


def _entry_types(signature: Signature) -> list[str]:
    return [*(leaf.type for leaf in signature.leaves()), "ptr"]


def wrapper_ir(signature: Signature, entry: str, kernels: int = 0, table: Sequence[str] = ()) -> str:
    """LLVM IR of the wrapper and the pointer table.

    Args:
        signature: what the function takes.
        entry: the symbol of the function, `i32 (leaves..., ptr table)`.
        kernels: how many kernels it launches: the size of the table.
        table: the constants that the slots of the table start with (`ptr @f`); by default all are 0.

    Raises:
        CompileError: a parameter cannot be passed by value.
    """
    check_signature(signature)
    writer = _Wrapper(signature, launches=kernels > 0)
    leaves = writer.arguments()
    types = ", ".join(_entry_types(signature))
    slots = [*table, *["ptr null"] * (abi.FIRST_KERNEL + kernels - len(table))]
    filled = f"@{abi.TABLE} = global [{len(slots)} x ptr] [{', '.join(slots)}], align 8"
    head = f"define i32 @{export_name(signature)}(ptr %handle, ptr %args, i32 %count, ptr %result)"
    writer.finish(entry, leaves)
    shown, size = c_string(describe_signature(signature))
    constant = f'@{_SIGNATURE} = private unnamed_addr constant [{size} x i8] c"{shown}"'
    return "\n".join([
        filled, writer.messages.definition(_MESSAGES), constant,
        llvm_file("wrapper"), f"declare i32 {symbol(entry)}({types})",
        # Straight code that runs once a call: optimising it costs 20 ms and gains next to nothing.
        f"{head} noinline optnone {{", "entry:", writer.body.text(_FAIL), "}", "",
    ])  # fmt: skip


@dataclass(frozen=True)
class _Symbol:
    """The first dimension of a symbol: its value, where it stands, and whether it binds (an i1; None: always)."""

    value: str
    place: str
    binds: str | None


@dataclass
class _Tensor:
    """A tensor argument in the making."""

    param: TensorParam
    place: str
    dl: str
    packed: str = ""  # for 4-bit types: an i1, whether one element of the DLTensor is two of ours
    empty: str = ""
    extents: list[str] = field(default_factory=list)
    strides: list[str] = field(default_factory=list)


class _Wrapper:
    """State while the wrapper is written: the body, the symbols seen, the first device."""

    def __init__(self, signature: Signature, launches: bool = False) -> None:
        self.signature = signature
        self.launches = launches
        self.body = Body()
        self.messages = Messages()
        self.symbols: dict[str, _Symbol] = {}
        self.device: str | None = None
        self.device_place = ""
        self.env_streams: list[int] = []
        self.leaves: list[str] = []

    def arguments(self) -> list[str]:
        """Check all arguments; the values of the leaves."""
        passed = [p for p in self.signature.params if not (isinstance(p, StreamParam) and p.env)]
        self._check_count(len(passed))
        position = 0
        for param in self.signature.params:
            if isinstance(param, StreamParam) and param.env:
                self.env_streams.append(len(self.leaves))
                self.leaves.append("")
                continue
            any_ = self.body.offset("%args", position * abi.ANY_SIZE)
            position += 1
            self._argument(param, any_, f"argument {position} '{param.name}' of {self.signature.name}")
        for index in self.env_streams:
            self.leaves[index] = self._env_stream()
        return self.leaves

    def finish(self, entry: str, leaves: list[str]) -> None:
        """Call the entry on the device of the tensors and return its result."""
        types = [leaf.type for leaf in self.signature.leaves()]
        passed = [f"{type_} {value}" for type_, value in zip(types, leaves, strict=True)]
        left = self._enter() if self.launches and self.device is not None else None
        status = self.body.value(f"call i32 {symbol(entry)}({', '.join([*passed, f'ptr @{abi.TABLE}'])})")
        if left is not None:
            self._leave(left)
        codes = (0, abi.RAISED, abi.INTERRUPTED)
        done, raised, interrupted = (self.body.value(f"icmp eq i32 {status}, {code}") for code in codes)
        told = self.body.value(f"or i1 {raised}, {interrupted}")
        text = f"{_escape(self.signature.name)} ended with error %lld"
        failure = self.messages(abi.FAILED_STATUS, text)
        shown = self.body.value(f"sext i32 {status} to i64")
        self.body.require(self.body.value(f"or i1 {done}, {told}"), failure, shown, "null")
        self.body.do(f"store i32 {abi.NONE}, ptr %result")
        self.body.do(f"ret i32 {status}")

    def _enter(self) -> str:
        """Make the context of the tensors' device current; where there is one device, nothing. The slot of what was."""
        body = self.body
        left = body.alloca("ptr")
        body.do(f"store ptr null, ptr {left}")
        enter = body.load("ptr", body.offset(f"@{abi.TABLE}", 8 * abi.SLOT_ENTER))
        absent = body.value(f"icmp eq ptr {enter}, null")
        call, after = body.label("enter"), body.label("entered")
        body.do(f"br i1 {absent}, label %{after}, label %{call}")
        body.start(call)
        status = body.value(f"call i32 {enter}(ptr @{abi.TABLE}, i32 {self.device}, ptr {left})")
        raised = body.value(f"icmp eq i32 {status}, {abi.RAISED}")
        stop, go_on = body.label("raised"), body.label("checked")
        body.do(f"br i1 {raised}, label %{stop}, label %{go_on}")
        body.start(stop)
        body.do(f"ret i32 {abi.RAISED}")
        body.start(go_on)
        fine = body.value(f"icmp eq i32 {status}, 0")
        text = f"{_escape(self.signature.name)} cannot use the device of its tensors\n  error  %lld"
        failure = self.messages(abi.FAILED_STATUS, text)
        body.require(fine, failure, body.value(f"sext i32 {status} to i64"), "null")
        body.do(f"br label %{after}")
        body.start(after)
        return left

    def _leave(self, left: str) -> None:
        """Make the context current again that `_enter` left, if any."""
        body = self.body
        context = body.load("ptr", left)
        stayed = body.value(f"icmp eq ptr {context}, null")
        call, after = body.label("leave"), body.label("left")
        body.do(f"br i1 {stayed}, label %{after}, label %{call}")
        body.start(call)
        body.do(f"call void @__tw_leave(ptr @{abi.TABLE}, ptr {context})")
        body.do(f"br label %{after}")
        body.start(after)

    def _check_count(self, count: int) -> None:
        names = [p.name for p in self.signature.params if not (isinstance(p, StreamParam) and p.env)]
        text = f"{_escape(self.signature.name)} takes {count} argument{'s' * (count != 1)}, %lld were given"
        failure = self.messages(abi.FAILED_COUNT, f"{text}\n  parameters  {', '.join(names) or 'none'}")
        right = self.body.value(f"icmp eq i32 %count, {count}")
        self.body.require(right, failure, self.body.value("sext i32 %count to i64"), "null")

    def _argument(self, param: Param, any_: str, place: str) -> None:
        match param:
            case TensorParam():
                self._tensor(param, any_, place)
            case ScalarParam():
                self._scalar(param, any_, place)
            case PointerParam():
                self._pointer(param, any_, place)
            case StreamParam():
                self._stream(any_, place)
            case TupleParam():
                self._tuple(param, any_, place)

    def _require_any(self, ok: str, any_: str, what: str, expected: str, hint: str = "") -> None:
        failure = self.messages(abi.FAILED_ARGUMENT, what, expected, _hint_line(hint))
        self.body.require(ok, failure, "0", any_)

    # Scalars, pointers, streams, tuples

    def _scalar(self, param: ScalarParam, any_: str, place: str) -> None:
        result = scalars.convert(self.body, param.dtype, any_)
        self._require_any(result.is_kind, any_, f"{place} has the wrong type", result.expected, result.hint)
        if result.in_range is not None:
            self._require_any(result.in_range, any_, f"{place} is out of range", result.expected)
        self.leaves.append(result.leaf)

    def _pointer(self, param: PointerParam, any_: str, place: str) -> None:
        ok, value = self._address(any_)
        self._require_any(ok, any_, f"{place} has the wrong type", f"pointer to {param.dtype}")
        if param.align > 1:
            rest = self.body.value(f"and i64 {value}, {param.align - 1}")
            aligned = self.body.value(f"icmp eq i64 {rest}, 0")
            what = f"{place} is not aligned"
            self._require_any(aligned, any_, what, f"an address that is a multiple of {param.align}")
        self.leaves.append(self.body.value(f"inttoptr i64 {value} to ptr"))

    def _stream(self, any_: str, place: str) -> None:
        ok, value = self._address(any_)
        self._require_any(ok, any_, f"{place} has the wrong type", "a CUDA stream, its handle, or None")
        self.leaves.append(self.body.value(f"inttoptr i64 {value} to ptr"))

    def _address(self, any_: str) -> tuple[str, str]:
        """Whether an argument is a pointer, an int or None (whose value is 0), and its value."""
        type_ = self.body.load("i32", any_)
        kinds = [self.body.value(f"icmp eq i32 {type_}, {kind}") for kind in (abi.OPAQUE, abi.INT, abi.NONE)]
        some = self.body.value(f"or i1 {kinds[0]}, {kinds[1]}")
        return self.body.value(f"or i1 {some}, {kinds[2]}"), self.body.load("i64", any_, abi.ANY_VALUE)

    def _env_stream(self) -> str:
        """The framework's current stream on the device of the tensors; null where the table has no way to ask."""
        slot = self.body.offset(f"@{abi.TABLE}", 8 * abi.SLOT_ENV_STREAM)
        ask = self.body.load("ptr", slot)
        absent = self.body.value(f"icmp eq ptr {ask}, null")
        origin, call, after = self.body.block, self.body.label("ask"), self.body.label("stream")
        self.body.do(f"br i1 {absent}, label %{after}, label %{call}")
        self.body.start(call)
        identity = self.device or "0"
        stream = self.body.value(f"call ptr {ask}(i32 {abi.CUDA}, i32 {identity})")
        self.body.do(f"br label %{after}")
        self.body.start(after)
        return self.body.value(f"phi ptr [ null, %{origin} ], [ {stream}, %{call} ]")

    def _tuple(self, param: TupleParam, any_: str, place: str) -> None:
        count = len(param.items)
        expected = f"a tuple of {count}"
        type_ = self.body.load("i32", any_)
        kinds = [abi.ARRAY, abi.LIST, *([abi.SHAPE] if _is_shape(param) else [])]
        right, *others = (self.body.value(f"icmp eq i32 {type_}, {kind}") for kind in kinds)
        for other in others:
            right = self.body.value(f"or i1 {right}, {other}")
        self._require_any(right, any_, f"{place} has the wrong type", expected)
        # Arrays, lists and shapes all hold the address of their items and then their number.
        cell = self.body.offset(self.body.load("ptr", any_, abi.ANY_VALUE), abi.OBJECT_HEADER)
        length = self.body.load("i64", cell, 8)
        right = self.body.value(f"icmp eq i64 {length}, {count}")
        self._require_any(right, any_, f"{place} has the wrong length", expected)
        items = self.body.load("ptr", cell)
        if _is_shape(param):
            items = self._shape_items(items, count, others[-1])
        for index, item in enumerate(param.items):
            self._argument(item, self.body.offset(items, index * abi.ANY_SIZE), f"{place}, item {index} '{item.name}'")

    def _shape_items(self, items: str, count: int, is_shape: str) -> str:
        """The items of a tuple of integers, which may be a tvm-ffi shape: then they are 64-bit numbers themselves."""
        body = self.body
        made = body.alloca(f"[{count * abi.ANY_SIZE} x i8]")
        origin, copy, after = body.block, body.label("shape"), body.label("items")
        body.do(f"br i1 {is_shape}, label %{copy}, label %{after}")
        body.start(copy)
        for index in range(count):
            place = body.offset(made, index * abi.ANY_SIZE)
            body.do(f"store i64 {abi.INT}, ptr {place}")
            body.do(f"store i64 {body.load('i64', items, 8 * index)}, ptr {body.offset(place, abi.ANY_VALUE)}")
        body.do(f"br label %{after}")
        body.start(after)
        return body.value(f"phi ptr [ {items}, %{origin} ], [ {made}, %{copy} ]")

    # Tensors

    def _tensor(self, param: TensorParam, any_: str, place: str) -> None:
        tensor = _Tensor(param, place, self._dltensor(param, any_, place))
        self._check_rank(tensor)
        self._check_dtype(tensor)
        self._check_device(tensor)
        self._load_dims(tensor)
        data = self._data(tensor)
        self.leaves.append(data)
        if spans.is_narrow(param):
            self._check_span(tensor)
        for mode, dim in enumerate(param.shape):
            self._extent(tensor, mode, dim)
        for mode, dim in enumerate(param.stride):
            self._stride(tensor, mode, dim)

    def _require(self, ok: str, tensor: _Tensor, what: str, value: str = "0", hint: str = "") -> None:
        head = f"{_escape(tensor.place)}: {what}"
        failure = self.messages(abi.FAILED_TENSOR, head, describe(tensor.param), _hint_line(hint))
        self.body.require(ok, failure, value, tensor.dl)

    def _dltensor(self, param: TensorParam, any_: str, place: str) -> str:
        """The address of the DLTensor: passed itself, inside a tensor object, or as a tagged pointer of ours."""
        body = self.body
        type_, value = body.load("i32", any_), body.load("i64", any_, abi.ANY_VALUE)
        plain, boxed, opaque = (
            body.value(f"icmp eq i32 {type_}, {kind}") for kind in (abi.DLTENSOR, abi.TENSOR, abi.OPAQUE)
        )
        tag = body.value(f"and i64 {value}, 7")
        tagged = body.value(f"icmp eq i64 {tag}, {abi.VIEW_TAG}")
        view = body.value(f"and i1 {opaque}, {tagged}")
        some = body.value(f"or i1 {plain}, {boxed}")
        ok = body.value(f"or i1 {some}, {view}")
        self._require_any(ok, any_, f"{place} is not a tensor", describe(param))
        shift = body.value(f"select i1 {view}, i64 {-abi.VIEW_TAG}, i64 0")
        moved = body.value(f"select i1 {boxed}, i64 {abi.OBJECT_HEADER}, i64 {shift}")
        address = body.value(f"add i64 {value}, {moved}")
        return body.value(f"inttoptr i64 {address} to ptr")

    def _check_rank(self, tensor: _Tensor) -> None:
        ndim = self.body.load("i32", tensor.dl, abi.DL_NDIM)
        ok = self.body.value(f"icmp eq i32 {ndim}, {len(tensor.param.shape)}")
        self._require(ok, tensor, "wrong rank")

    def _check_dtype(self, tensor: _Tensor) -> None:
        dtype = self.body.load("i32", tensor.dl, abi.DL_DTYPE)
        code, bits = abi.DTYPES[tensor.param.dtype]
        ok = self.body.value(f"icmp eq i32 {dtype}, {code | bits << 8 | 1 << 16}")
        if bits == 4 and _leading(tensor.param) is not None:
            tensor.packed = self.body.value(f"icmp eq i32 {dtype}, {code | bits << 8 | 2 << 16}")
            ok = self.body.value(f"or i1 {ok}, {tensor.packed}")
        self._require(ok, tensor, "wrong dtype")

    def _check_device(self, tensor: _Tensor) -> None:
        body = self.body
        kind = body.load("i32", tensor.dl, abi.DL_DEVICE)
        mask = body.load("i64", body.offset(f"@{abi.TABLE}", 8 * abi.SLOT_DEVICES))
        wide = body.value(f"zext i32 {kind} to i64")
        shift = body.value(f"and i64 {wide}, 63")
        bit = body.value(f"lshr i64 {mask}, {shift}")
        odd = body.value(f"trunc i64 {bit} to i1")
        small = body.value(f"icmp ult i32 {kind}, 64")
        self._require(body.value(f"and i1 {odd}, {small}"), tensor, "wrong device")
        identity = body.load("i32", tensor.dl, abi.DL_DEVICE + 4)
        if self.device is None:
            self.device, self.device_place = identity, tensor.place
            return
        same = body.value(f"icmp eq i32 {identity}, {self.device}")
        shown = body.value(f"sext i32 {self.device} to i64")
        self._require(same, tensor, f"not on the device of {_escape(self.device_place)}, number %lld", shown)

    def _data(self, tensor: _Tensor) -> str:
        base = self.body.load("i64", tensor.dl, abi.DL_DATA)
        offset = self.body.load("i64", tensor.dl, abi.DL_OFFSET)
        address = self.body.value(f"add i64 {base}, {offset}")
        if tensor.param.align > 1:
            rest = self.body.value(f"and i64 {address}, {tensor.param.align - 1}")
            ok = self.body.value(f"icmp eq i64 {rest}, 0")
            hint = "copy the tensor, or compile for a smaller alignment"
            self._require(ok, tensor, f"its address %#llx is not a multiple of {tensor.param.align}", address, hint)
        return self.body.value(f"inttoptr i64 {address} to ptr")

    def _load_dims(self, tensor: _Tensor) -> None:
        rank = len(tensor.param.shape)
        if rank == 0:
            return
        shape = self.body.load("ptr", tensor.dl, abi.DL_SHAPE)
        tensor.extents = [self.body.load("i64", shape, 8 * mode) for mode in range(rank)]
        given = list(tensor.extents)
        if tensor.packed:
            self._unpack(tensor, [_leading(tensor.param)], tensor.extents)
        tensor.empty = self.body.value(f"icmp eq i64 {tensor.extents[0]}, 0")
        for extent in tensor.extents[1:]:
            zero = self.body.value(f"icmp eq i64 {extent}, 0")
            tensor.empty = self.body.value(f"or i1 {tensor.empty}, {zero}")
        strides = self._strides_pointer(tensor, given)
        tensor.strides = [self.body.load("i64", strides, 8 * mode) for mode in range(rank)]
        if tensor.packed:
            self._unpack(tensor, [mode for mode in range(rank) if mode != _leading(tensor.param)], tensor.strides)

    def _unpack(self, tensor: _Tensor, modes: Sequence[int | None], numbers: list[str]) -> None:
        """Count elements where the tensor counts pairs of them (torch's `float4_e2m1fn_x2`)."""
        shift = self.body.value(f"zext i1 {tensor.packed} to i64")
        for mode in modes:
            assert mode is not None
            numbers[mode] = self.body.value(f"shl i64 {numbers[mode]}, {shift}")

    def _strides_pointer(self, tensor: _Tensor, extents: Sequence[str]) -> str:
        """Where the strides lie; a tensor without strides is compact, last mode fastest."""
        body = self.body
        strides = body.load("ptr", tensor.dl, abi.DL_STRIDES)
        absent = body.value(f"icmp eq ptr {strides}, null")
        origin, compact, after = body.block, body.label("compact"), body.label("strides")
        body.do(f"br i1 {absent}, label %{compact}, label %{after}")
        body.start(compact)
        made = body.alloca(f"[{len(tensor.extents)} x i64]")
        product = "1"
        for mode in reversed(range(len(extents))):
            body.do(f"store i64 {product}, ptr {body.offset(made, 8 * mode)}")
            product = body.value(f"mul i64 {product}, {extents[mode]}")
        body.do(f"br label %{after}")
        body.start(after)
        return body.value(f"phi ptr [ {strides}, %{origin} ], [ {made}, %{compact} ]")

    def _extent(self, tensor: _Tensor, mode: int, dim: Dim) -> None:
        value = tensor.extents[mode]
        if dim.value is not None:
            ok = self.body.value(f"icmp eq i64 {value}, {dim.value}")
            hint = "the layout was compiled in; compile with a dynamic layout to take other shapes"
            self._require(ok, tensor, "wrong shape", hint=hint)
            return
        name = f"extent %lld of mode {mode}"
        if dim.divisibility > 1:
            rest = self.body.value(f"urem i64 {value}, {dim.divisibility}")
            ok = self.body.value(f"icmp eq i64 {rest}, 0")
            self._require(ok, tensor, f"{name} is not a multiple of {dim.divisibility}", value)
        self._same(tensor, dim, value, f"extent of mode {mode}", None)
        self.leaves.append(self._narrow(value, dim))

    def _stride(self, tensor: _Tensor, mode: int, dim: Dim) -> None:
        body, value = self.body, tensor.strides[mode]
        # Where a mode has no second element its stride is never used and frameworks write anything.
        single = body.value(f"icmp slt i64 {tensor.extents[mode]}, 2")
        free = body.value(f"or i1 {single}, {tensor.empty}")
        if dim.value is not None:
            same = body.value(f"icmp eq i64 {value}, {dim.value}")
            hint = "the layout was compiled in; compile with a dynamic layout to take other strides"
            self._require(body.value(f"or i1 {same}, {free}"), tensor, "wrong strides", hint=hint)
            return
        # Null, which fits and divides, stands for a stride that is never used.
        used = body.value(f"select i1 {free}, i64 0, i64 {value}")
        name = f"stride %lld of mode {mode}"
        if dim.divisibility > 1:
            rest = body.value(f"srem i64 {used}, {dim.divisibility}")
            ok = body.value(f"icmp eq i64 {rest}, 0")
            self._require(ok, tensor, f"{name} is not a multiple of {dim.divisibility}", value)
        binds = body.value(f"xor i1 {free}, true")
        self._same(tensor, dim, value, f"stride of mode {mode}", binds)
        self.leaves.append(self._narrow(used, dim))

    def _same(self, tensor: _Tensor, dim: Dim, value: str, what: str, binds: str | None) -> None:
        """Require equality with the dimension that bears the same symbol."""
        if dim.symbol is None:
            return
        first = self.symbols.setdefault(dim.symbol, _Symbol(value, f"{what} of {tensor.place}", binds))
        if first.value is value:
            return
        ok = self.body.value(f"icmp eq i64 {value}, {first.value}")
        for bound in (binds, first.binds):
            if bound is not None:
                loose = self.body.value(f"xor i1 {bound}, true")
                ok = self.body.value(f"or i1 {ok}, {loose}")
        text = f"{what} must equal '{_escape(dim.symbol)}' = %lld, {_escape(first.place)}"
        self._require(ok, tensor, text, first.value)

    def _narrow(self, value: str, dim: Dim) -> str:
        return value if dim.width == 64 else self.body.value(f"trunc i64 {value} to i32")

    def _check_span(self, tensor: _Tensor) -> None:
        """Require what the 32-bit form rests on, see `spans`: few elements, that do not reach far.

        Nothing here overflows, unsigned: factors are cut at 2^31, which is more than either may be, and so are products
        of two before they meet another.
        """
        param = tensor.param
        counts: list[str] = []
        reaches: list[str] = []
        for mode, belongs in enumerate(spans.counted(param)):
            extent = self._extent_from_one(tensor, mode)
            if belongs:
                counts.append(extent)
            step = param.stride[mode].value
            if step == 0:
                continue
            last = self.body.value(f"sub i64 {extent}, 1")
            reaches.append(last if step == 1 else self._reach(last, tensor, mode))
        count = self._folded("mul", counts, 2)
        span = self._folded("add", [*reaches, "1"], 3)
        most = spans.most_elements(param)
        few, near = (self.body.value(f"icmp ule i64 {number}, {most}") for number in (count, span))
        ok = self.body.value(f"and i1 {few}, {near}")
        hint = "compile it with extents of 64 bits: cute.sym_int64() in a fake tensor"
        self._require(ok, tensor, f"it has or spans more than {most} elements, too many {spans.PHRASE}", hint=hint)

    def _extent_from_one(self, tensor: _Tensor, mode: int) -> str:
        known = tensor.param.shape[mode].value
        if known is not None:
            return str(min(max(known, 1), 1 << 31))
        return self._cut("umin", self._cut("umax", tensor.extents[mode], 1), 1 << 31)

    def _reach(self, last: str, tensor: _Tensor, mode: int) -> str:
        step = tensor.param.stride[mode].value
        factor = (
            self._cut("umin", self._absolute(tensor.strides[mode]), 1 << 31)
            if step is None
            else str(min(abs(step), 1 << 31))
        )
        return self.body.value(f"mul i64 {last}, {factor}")

    def _absolute(self, value: str) -> str:
        sign = self.body.value(f"ashr i64 {value}, 63")
        flipped = self.body.value(f"xor i64 {value}, {sign}")
        return self.body.value(f"sub i64 {flipped}, {sign}")

    def _folded(self, operation: str, parts: list[str], safe: int) -> str:
        """The sum or product of `parts`, of which `safe` meet without overflow."""
        total = parts[0] if parts else "1"
        for number, part in enumerate(parts[1:], 2):
            if number > safe:
                total = self._cut("umin", total, 1 << 31 if operation == "mul" else 1 << 62)
            total = self.body.value(f"{operation} i64 {total}, {part}")
        return total

    def _cut(self, name: str, value: str, limit: int) -> str:
        """`umin` or `umax` of both. LLVM makes code of these operations faster than of its intrinsics."""
        keep = self.body.value(f"icmp {'ult' if name == 'umin' else 'ugt'} i64 {value}, {limit}")
        return self.body.value(f"select i1 {keep}, i64 {value}, i64 {limit}")


def _is_shape(param: TupleParam) -> bool:
    """Whether a tvm-ffi shape may stand for this tuple."""
    return all(isinstance(item, ScalarParam) and item.dtype[0] in "iu" for item in param.items)


def _leading(param: TensorParam) -> int | None:
    """The mode of stride 1, along which pairs are packed."""
    return next((mode for mode, step in enumerate(param.stride) if step.value == 1), None)


def describe(param: TensorParam) -> str:
    """A tensor parameter as text: `f32 (n0, 8) : (8, 1)`; `?` and symbols are values taken at run time."""
    shape, stride = (f"({', '.join(_describe_dim(dim) for dim in dims)})" for dims in (param.shape, param.stride))
    return f"{param.dtype} {shape} : {stride}"


def _describe_dim(dim: Dim) -> str:
    return str(dim) if dim.symbol is None else str(dim).replace("?", dim.symbol, 1)


def describe_signature(signature: Signature) -> str:
    """A function and what it takes: `scale(x: f32 (n0), factor: f32)`."""
    passed = [param for param in signature.params if not (isinstance(param, StreamParam) and param.env)]
    return f"{signature.name}({', '.join(f'{param.name}: {_describe_param(param)}' for param in passed)})"


def _describe_param(param: Param) -> str:
    match param:
        case TensorParam():
            return f"{param.dtype} ({', '.join(_describe_dim(dim) for dim in param.shape)})"
        case ScalarParam():
            return param.dtype
        case PointerParam():
            return f"pointer to {param.dtype}"
        case StreamParam():
            return "stream"
        case TupleParam():
            return f"({', '.join(_describe_param(item) for item in param.items)})"


def _hint_line(hint: str) -> str:
    return f"\n  hint: {hint}" if hint else ""


def _escape(text: str) -> str:
    """`text` for a printf format."""
    return text.replace("%", "%%")


def check_signature(signature: Signature) -> None:
    """Refuse parameters that have no native form."""
    pending: list[Param] = list(signature.params)
    while pending:
        param = pending.pop()
        if isinstance(param, TupleParam):
            pending += param.items
            if any(isinstance(item, StreamParam) and item.env for item in param.items):
                raise CompileError(f"parameter {param.name!r}: a stream of the environment cannot stand in a tuple")
        elif isinstance(param, TensorParam) and param.dtype not in abi.DTYPES:
            raise CompileError(f"parameter {param.name!r}: a tensor of {param.dtype} cannot be passed")
        elif isinstance(param, ScalarParam) and param.dtype not in scalars.PASSABLE:
            hint = "pass it in a tensor of one element"
            raise CompileError(f"parameter {param.name!r}: a number of type {param.dtype} cannot be passed", hint=hint)
