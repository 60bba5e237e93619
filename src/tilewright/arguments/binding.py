"""Arguments of jit functions: what each becomes in the signature, and what the traced function sees."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilewright.arguments.aggregates import Keywords, fixed_members, is_aggregate, member_at, members
from tilewright.arguments.dlpack import refuse_lazy
from tilewright.arguments.objects import adapted, addresses, is_jit_argument, load_object, object_param
from tilewright.arguments.runtime_tensor import FakeTensor, RuntimeTensor, implicit_param, is_tensor
from tilewright.base import dlpack_types, spans
from tilewright.base.errors import ArgumentError
from tilewright.base.signature import (
    Dim,
    Leaf,
    Param,
    PointerParam,
    ScalarParam,
    Signature,
    StreamParam,
    TensorParam,
    TupleParam,
)
from tilewright.ir import types
from tilewright.lang import leaves
from tilewright.lang.calls.parameters import (
    bind,
    evaluated_annotations,
    expects,
    gathered,
    gathering,
    is_constexpr,
    number_type_for,
)
from tilewright.lang.numbers.integer_range import ExtentProduct, SizeLimit
from tilewright.lang.numbers.numeric import BY_NAME, Boolean, Int32, Int64, Integer, Numeric, as_numeric, is_number
from tilewright.lang.numbers.numpy_scalars import to_python
from tilewright.lang.tensors.pointer import AddressSpace, Held, Pointer, pointer_at
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout

ENV_STREAM = "__stream"
_HANDLES = frozenset(("CUstream", "cudaStream_t", "Stream", "ExternalStream", "HostStream", "CUevent", "cudaEvent_t"))


class Stream:
    """A CUDA stream or event in traced code: one machine value, a handle."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __extract_mlir_values__(self) -> list[Any]:
        return [self.value]

    def __new_from_mlir_values__(self, values: list[Any]) -> Stream:
        return Stream(values[0])


class FakeStream:
    """A stream to compile for. With `env` it is no argument: the framework's current stream is taken at each call."""

    def __init__(self, env: bool = False) -> None:
        self.env = env


class RuntimePointer:
    """An address of the host: `make_ptr(dtype, address, space, assumed_align=)`."""

    def __init__(self, dtype: type[Numeric], address: int, space: AddressSpace, align: int) -> None:
        self.dtype, self.address, self.memspace, self.alignment = dtype, address, space, align
        self._cell = ctypes.c_uint64(address)

    @property
    def value_type(self) -> type[Numeric]:
        return self.dtype

    element_type = value_type

    @property
    def _pointer(self) -> int:
        """The address, by the name that sources of CuTe DSL know."""
        return self.address

    def __tvm_ffi_opaque_ptr__(self) -> int:
        return self.address

    def __c_pointers__(self) -> list[Any]:
        return [ctypes.addressof(self._cell)]

    def __get_mlir_types__(self) -> list[Any]:
        return [types.parse("i64")]

    def __new_from_mlir_values__(self, values: list[Any]) -> Pointer:
        return pointer_at(values[0], self.dtype, self.memspace, self.alignment)

    def __str__(self) -> str:
        return f"Ptr<0x{self.address:016x}@{self.memspace}>"

    __repr__ = __str__


def make_fake_stream(*, use_tvm_ffi_env_stream: bool = False) -> FakeStream:
    """A stream to compile for; with `use_tvm_ffi_env_stream` it is no argument of the compiled function."""
    return FakeStream(use_tvm_ffi_env_stream)


