"""Launching: host time of a call with three torch tensors, beside a bare cuLaunchKernel (needs a GPU)."""

from __future__ import annotations

import ctypes
import importlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import tilewright.cute as cute
from bench.kernels import nothing
from bench.runner import Row
from tilewright.ir.llvm import emit_object
from tilewright.targets.host.loader import load_object
from tilewright.targets.nvidia import driver as cuda

CALLS = 2000


def rows(quick: bool) -> Iterator[Row]:
    """Medians over batches of calls; the device is idle between batches, so the queue never fills."""
    if not cuda.available():
        return
    torch = importlib.import_module("torch")
    batches = 5 if quick else 31
    a, b, c = (torch.zeros(1024, device="cuda") for _ in range(3))
    compiled = cute.compile(nothing, a, b, c, target="cuda")
    bare = _bare_launch(compiled)
    wait = torch.cuda.synchronize
    base = _microseconds(bare, wait, batches)
    yield Row("bare cuLaunchKernel, called from C", base, "us", batches, note="loop in native code")
    ours = _microseconds(_repeat(lambda: compiled(a, b, c)), wait, batches)
    yield Row("compiled function, three torch tensors", ours, "us", batches, target=base + 1.0)
    through_ffi = _microseconds(_repeat(lambda: compiled.native(a, b, c)), wait, batches)
    yield Row("the tvm-ffi function itself", through_ffi, "us", batches)
    add = _microseconds(_repeat(lambda: torch.add(a, b, out=c)), wait, batches)
    yield Row("torch.add(out=)", add, "us", batches)


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


def _bare_launch(compiled: Any) -> Callable[[], None]:
    """cuLaunchKernel in a loop of our own machine code's making: LLVM IR compiled like any host function."""
    text = f"""
define void @loop(ptr %launch, ptr %kernel, ptr %params) {{
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
"""
    loaded = load_object(emit_object(text))
    loop = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(loaded.address("loop"))
    kernel = compiled.device.kernels[0]
    values = (ctypes.c_uint64 * 8)()
    params = (ctypes.c_void_p * 8)(*(ctypes.addressof(values) + 8 * n for n in range(8)))
    launch = ctypes.cast(cuda.driver().api.cuLaunchKernel, ctypes.c_void_p).value
    keep = (loaded, values, params)
    return lambda: loop(launch, kernel.handle, ctypes.addressof(keep[2]))
