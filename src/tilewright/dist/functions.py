"""The collectives as functions: of a communicator given, or of that of all processes of torch.distributed."""

from __future__ import annotations

import functools
from typing import Any

from tilewright.dist.collectives import Communicator
from tilewright.dist.making import communicator


@functools.cache
def default_communicator() -> Communicator:
    """The communicator of all processes, made by the first call, which all of them make.

    Raises:
        ArgumentError: torch.distributed has not begun, or would use multicast.
    """
    return communicator()


def _of(comm: Communicator | None) -> Communicator:
    return default_communicator() if comm is None else comm


def all_reduce(
    t: Any, op: str = "sum", algo: str = "auto", out: Any = None, deterministic: bool = True, *,
    comm: Communicator | None = None,
) -> Any:  # fmt: skip
    """See `Communicator.all_reduce`."""
    return _of(comm).all_reduce(t, op, algo, out, deterministic)


def all_gather(t: Any, out: Any = None, *, comm: Communicator | None = None) -> Any:
    """See `Communicator.all_gather`."""
    return _of(comm).all_gather(t, out)


def reduce_scatter(t: Any, out: Any = None, op: str = "sum", *, comm: Communicator | None = None) -> Any:
    """See `Communicator.reduce_scatter`."""
    return _of(comm).reduce_scatter(t, out, op)


def broadcast(t: Any, src: int = 0, *, comm: Communicator | None = None) -> Any:
    """See `Communicator.broadcast`."""
    return _of(comm).broadcast(t, src)


def all_to_all(t: Any, out: Any = None, *, comm: Communicator | None = None) -> Any:
    """See `Communicator.all_to_all`."""
    return _of(comm).all_to_all(t, out)
