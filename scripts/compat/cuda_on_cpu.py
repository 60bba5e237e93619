"""PyTorch without a GPU, for sources that ask for one: device `cuda` stands for the CPU.

The emulator takes CPU tensors, so a program that only says `device="cuda"` and `torch.cuda.synchronize()` runs on it
unchanged. Products of 16-bit floats are summed as tensor cores do (`tensor_cores.py`), as tutorials compare theirs with
PyTorch's on the same GPU to the last bit. What truly needs a device (CUDA graphs, driver calls) raises `NeedsGpu`.
"""

from __future__ import annotations

import sys
import time
import types
from typing import Any

import tensor_cores
import torch
from torch.overrides import TorchFunctionMode


class NeedsGpu(RuntimeError):
    """The program asks for something that only a GPU does."""


class _CudaMeansCpu(TorchFunctionMode):
    def __torch_function__(self, func: Any, types_: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.cuda:
            return _aligned(args[0])
        given = [*args, *(kwargs or {}).values()]
        kwargs = {name: _device(item) for name, item in (kwargs or {}).items()}
        args = tuple(_device(item) for item in args)
        made = _product(func, args, kwargs) if func in _PRODUCTS else func(*args, **kwargs)
        return _aligned(made) if any(_device(item) is not item for item in given) else made


_ALIGN = 256  # at least what memory of a GPU is aligned to


def _aligned(tensor: Any) -> Any:
    """A tensor that is new to the device, where the device would have put it: kernels are compiled for that."""
    if not isinstance(tensor, torch.Tensor) or tensor.data_ptr() % _ALIGN == 0 or not tensor.is_contiguous():
        return tensor
    if tensor.requires_grad and not tensor.is_leaf:
        return tensor
    count = tensor.numel() * tensor.element_size()
    room = torch.empty(count + _ALIGN, dtype=torch.uint8)
    start = -room.data_ptr() % _ALIGN
    moved = room[start : start + count].view(tensor.dtype).reshape(tensor.shape)
    moved.copy_(tensor.detach())
    return moved.requires_grad_(tensor.requires_grad)


_PRODUCTS = {
    torch.einsum: "", torch.mm: "mk,kn->mn", torch.bmm: "lmk,lkn->lmn",
    **dict.fromkeys((torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__), ""),
}  # fmt: skip
_BY_RANK = {2: "mk,kn->mn", 3: "lmk,lkn->lmn", 4: "hlmk,hlkn->hlmn"}
_HALVES = (torch.float16, torch.bfloat16)


def _product(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Products of 16-bit floats come out as a library of the GPU gives them; the CPU adds in another order."""
    equation, operands = (args[0], args[1:]) if func is torch.einsum else (_PRODUCTS[func], args)
    if not all(isinstance(item, torch.Tensor) and item.dtype in _HALVES for item in operands) or kwargs:
        return func(*args, **kwargs)
    if len(operands) == 2 and not equation and operands[0].shape[:-2] == operands[1].shape[:-2]:
        equation = _BY_RANK.get(operands[0].ndim, "")
    if len(operands) == 2 and equation:
        return tensor_cores.product(equation, *operands)
    wide = (item.float() if isinstance(item, torch.Tensor) else item for item in args)
    return func(*wide).to(operands[0].dtype)


def _device(item: Any) -> Any:
    if isinstance(item, str) and item.partition(":")[0] == "cuda":
        return "cpu"
    if isinstance(item, torch.device) and item.type == "cuda":
        return torch.device("cpu")
    return item


class _Stream:
    """The only stream there is."""

    cuda_stream = 0
    device = torch.device("cpu")

    def __init__(self, *_: Any, **__: Any) -> None: ...
    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: Any) -> None: ...
    def synchronize(self) -> None: ...
    def wait_stream(self, other: Any) -> None: ...
    def wait_event(self, other: Any) -> None: ...


class _Event:
    """Wall time instead of the device's."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.at = 0.0

    @property
    def cuda_event(self) -> int:
        raise NeedsGpu("the handle of an event needs a GPU")

    def record(self, *_: Any) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None: ...
    def elapsed_time(self, other: _Event) -> float:
        return (other.at - self.at) * 1e3


def _giving(value: Any) -> Any:
    """A function of its own that gives `value`."""
    return lambda *_, **__: value


def _needs_gpu(what: str) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NeedsGpu(f"{what} needs a GPU")

    return refuse


def install() -> None:
    """Make `cuda` the CPU in this process."""
    cuda = torch.cuda
    for name, value in {"is_available": True, "device_count": 1, "current_device": 0}.items():
        setattr(cuda, name, _giving(value))
    cuda.get_device_capability = _giving((9, 0))
    cuda.get_device_name = _giving("PTX emulator")
    cuda.get_device_properties = _giving(
        types.SimpleNamespace(
            name="PTX emulator",
            major=9,
            minor=0,
            multi_processor_count=132,
            total_memory=1 << 34,
            L2_cache_size=50 << 20,
        )
    )
    for name in ("synchronize", "empty_cache", "init", "set_device", "manual_seed", "_lazy_init"):
        setattr(cuda, name, _giving(None))
    cuda.current_stream = cuda.default_stream = _Stream
    cuda.Stream, cuda.Event = _Stream, _Event
    cuda.stream = lambda stream: stream
    cuda.CUDAGraph = cuda.graph = _needs_gpu("a CUDA graph")
    torch.Tensor.is_cuda = property(lambda self: True)
    _CudaMeansCpu().__enter__()
    _operators()
    _driver()


def _operators() -> None:
    """Operators that a program registers for device `cuda` alone are registered for every device."""
    plain = torch.library.custom_op

    def custom_op(*args: Any, device_types: Any = None, **kwargs: Any) -> Any:
        kinds = [device_types] if isinstance(device_types, str) else device_types
        everywhere = kinds is None or "cuda" in kinds
        return plain(*args, device_types=None if everywhere else device_types, **kwargs)

    torch.library.custom_op = custom_op


def _missing(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _needs_gpu(name)


def _driver() -> None:
    """`cuda.bindings.driver` where it is not installed: the stream type only."""
    try:
        __import__("cuda.bindings.driver")
        return
    except ImportError:
        pass
    names = ("cuda", "cuda.bindings", "cuda.bindings.driver", "cuda.bindings.runtime")
    modules = {name: types.ModuleType(name) for name in names}
    for name, module in modules.items():
        module.__path__ = []  # type: ignore[attr-defined]
        parent, _, leaf = name.rpartition(".")
        if parent:
            setattr(modules[parent], leaf, module)
    stream = type("CUstream", (int,), {"getPtr": lambda self: int(self)})
    modules["cuda.bindings.driver"].CUstream = stream  # type: ignore[attr-defined]
    modules["cuda.bindings.runtime"].cudaStream_t = stream  # type: ignore[attr-defined]
    flags = types.SimpleNamespace(CU_STREAM_DEFAULT=0, CU_STREAM_NON_BLOCKING=1)
    modules["cuda.bindings.driver"].CUstream_flags = flags  # type: ignore[attr-defined]
    for leaf in ("driver", "runtime"):
        module = modules[f"cuda.bindings.{leaf}"]
        module.__getattr__ = _missing  # type: ignore[method-assign]
    for name in ("cudaDeviceSynchronize", "cudaStreamSynchronize"):  # kernels have ended when their launch returns
        setattr(modules["cuda.bindings.runtime"], name, _giving((0,)))
    for name in ("cuCtxSynchronize", "cuStreamSynchronize"):
        setattr(modules["cuda.bindings.driver"], name, _giving((0,)))
    sys.modules.update(modules)
