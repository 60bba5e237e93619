"""`cute.runtime`: tensors, pointers and streams of the host."""

from tilewright.compiler.arguments import FakeStream, RuntimePointer, make_fake_stream, make_ptr
from tilewright.compiler.loading import find_runtime_libraries, load_module
from tilewright.compiler.runtime_tensor import FakeTensor, from_dlpack, make_fake_compact_tensor, make_fake_tensor

Pointer = RuntimePointer

__all__ = [
    "FakeStream", "FakeTensor", "Pointer", "RuntimePointer", "find_runtime_libraries", "from_dlpack", "load_module",
    "make_fake_compact_tensor", "make_fake_stream", "make_fake_tensor", "make_ptr",
]  # fmt: skip
