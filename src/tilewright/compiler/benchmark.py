"""Timing compiled functions: `cute.testing.benchmark`.

On target `cuda` events of the stream count device time. On the emulator it is wall time of the emulation, which says
nothing of a GPU; there at most about two seconds are spent, so fewer iterations than asked for may be run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.arguments.binding import is_stream, stream_handle
from tilewright.base.errors import ArgumentError
from tilewright.compiler.jit import JitFunction, compile_function
from tilewright.compiler.target_choice import choose_target
from tilewright.targets.device import Timer
from tilewright.targets.target import device_of

EMULATED_SECONDS = 2.0
_L2_BYTES = 50 << 20  # without a device to ask: that of an H100


class JitArguments:
    """Arguments of one call."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs
        self._references: list[Any] = []

    def add_to_scope(self, references: Sequence[Any]) -> None:
        """Keep objects alive as long as these arguments, such as the owners of memory passed by address."""
        self._references += references


def benchmark(
    callable: Callable[..., Any],
    *,
    warmup_iterations: int = 10,
    iterations: int = 100,
    stream: Any = None,
    kernel_arguments: JitArguments | None = None,
    workspace_generator: Callable[[], JitArguments] | None = None,
    workspace_count: int = 1,
    use_cuda_graphs: bool = False,
) -> float:
    """Microseconds of one call, on average.

    Args:
        callable: a compiled function, a `@cute.jit` function (compiled once for the first arguments), or any callable.
        warmup_iterations: calls before the clock starts.
        iterations: calls timed.
        stream: where the calls run; the default stream when None.
        kernel_arguments: what to call with.
        workspace_generator: gives fresh arguments; `workspace_count` of them are used in turn, to keep data out of L2.
        workspace_count: how many.
        use_cuda_graphs: capture the timed calls in a graph and time its launch.

    Raises:
        ArgumentError: a count is not positive, both kinds of arguments are given, or a graph cannot be had: the
            stream is the default one, or the calls enqueue nothing on it.
    """
    if iterations < 1 or warmup_iterations < 0 or workspace_count < 1:
        raise ArgumentError(
            "benchmark counts are positive",
            values={"iterations": iterations, "warmup_iterations": warmup_iterations, "workspaces": workspace_count},
        )
    if kernel_arguments is not None and workspace_generator is not None:
        raise ArgumentError("give kernel_arguments or workspace_generator, not both")
    if workspace_generator is not None:
        workspaces = [workspace_generator() for _ in range(workspace_count)]
    else:
        workspaces = [kernel_arguments or JitArguments()]
    function = _compiled(callable, workspaces[0])

    def call(number: int) -> None:
        chosen = workspaces[number % len(workspaces)]
        function(*chosen.args, **chosen.kwargs)

    timer = device_of(choose_target(None)).timer
    if timer is None:
        if use_cuda_graphs:
            raise ArgumentError("CUDA graphs need target cuda", hint="leave use_cuda_graphs out on the emulator")
        return _wall_time(call, warmup_iterations, iterations)
    handle = _stream_of(stream, workspaces[0])
    timed = _graph_time if use_cuda_graphs else _event_time
    return timed(timer, call, warmup_iterations, iterations, handle)


def _compiled(function: Callable[..., Any], workspace: JitArguments) -> Callable[..., Any]:
    """A jit function compiled once; a subclass of its own (autotuned) chooses by itself."""
    if type(function) is JitFunction:
        compiled: Callable[..., Any] = compile_function(function, *workspace.args, **workspace.kwargs)
        return compiled
    return function


def _wall_time(call: Callable[[int], None], warmup: int, iterations: int) -> float:
    end = time.perf_counter() + EMULATED_SECONDS / 4
    for number in range(warmup):
        call(number)
        if time.perf_counter() > end:
            break
    start, done = time.perf_counter(), 0
    while done < iterations and (not done or time.perf_counter() < start + EMULATED_SECONDS):
        call(done)
        done += 1
    return (time.perf_counter() - start) / done * 1e6


def _stream_of(stream: Any, workspace: JitArguments) -> int:
    """The handle of the stream given, else of the one among the arguments, else of the default stream."""
    if stream is not None:
        return stream_handle(stream)
    for value in (*workspace.args, *workspace.kwargs.values()):
        if is_stream(value):
            return stream_handle(value)
    return 0


def _event_time(timer: Timer, call: Callable[[int], None], warmup: int, iterations: int, stream: int) -> float:
    for number in range(warmup):
        call(number)

    def run() -> None:
        for number in range(iterations):
            call(number)

    return timer.seconds(run, stream) / iterations * 1e6


def _graph_time(timer: Timer, call: Callable[[int], None], warmup: int, iterations: int, stream: int) -> float:
    if not stream:
        raise ArgumentError("the default stream cannot be captured", hint="pass stream=, and call on that stream")
    for number in range(warmup):
        call(number)

    def run() -> None:
        for number in range(iterations):
            call(number)

    with timer.captured(run, stream) as launch:
        launch()  # the first launch uploads the graph
        return timer.seconds(launch, stream) / iterations * 1e6


def get_workspace_count(one_workspace_bytes: int, warmup_iterations: int, iterations: int) -> int:
    """How many workspaces keep one iteration's data out of L2 in the next: three times its size, at least one."""
    cached = 3 * _l2_bytes()
    wanted = math.ceil(cached / max(one_workspace_bytes, 1))
    return max(1, min(wanted, warmup_iterations + iterations))


def _l2_bytes() -> int:
    timer = device_of(choose_target(None)).timer
    return timer.cache_bytes() or _L2_BYTES if timer is not None else _L2_BYTES
