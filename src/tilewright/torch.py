"""`cutlass.torch`: between PyTorch and the language. PyTorch is imported when a function is first called."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from tilewright.arguments.runtime_tensor import RuntimeTensor, from_dlpack, leading_mode
from tilewright.base.errors import ArgumentError
from tilewright.base.not_built import missing as _missing
from tilewright.compiler.convert_tensors import convert
from tilewright.cuda import HostStream
from tilewright.lang.numbers import numeric
from tilewright.lang.numbers.numeric import Numeric

_DTYPES = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "tf32": "float32", "f32": "float32",
    "f64": "float64", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e4m3": "float8_e4m3fn",
    "f8e8m0fnu": "float8_e8m0fnu", "f4e2m1fn": "float4_e2m1fn_x2",
}  # fmt: skip


@functools.cache
def _torch() -> Any:
    return importlib.import_module("torch")


def dtype(ty: type[Numeric]) -> Any:
    """PyTorch's element type for one of the language.

    Raises:
        ArgumentError: PyTorch has none.
    """
    found = getattr(_torch(), _DTYPES.get(ty.facts.name, ""), None)
    if found is None:
        raise ArgumentError(f"PyTorch has no element type for {ty}", hint="store it as uint8 and recast the tensor")
    return found


def as_cute_dtype(torch_dtype: Any) -> type[Numeric]:
    """The language's element type for one of PyTorch."""
    name = str(torch_dtype).removeprefix("torch.")
    for short, theirs in _DTYPES.items():
        if theirs == name and short not in ("tf32", "f8e4m3"):
            return numeric.BY_NAME[short]
    raise ArgumentError(f"{torch_dtype} is no element type of the language")


def current_stream() -> Any:
    """PyTorch's current stream; the default stream where PyTorch has no GPU."""
    cuda = _torch().cuda
    return cuda.current_stream() if cuda.is_available() else HostStream(0)


def default_stream() -> Any:
    """PyTorch's default stream; the default stream where PyTorch has no GPU."""
    cuda = _torch().cuda
    return cuda.default_stream() if cuda.is_available() else HostStream(0)


class TensorInitType(Enum):
    """How a new tensor is filled."""

    SKIP = "skip"
    SCALAR = "scalar"
    RANDOM = "random"
    GAUSSIAN = "gaussian"


@dataclass
class RandomInitConfig:
    """Whole numbers from `min_val` to `max_val`, the latter excluded."""

    min_val: int = -2
    max_val: int = 2


@dataclass
class ScalarInitConfig:
    """One value."""

    value: float = 0


@dataclass
class GaussianInitConfig:
    """Normal numbers of this mean and deviation, times `scale`."""

    mean: float = 0
    std: float = 1
    scale: float = 1


def create_and_permute_torch_tensor(
    shape: Sequence[int],
    dtype: Any,
    permute_order: Sequence[int] | None = None,
    init_type: TensorInitType = TensorInitType.RANDOM,
    init_config: Any = None,
    device: Any = None,
) -> Any:
    """A CPU tensor of `shape`, filled as asked, then permuted."""
    made = _filled(shape, init_type, init_config, device).to(dtype)
    return made if permute_order is None else made.permute(tuple(permute_order))


def _filled(shape: Sequence[int], init_type: TensorInitType, config: Any, device: Any) -> Any:
    torch = _torch()
    if init_type is TensorInitType.SKIP:
        return torch.empty(*shape, device=device)
    if init_type is TensorInitType.SCALAR:
        return torch.full(tuple(shape), float((config or ScalarInitConfig()).value), device=device)
    if init_type is TensorInitType.GAUSSIAN:
        config = config or GaussianInitConfig()
        return torch.randn(*shape, device=device) * config.std * config.scale + config.mean
    config = config or RandomInitConfig()
    return torch.randint(int(config.min_val), int(config.max_val), tuple(shape), device=device).to(torch.float32)


def matrix(
    l: int,  # noqa: E741  (CuTe's name)
    mode0: int,
    mode1: int,
    is_mode0_major: bool,
    cutlass_dtype: type[Numeric],
    init_type: TensorInitType = TensorInitType.RANDOM,
    init_config: Any = None,
    device: Any = None,
) -> Any:
    """`l` matrices of mode0 x mode1 as one tensor (mode0, mode1, l) in which mode 0 or mode 1 is contiguous.

    Narrow floats are held as float32: `cute_tensor_like` converts.
    """
    shape, order = ((l, mode1, mode0), (2, 1, 0)) if is_mode0_major else ((l, mode0, mode1), (1, 2, 0))
    if init_type is TensorInitType.RANDOM and init_config is None and not cutlass_dtype.signed:
        init_config = RandomInitConfig(0, 4)
    wide = _is_narrow_float(cutlass_dtype)
    torch_dtype = _torch().float32 if wide else dtype(cutlass_dtype)
    return create_and_permute_torch_tensor(shape, torch_dtype, order, init_type, init_config, device)


def _is_narrow_float(ty: type[Numeric]) -> bool:
    return ty.is_float and ty.width <= 8


def get_leading_dim(tensor: Any) -> int | None:
    """The mode of stride 1."""
    return leading_mode(tuple(tensor.shape), tuple(tensor.stride()))


def cute_tensor_like(
    data_ref: Any,
    cutlass_dtype: type[Numeric],
    is_dynamic_layout: bool,
    assumed_align: int | None = None,
) -> tuple[RuntimeTensor, Any]:
    """A device tensor with the values of `data_ref` as `cutlass_dtype`: as a tensor of the language, and of PyTorch."""
    torch = _torch()
    narrow = _is_narrow_float(cutlass_dtype)
    stored = torch.empty_like(data_ref, dtype=torch.uint8, device="cuda") if narrow else _moved(data_ref, cutlass_dtype)
    made = from_dlpack(stored, assumed_align=assumed_align)
    made.element_type = cutlass_dtype
    if is_dynamic_layout:
        made.mark_layout_dynamic(leading_dim=get_leading_dim(stored))
    if narrow:
        convert_cute_tensor(data_ref.to(device="cuda", dtype=torch.float32), made, cutlass_dtype, is_dynamic_layout)
    return made, stored


def _moved(source: Any, ty: type[Numeric]) -> Any:
    return source.to(dtype=dtype(ty), device="cuda")


def convert_cute_tensor(
    f32_torch_tensor: Any, cute_tensor: RuntimeTensor, dtype: type[Numeric], is_dynamic_layout: bool = True
) -> RuntimeTensor:
    """Write the values of a float32 tensor into `cute_tensor`, converted to its element type; gives `cute_tensor`."""
    source = from_dlpack(f32_torch_tensor)
    if is_dynamic_layout:
        source.mark_layout_dynamic(leading_dim=get_leading_dim(f32_torch_tensor))
    convert(source, cute_tensor)
    return cute_tensor


if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = [
    "ArgumentError", "GaussianInitConfig", "HostStream", "Numeric", "RandomInitConfig", "RuntimeTensor",
    "ScalarInitConfig", "TensorInitType", "as_cute_dtype", "convert", "convert_cute_tensor",
    "create_and_permute_torch_tensor", "current_stream", "cute_tensor_like", "default_stream", "dtype", "from_dlpack",
    "get_leading_dim", "leading_mode", "matrix", "numeric",
]  # fmt: skip
