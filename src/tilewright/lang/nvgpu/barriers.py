"""Barriers at which threads of a warp need not come together."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.arch import named_barrier
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int32, as_numeric
from tilewright.lang.nvgpu.instructions import instruction


def barrier_arrive(
    *,
    barrier_id: Any = None,
    number_of_threads: Any = None,
    aligned: bool = True,
    loc: object = None,
    ip: object = None,
) -> None:
    """Arrive at a barrier without waiting. `number_of_threads` counts those that arrive and those that wait.

    With `aligned` all threads of the warp get here together; without it, threads of a warp may come one by one.
    """
    if number_of_threads is None:
        raise CompileError("barrier_arrive needs number_of_threads", location=user_location())
    number = barrier_id if barrier_id is not None else 0
    if aligned:
        named_barrier("arrive", number, number_of_threads)
    else:
        operands = (Int32(as_numeric(number)), Int32(as_numeric(number_of_threads)))
        instruction("barrier.cta.arrive $0, $1;", operands)


def barrier_unaligned(number: Any, count: Any) -> None:
    """Wait at a barrier to which threads of a warp may come one by one."""
    instruction("barrier.cta.sync $0, $1;", (Int32(as_numeric(number)), Int32(as_numeric(count))))