def make_ptr(
    dtype: type[Numeric],
    value: Any,
    mem_space: AddressSpace = AddressSpace.generic,
    *,
    assumed_align: int | None = None,
) -> RuntimePointer:
    """An address of the host or device, as an argument."""
    natural = max(dtype.width // 8, 1)
    align = assumed_align or natural
    value = value.value or 0 if isinstance(value, ctypes.c_void_p) else int(value)
    if value % align:
        raise ArgumentError(f"address {value:#x} is not a multiple of {align}", hint="give the alignment that it has")
    return RuntimePointer(dtype, int(value), mem_space, align)


@dataclass(frozen=True)
class BoundCall:
    """The arguments of one call, sorted: `runtime` become parameters, `constants` are baked in.

    The first `bound` parameters are those of a method that its object takes; no caller passes them.
    """

    runtime: dict[str, Any]
    constants: dict[str, Any]
    signature: Signature
    bound: int = 0

    def fixed(self) -> dict[str, dict[str, Any]]:
        """For each parameter of several members: the members that are baked in, by path."""
        found = {}
        for param in self.signature.params:
            value = self.runtime.get(param.name)
            if isinstance(param, TupleParam) and is_aggregate(value):
                found[param.name] = fixed_members(value, param)
        return {name: members for name, members in found.items() if members}

    def passed(self) -> list[Any]:
        """The values to pass to the compiled function, in the order of the signature."""
        return [value for name, value in self.runtime.items() if not _is_env_stream(value)]


def bind_call(function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> BoundCall:
    """Sort the arguments of a call of a jit function."""
    kinds = evaluated_annotations(function)
    runtime: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    params: list[Param] = []
    gathers = gathering(function)
    for position, (parameter, given) in enumerate(bind(function, args, kwargs).items()):
        annotation, value = kinds.get(parameter), to_python(adapted(given))
        become = _gathered_param if parameter in gathers else param_of
        if parameter in gathers and isinstance(value, dict):
            value = Keywords(value)
        param = None if is_constexpr(annotation) else become(parameter, value, annotation, position)
        if param is None:
            if not is_constexpr(annotation):
                _check_constant(parameter, value, position)
            constants[parameter] = value
        else:
            runtime[parameter] = value
            params.append(param)
    params.append(StreamParam(ENV_STREAM, env=True))
    return BoundCall(runtime, constants, Signature(name, _with_common_symbols(params)))


def _check_constant(name: str, value: Any, position: int) -> None:
    """Refuse a dict or set with tensors: it would be baked in, and its tensors used while compiling."""
    items = (
        list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, (set, frozenset)) else []
    )
    if any(is_tensor(item) for item in items):
        raise ArgumentError(
            f"argument #{position + 1} ({name}) is a {type(value).__name__} of tensors",
            hint="pass a tuple, a NamedTuple or a dataclass, whose members are passed one by one",
        )


def _with_common_symbols(params: list[Param]) -> tuple[Param, ...]:
    """The parameters with their symbols called n0, n1, ... in order: what is equal compiles to the same text."""
    names: dict[str, str] = {}

    def dims(found: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return tuple(
            dim if dim.symbol is None else replace(dim, symbol=names.setdefault(dim.symbol, f"n{len(names)}"))
            for dim in found
        )

    def renamed(param: Param) -> Param:
        if isinstance(param, TensorParam):
            return replace(param, shape=dims(param.shape), stride=dims(param.stride))
        return replace(param, items=tuple(map(renamed, param.items))) if isinstance(param, TupleParam) else param

    return tuple(map(renamed, params))


def param_of(name: str, value: Any, annotation: Any, position: int) -> Param | None:
    """The parameter that `value` becomes; None for a compile-time constant."""
    if isinstance(value, (RuntimeTensor, FakeTensor)):
        return value.param(name)
    if is_stream(value):
        return StreamParam(name, env=_is_env_stream(value))
    if _names_stream(annotation) and (is_number(value) or isinstance(value, ctypes.c_void_p)):
        return StreamParam(name)
    if isinstance(annotation, type) and issubclass(annotation, Numeric):
        if not is_number(value):
            raise expects(position, name, annotation, value)
        return ScalarParam(name, number_type_for(value, annotation, position, name).facts.name)
    if isinstance(annotation, type) and issubclass(annotation, Tensor) and not is_tensor(value):
        raise expects(position, name, annotation, value)
    if is_number(value):
        return ScalarParam(name, type(as_numeric(value)).facts.name)
    if isinstance(value, RuntimePointer):
        return PointerParam(name, value.dtype.facts.name, value.alignment, str(value.memspace))  # type: ignore[arg-type]
    if is_tensor(value):
        return implicit_param(value, name)
    if is_jit_argument(value):
        return object_param(name, value)
    if is_aggregate(value):
        return _aggregate_param(name, value, annotation, position)
    return None


def _aggregate_param(name: str, value: Any, annotation: Any, position: int) -> TupleParam | None:
    items = [
        param_of(member.name, adapted(member.value), member.annotation, position)
        for member in members(name, value, annotation)
        if not member.static
    ]
    found = tuple(item for item in items if item is not None)
    return TupleParam(name, found) if found else None


def _gathered_param(name: str, value: Any, annotation: Any, position: int) -> TupleParam | None:
    """The parameter of what `*args` or `**kwargs` took, each as if it stood alone."""
    found = [
        param_of(path, adapted(item), annotation, position + number)
        for number, (_, path, item) in enumerate(gathered(name, value))
    ]
    items = tuple(item for item in found if item is not None)
    return TupleParam(name, items) if items else None


def on_host(call: BoundCall) -> bool:
    """True when a tensor of the host's memory is passed."""
    return any(kind == dlpack_types.CPU for kind, _ in places(call))


def places(call: BoundCall) -> Iterator[tuple[int, int]]:
    """Where the tensors of a call lie: DLPack's type of each one's device, and its number."""
    return _places(call.runtime.values())


def _places(values: Iterable[Any]) -> Iterator[tuple[int, int]]:
    for value in values:
        if isinstance(value, RuntimeTensor):
            yield value.view.device, value.view.device_id
        elif isinstance(value, Keywords):
            yield from _places(value.values())
        elif isinstance(value, (tuple, list)):
            yield from _places(value)
        elif isinstance(value, FakeTensor) or not is_tensor(value):
            continue
        elif hasattr(value, "__array_interface__"):
            yield dlpack_types.CPU, 0
        else:
            kind, number = value.__dlpack_device__()
            yield int(kind), int(number)


def is_stream(value: Any) -> bool:
    """True for CUDA streams and events of the driver bindings, of frameworks, and fake streams."""
    cls = type(value)
    return (
        isinstance(value, FakeStream)
        or cls.__name__ in _HANDLES
        or hasattr(cls, "cuda_event")
        or hasattr(cls, "__cuda_stream__")
    )


def _names_stream(annotation: Any) -> bool:
    """True for `cuda.CUstream` and the like."""
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.rpartition(".")[2] in _HANDLES


def _is_env_stream(value: Any) -> bool:
    return isinstance(value, FakeStream) and value.env


def stream_handle(value: Any) -> int:
    """The handle of a stream or event object.

    Raises:
        ArgumentError: it has none.
    """
    for attribute in ("cuda_stream", "cuda_event", "ptr"):
        if hasattr(value, attribute):
            return int(getattr(value, attribute))
    if hasattr(value, "__cuda_stream__"):  # the protocol of cuda.core: (version, handle)
        return int(value.__cuda_stream__()[1])
    handle = getattr(value, "handle", value)  # Numba's is a c_void_p
    try:
        return int(getattr(handle, "value", handle) or 0)
    except TypeError as error:
        raise ArgumentError(
            f"a {type(value).__name__} has no handle of a CUDA stream", hint="pass a stream, its handle, or None"
        ) from error


def traced(call: BoundCall, block_arguments: list[Any]) -> dict[str, Any]:
    """The arguments as the traced function sees them, built from the leaves of the host function."""
    source = iter(block_arguments)
    seen: dict[str, Any] = {}
    for param in call.signature.params:
        value = _traced_param(param, source, call.runtime.get(param.name))
        if param.name != ENV_STREAM:
            seen[param.name] = value
    return seen | call.constants


def leaf_type(param: Param, leaf: Leaf) -> Any:
    """The MLIR type of a leaf in stage `cute`."""
    if isinstance(param, TupleParam):
        item = next(item for item in param.items if any(known == leaf for known in item.leaves()))
        return leaf_type(item, leaf)
    if isinstance(param, (TensorParam, PointerParam)) and leaf.role == "data":
        return types.ptr(param.dtype, param.space, param.align)
    if leaf.role == "stream":
        return types.parse("!llvm.ptr")
    if isinstance(param, ScalarParam):
        return types.element(param.dtype)
    return types.parse(leaf.type)


def _traced_param(param: Param, source: Iterator[Any], value: Any) -> Any:
    if isinstance(param, TensorParam):
        return _traced_tensor(param, source)
    if isinstance(param, ScalarParam):
        return BY_NAME[param.dtype].from_ir(next(source))
    if isinstance(param, PointerParam):
        return Pointer(next(source), BY_NAME[param.dtype], AddressSpace[param.space], param.align)
    if isinstance(param, StreamParam):
        return Stream(next(source))
    if is_jit_argument(value):
        return load_object(value, [next(source) for _ in param.items])
    return _traced_aggregate(param, source, value)


def _traced_aggregate(param: TupleParam, source: Iterator[Any], value: Any) -> Any:
    params = {item.name: item for item in param.items}
    made: dict[Any, Any] = {}
    for member in members(param.name, value, None):
        item = params.get(member.name)
        given = adapted(member.value)
        made[member.key] = given if item is None else _traced_param(item, source, given)
    return leaves.make(value, made)


def _traced_tensor(param: TensorParam, source: Iterator[Any]) -> Tensor:
    dtype = BY_NAME[param.dtype]
    pointer = Pointer(next(source), dtype, AddressSpace[param.space], param.align)
    whole = SizeLimit(spans.free_product(param)) if spans.is_narrow(param) else None
    shape = tuple(_traced_extent(dim, source, whole, mode) for mode, dim in enumerate(param.shape))
    stride = tuple(_traced_dim(dim, source) for dim in param.stride)
    for step in stride:
        if isinstance(step, Integer):
            step.plain = param.implicit
    tensor = Tensor(pointer, Layout(shape, stride), dtype)
    return Tensor(pointer, tensor.layout, dtype, Held(tensor.value, tensor=True))


def _traced_extent(dim: Dim, source: Iterator[Any], whole: SizeLimit | None, mode: int) -> Any:
    number = _traced_dim(dim, source)
    if dim.value is None:
        number.bound = type(number).max
        if dim.width == 32 and whole is not None:  # the call checks it, see `base.spans`
            number.bound, number.extent_product = whole.limit, ExtentProduct(whole, frozenset((mode,)))
    return number


def _traced_dim(dim: Dim, source: Iterator[Any]) -> Any:
    if dim.value is not None:
        return dim.value
    cls: Any = Int64 if dim.width == 64 else Int32
    return cls.from_ir(next(source)).assuming(divisibility=dim.divisibility)


def converted(value: Any, param: Param) -> Any:
    """An argument of a call as native code takes it."""
    if isinstance(value, Numeric):
        return bool(value.value) if isinstance(value, Boolean) else value.python()
    if isinstance(value, RuntimeTensor):
        return value
    if isinstance(param, TensorParam):
        refuse_lazy(value)
    if isinstance(value, RuntimePointer):
        return value.address
    if is_stream(value):
        return stream_handle(value)
    if isinstance(value, FakeTensor):
        raise ArgumentError("a fake tensor has no memory to run on", hint="pass a tensor")
    if isinstance(param, TupleParam):
        return _converted_members(adapted(value), param)
    if isinstance(param, PointerParam) and hasattr(value, "__tvm_ffi_opaque_ptr__"):
        return value.__tvm_ffi_opaque_ptr__()
    return value


def _converted_members(value: Any, param: TupleParam) -> Any:
    if is_jit_argument(value):
        return addresses(value)
    if not is_aggregate(value):
        return value  # native code says what it expected
    try:
        parts = [(member_at(value, param.name, item.name), item) for item in param.items]
    except (IndexError, AttributeError, KeyError):
        return tuple(value) if isinstance(value, (tuple, list, Keywords)) else value
    return tuple(converted(part, item) for part, item in parts)
