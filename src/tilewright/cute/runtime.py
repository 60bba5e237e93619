"""`cute.runtime`: tensors, pointers and streams of the host."""

from tilewright.arguments.binding import FakeStream, RuntimePointer, make_fake_stream, make_ptr
from tilewright.arguments.runtime_tensor import FakeTensor, from_dlpack, make_fake_compact_tensor, make_fake_tensor
from tilewright.targets.nvidia.export.loading import find_runtime_libraries, load_module

Pointer = RuntimePointer

__all__ = [
    "FakeStream", "FakeTensor", "Pointer", "RuntimePointer", "find_runtime_libraries", "from_dlpack", "load_module",
    "make_fake_compact_tensor", "make_fake_stream", "make_fake_tensor", "make_ptr",
]  # fmt: skip
