"""The instruction table: importing this package registers the rule of every instruction."""

from tilewright.targets.emu.rules import (
    atomics,
    barriers,
    cluster,
    control,
    conversion,
    copies,
    floating,
    integer,
    logic,
    matrix,
    memory,
    video,
    warp,
    wmma,
)

__all__ = [
    "atomics",
    "barriers",
    "cluster",
    "control",
    "conversion",
    "copies",
    "floating",
    "integer",
    "logic",
    "matrix",
    "memory",
    "video",
    "warp",
    "wmma",
]
