"""Launching: host time of a call with three torch tensors, beside a bare cuLaunchKernel (needs a GPU); from_dlpack."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tilewright.cute as cute
from bench.kernels import launches_nothing, nothing
from bench.runner import Row
from tilewright.cute.runtime import from_dlpack
from tilewright.ir.llvm import emit_object
from tilewright.targets.host import ffi
from tilewright.targets.host.loader import load_object
from tilewright.targets.nvidia import driver as cuda

CALLS = 256  # fewer than the driver queues, so that the host never waits for the device


def rows(quick: bool) -> Iterator[Row]:
    """Medians over batches of calls; the device is idle between batches, so the queue never fills."""
    batches = 20 if quick else 200
    yield _wrapping(batches)
    if importlib.util.find_spec("torch") is None:
        return
    torch = importlib.import_module("torch")
    yield from _without_launch(torch, batches)
    if not cuda.available():
        return
    a, b, c = (torch.zeros(1024, device="cuda") for _ in range(3))
    compiled = cute.compile(nothing, a, b, c, target="cuda")
    bare, extended = _bare_launches(compiled)
    native = compiled.native
    wait = torch.cuda.synchronize
    base = _microseconds(bare, wait, batches)
    yield Row("bare cuLaunchKernel, called from C", base, "us", batches, note="loop in native code")
    with_config = _microseconds(extended, wait, batches)
    yield Row("bare cuLaunchKernelEx, called from C", with_config, "us", batches)
    ours = _microseconds(_repeat(lambda: compiled(a, b, c)), wait, batches)
    yield Row("compiled function, three torch tensors", ours, "us", batches, target=base + 1.0)
    wrapped = _repeat(lambda: compiled(from_dlpack(a), from_dlpack(b), from_dlpack(c)))
    yield Row("the same, each wrapped by from_dlpack at the call", _microseconds(wrapped, wait, batches), "us", batches)
    through_ffi = _microseconds(_repeat(lambda: native(a, b, c)), wait, batches)
    yield Row("the tvm-ffi function itself", through_ffi, "us", batches)
    add = _microseconds(_repeat(lambda: torch.add(a, b, out=c)), wait, batches)
    yield Row("torch.add(out=)", add, "us", batches)


def _wrapping(batches: int) -> Row:
    """What `from_dlpack` costs by itself; it needs no device."""
    arrays = [np.zeros(1024, np.float32) for _ in range(3)]
    wrap = _repeat(lambda: [from_dlpack(array) for array in arrays])
    return Row("from_dlpack of three NumPy arrays", _microseconds(wrap, lambda: None, batches), "us", batches)


def _without_launch(torch: Any, batches: int) -> Iterator[Row]:
    """What checking and passing three tensors costs, beside a tvm-ffi function that looks at none of them."""
    loaded = load_object(emit_object("define i32 @bare(ptr %a, ptr %b, i32 %c, ptr %d) {\n  ret i32 0\n}\n"))
    bare = ffi.make_function(loaded.address("bare"), loaded)
    tensors = [torch.zeros(4, 8) for _ in range(3)]
    compiled = cute.compile(launches_nothing, *tensors, target="emu")
    base = _microseconds(_repeat(lambda: bare(*tensors)), lambda: None, batches)
    yield Row("bare tvm-ffi function, three torch tensors", base, "us", batches, note="no device")
    native = compiled.native
    ours = _microseconds(_repeat(lambda: native(*tensors)), lambda: None, batches)
    yield Row("native function that launches nothing, three torch tensors", ours, "us", batches, target=base + 1.0)


def _repeat(call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(CALLS):
            call()

    return run


def _microseconds(run: Callable[[], None], wait: Callable[[], object], batches: int) -> float:
    times = []
    for _ in range(batches + 1):
        wait()
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) / CALLS * 1e6)
    return statistics.median(times[1:])


_LOOPS = f"""
define void @plain(ptr %launch, ptr %config, ptr %kernel, ptr %params) {{
entry:
  br label %body
body:
  %i = phi i32 [ 0, %entry ], [ %next, %body ]
  %status = call i32 %launch(ptr %kernel, i32 1, i32 1, i32 1, i32 32, i32 1, i32 1, i32 0, ptr null,
                             ptr %params, ptr null)
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, {CALLS}
  br i1 %more, label %body, label %end
end:
  ret void
}}

define void @extended(ptr %launch, ptr %config, ptr %kernel, ptr %params) {{
entry:
  br label %body
body:
  %i = phi i32 [ 0, %entry ], [ %next, %body ]
  %status = call i32 %launch(ptr %config, ptr %kernel, ptr %params, ptr null)
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, {CALLS}
  br i1 %more, label %body, label %end
end:
  ret void
}}
"""


def _bare_launches(compiled: Any) -> list[Callable[[], None]]:
    """The driver's launch functions in loops of native code, with no Python between the calls."""
    loaded = load_object(emit_object(_LOOPS))
    values = (ctypes.c_uint64 * 8)()
    params = (ctypes.c_void_p * 8)(*(ctypes.addressof(values) + 8 * n for n in range(8)))
    config = cuda.launch_config((1, 1, 1), (32, 1, 1))
    api, kernel = cuda.driver().api, compiled.device.kernels[0]
    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
    keep = (loaded, values, params, config)

    def loop(name: str, function: Any) -> Callable[[], None]:
        run, address = signature(loaded.address(name)), ctypes.cast(function, ctypes.c_void_p).value
        return lambda: run(address, ctypes.addressof(keep[3]), kernel.handle, ctypes.addressof(keep[2]))

    return [loop("plain", api.cuLaunchKernel), loop("extended", api.cuLaunchKernelEx)]
