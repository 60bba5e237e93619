"""Launching: host time of a call, beside a bare cuLaunchKernel (needs a GPU) and without a launch; from_dlpack.

What is compared is timed in turns, a batch of each, and the rows are medians over batches.
"""

from __future__ import annotations

import contextlib
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
from tilewright.targets.host.function import HostFunction
from tilewright.targets.host.loader import load_object
from tilewright.targets.nvidia.backend.parts import host_object
from tilewright.targets.nvidia.devices import driver as cuda

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
    nothing(*tensors)
    find = nothing.direct_calls.find
    found = _microseconds({"": lambda: find(tensors, {})}, _nothing, batches)
    yield Row("finding what a direct call runs, three torch tensors", found[""], "us", batches, note="on the emulator")
    many, numbers = [torch.zeros(64) for _ in range(MANY)], range(MANY)
    yield from _to_nothing(nothing, tensors, "three torch tensors", batches)
    yield from _to_nothing(nothing_of_many, [*many, *numbers], f"{MANY} torch tensors and {MANY} numbers", batches)


def _to_nothing(function: Any, arguments: list[Any], words: str, batches: int) -> Iterator[Row]:
    """The host's part of a launch: native code calls a launch function that does nothing, as a C loop does."""
    artifact = cute.compile(function, *arguments, target="emu").artifact
    loaded = load_object(emit_object(_LAUNCHES_NOTHING + _LOOPS))
    plain, extended = (loaded.address(name) for name in ("launch_plain", "launch_extended"))
    made = HostFunction(
        host_object(artifact), artifact.signature, kernels=1, launch=extended, plain_launch=plain, keep_alive=loaded
    )
    front = made.front(_unexpected, _unexpected_error)
    with contextlib.suppress(_UnexpectedError):  # it learns of the type of the tensors
        front(*arguments)
    calls = {
        f"C loop over a launch function that does nothing, parameters of {words}": _loop(loaded, "plain", plain, 1),
        f"the tvm-ffi function to it, {words}": lambda: made.function(*arguments),
        f"what an executor calls, to it, {words}": lambda: front(*arguments),
    }
    found = _microseconds(calls, _nothing, batches)
    bare, through_ffi, _ = found.values()
    few = len(arguments) == 3
    targets = (None, bare + 1.0 if few else None, through_ffi + 0.15 if few else None)
    for (name, microseconds), target in zip(found.items(), targets, strict=True):
        yield Row(name, microseconds, "us", batches, target=target, note="no device")


class _UnexpectedError(Exception):
    """Native code did not take the arguments of a call."""


def _unexpected(*_: Any) -> None:
    raise _UnexpectedError


def _unexpected_error(*_: Any) -> None:
    raise RuntimeError(str(ffi.take_raised()))


_LAUNCHES_NOTHING = """
define i32 @launch_plain(ptr %k, i32 %a, i32 %b, i32 %c, i32 %d, i32 %e, i32 %f, i32 %s, ptr %t, ptr %p, ptr %x) {
  ret i32 0
}

define i32 @launch_extended(ptr %config, ptr %kernel, ptr %params, ptr %extra) {
  ret i32 0
}
"""


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
    api, kernel = cuda.driver().api, compiled.device.kernels[0].handle
    addresses = [ctypes.cast(item, ctypes.c_void_p).value or 0 for item in (api.cuLaunchKernel, api.cuLaunchKernelEx)]
    return _loop(loaded, "plain", addresses[0], kernel), _loop(loaded, "extended", addresses[1], kernel)


def _loop(loaded: Any, name: str, launch: int, kernel: int) -> _Batch:
    """`CALLS` calls of a launch function at an address, by a function of `_LOOPS`."""
    values = (ctypes.c_uint64 * _MOST_PARAMETERS)()
    params = (ctypes.c_void_p * len(values))(*(ctypes.addressof(values) + 8 * n for n in range(len(values))))
    config = cuda.launch_config((1, 1, 1), (32, 1, 1))
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(loaded.address(name))
    held = (loaded, values, params, config)
    return _Batch(lambda: run(launch, ctypes.addressof(held[3]), kernel, ctypes.addressof(held[2])))
