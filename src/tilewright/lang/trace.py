"""The program being traced: its module, its kernels, and whether host or device code is built now."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.ir import mlir
from tilewright.ir.context import active
from tilewright.ir.context import current as session
from tilewright.lang.locations import user_location

if TYPE_CHECKING:
    from mlir import ir


@dataclass
class KernelTrace:
    """A kernel of the program: its symbol, the function that was traced, its `gpu.func`, and where it is launched."""

    name: str
    function: Any
    operation: Any
    launched_at: SourceLocation | None


@dataclass
class Trace:
    """What one compilation has built so far. `arch` is the chip (`sm_90a`), empty when it does not matter."""

    module: ir.Module
    arch: str = ""
    assertions: bool = False
    contract: bool = True  # products and sums of device code may become fma
    kernels: list[KernelTrace] = field(default_factory=list)
    called: dict[int, tuple[str, Any]] = field(default_factory=dict)  # kernels called and not launched yet, with places
    side: Literal["host", "device"] = "host"
    host_memory: bool = False  # tensors of the host were passed
    profiled: bool = False  # kernels launched now are timed
    block: tuple[Any, ...] = ()  # of the kernel being traced, its extents where they are known
    grid: tuple[Any, ...] = ()  # the same of its launch
    cluster: tuple[Any, ...] = ()  # zeros where it has none
    cooperative: bool = False  # all blocks of the grid run at once

    @property
    def checks(self) -> bool:
        """Whether assertions of the code built now are checked when it runs."""
        return self.side == "host" or self.assertions

    def kernel_name(self, wanted: str) -> str:
        """A symbol not yet taken: `wanted`, else `wanted_1`, `wanted_2`, ..."""
        return free_symbol(symbol(wanted), {kernel.name for kernel in self.kernels})


def symbol(name: str) -> str:
    """A Python name as a symbol of PTX: `<lambda>` becomes `_lambda_`."""
    return re.sub(r"^(?=\d)|[^A-Za-z0-9_]", "_", name)


def free_symbol(wanted: str, taken: Collection[str]) -> str:
    """`wanted`, else `wanted_1`, `wanted_2`, ..., whichever is not taken."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def tracing() -> bool:
    """True while a function of the language is traced by this thread."""
    return active() and bool(session().traces)


def current() -> Trace:
    """The program being traced; an error outside."""
    if not tracing():
        raise CompileError(
            "this works only inside a @cute.jit or @cute.kernel function",
            location=user_location(2),
            hint="call it from a function decorated with @cute.jit, or compile that function with cute.compile",
        )
    found: Trace = session().traces[-1]
    return found


def sees_host_memory() -> bool:
    """True while host code is traced that was given tensors of the host."""
    return tracing() and current().side == "host" and current().host_memory


def device(what: str) -> Trace:
    """The program being traced, for something that only device code may do."""
    trace = current()
    if trace.side != "device":
        raise CompileError(
            f"{what} is device code, and this function is host code",
            location=user_location(2),
            hint="put it in a function decorated with @cute.kernel and launch that from the @cute.jit function",
        )
    return trace


@contextmanager
def program(trace: Trace) -> Iterator[Trace]:
    """Trace into `trace` inside the block."""
    traces = session().traces
    traces.append(trace)
    try:
        yield trace
    finally:
        traces.pop()


class device_side:
    """Build device code at the end of `block`."""

    def __init__(self, block: ir.Block) -> None:
        self.point = mlir.ir.InsertionPoint(block)
        self.trace = current()
        self.before = self.trace.side

    def __enter__(self) -> None:
        self.trace.side = "device"
        self.point.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.trace.side = self.before
        self.point.__exit__(*error)
