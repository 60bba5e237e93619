"""Launching: host time of a call, beside a bare cuLaunchKernel (needs a GPU) and without a launch; from_dlpack.

What is compared is timed in turns, a batch of each, and the rows are medians over batches.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import tilewright.cute as cute
from bench.kernels import launches_nothing, nothing, nothing_of_many
from bench.runner import Row
from tilewright.cute.runtime import from_dlpack
from tilewright.ir.llvm import emit_object
from tilewright.targets.host import ffi
from tilewright.targets.host.loader import load_object
from tilewright.targets.nvidia import driver as cuda

CALLS = 256  # fewer than the driver queues, so that the host never waits for the device
_SLOW, _FEW = 0.5e-3, 2  # seconds of a call, calls of a batch where one takes longer
MANY = 19  # tensors, and as many numbers


def rows(quick: bool) -> Iterator[Row]:
    """Medians over batches of calls; the device is idle between batches, so the queue never fills."""
    batches = 20 if quick else 200
    arrays = [np.zeros(1024, np.float32) for _ in range(3)]
    found = _microseconds({"": lambda: [from_dlpack(array) for array in arrays]}, _nothing, batches)
    yield Row("from_dlpack of three NumPy arrays", found[""], "us", batches)
    if importlib.util.find_spec("torch") is None:
        return
    torch = importlib.import_module("torch")
    yield from _without_launch(torch, batches)
    if cuda.available():
        yield from _of_three(torch, batches)
        yield from _of_many(torch, batches)


def _without_launch(torch: Any, batches: int) -> Iterator[Row]:
    """What checking and passing three tensors costs, beside a tvm-ffi function that looks at none of them."""
    loaded = load_object(emit_object("define i32 @bare(ptr %a, ptr %b, i32 %c, ptr %d) {\n  ret i32 0\n}\n"))
    bare = ffi.make_function(loaded.address("bare"), loaded)
    tensors = [torch.zeros(4, 8) for _ in range(3)]
    native = cute.compile(launches_nothing, *tensors, target="emu").native
    calls = {
        "bare tvm-ffi function, three torch tensors": lambda: bare(*tensors),
        "native function that launches nothing, three torch tensors": lambda: native(*tensors),
        "from_dlpack of three torch tensors": lambda: [from_dlpack(item) for item in tensors],
    }
    base, *_ = found = _microseconds(calls, _nothing, batches)
    for name, microseconds in found.items():
        target = found[base] + 1.0 if name.startswith("native") else 9.0 if name.startswith("from_dlpack") else None
        yield Row(name, microseconds, "us", batches, target=target, note="no device")


def _of_three(torch: Any, batches: int) -> Iterator[Row]:
    a, b, c = (torch.zeros(1024, device="cuda") for _ in range(3))
    compiled = cute.compile(nothing, a, b, c, target="cuda")
    native = compiled.native
    plain, extended = _bare_launches(compiled)
    calls = {
        "bare cuLaunchKernel, called from C": plain,
        "bare cuLaunchKernelEx, called from C": extended,
        "the tvm-ffi function, three torch tensors": lambda: native(a, b, c),
        "compiled function, three torch tensors": lambda: compiled(a, b, c),
        "the same, each wrapped by from_dlpack at the call": lambda: compiled(*map(from_dlpack, (a, b, c))),
        "direct call of the jit function, three torch tensors": lambda: nothing(a, b, c),
        "torch.add(out=)": lambda: torch.add(a, b, out=c),
    }
    found = _microseconds(calls, torch.cuda.synchronize, batches)
    bare, _, through_ffi, executor, _wrapped, _direct, _add = found.values()
    targets = (None, None, bare + 1.0, through_ffi + 0.15, executor + 9.0, executor + 5.0, None)
    for (name, microseconds), target in zip(found.items(), targets, strict=True):
        yield Row(name, microseconds, "us", batches, target=target)


def _of_many(torch: Any, batches: int) -> Iterator[Row]:
    tensors, numbers = [torch.zeros(64, device="cuda") for _ in range(MANY)], range(MANY)
    compiled = cute.compile(nothing_of_many, *tensors, *numbers, target="cuda")
    native = compiled.native
    plain, _ = _bare_launches(compiled)
    words = f"{MANY} torch tensors and {MANY} numbers"
    calls = {
        f"bare cuLaunchKernel with the parameters of {words}": plain,
        f"the tvm-ffi function, {words}": lambda: native(*tensors, *numbers),
        f"compiled function, {words}": lambda: compiled(*tensors, *numbers),
        f"direct call of the jit function, {words}": lambda: nothing_of_many(*tensors, *numbers),
    }
    found = _microseconds(calls, torch.cuda.synchronize, batches)
    for name, microseconds in found.items():
        yield Row(name, microseconds, "us", batches)


def _nothing() -> None:
    pass


def _microseconds(
    calls: Mapping[str, Callable[[], object]], wait: Callable[[], object], batches: int
) -> dict[str, float]:
    """The median of each over batches of `CALLS` calls, of fewer where they are slow."""
    numbers = {name: CALLS if _seconds(call, 1, wait) < _SLOW else _FEW for name, call in calls.items() for _ in "12"}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(batches):
        for name, call in calls.items():
            number = numbers[name]
            whole = isinstance(call, _Batch)
            seconds = _seconds(call, 1 if whole else number, wait)
            times[name].append(seconds / (CALLS if whole else number) * 1e6)
    wait()
    return {name: statistics.median(each) for name, each in times.items()}


def _seconds(call: Callable[[], object], number: int, wait: Callable[[], object]) -> float:
    wait()
    start = time.perf_counter()
    for _ in range(number):
        call()
    return time.perf_counter() - start


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
_MOST_PARAMETERS = 256


class _Batch:
    """`CALLS` launches in a loop of native code, with no Python between them."""

    def __init__(self, run: Callable[[], object]) -> None:
        self._run = run

    def __call__(self) -> None:
        self._run()


def _bare_launches(compiled: Any) -> tuple[_Batch, _Batch]:
    """The driver's two launch functions on the kernel of a compiled function."""
    loaded = load_object(emit_object(_LOOPS))
    values = (ctypes.c_uint64 * _MOST_PARAMETERS)()
    params = (ctypes.c_void_p * len(values))(*(ctypes.addressof(values) + 8 * n for n in range(len(values))))
    config = cuda.launch_config((1, 1, 1), (32, 1, 1))
    api, kernel = cuda.driver().api, compiled.device.kernels[0]
    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
    keep = (loaded, values, params, config)

    def loop(name: str, function: Any) -> _Batch:
        run, address = signature(loaded.address(name)), ctypes.cast(function, ctypes.c_void_p).value
        return _Batch(lambda: run(address, ctypes.addressof(keep[3]), kernel.handle, ctypes.addressof(keep[2])))

    return loop("plain", api.cuLaunchKernel), loop("extended", api.cuLaunchKernelEx)
