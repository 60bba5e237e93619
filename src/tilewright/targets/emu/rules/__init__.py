"""The instruction table: importing this package registers the rule of every instruction."""

from tilewright.targets.emu.rules import (
    atomics,
    control,
    conversion,
    floating,
    integer,
    logic,
    memory,
    warp,
)

__all__ = ["atomics", "control", "conversion", "floating", "integer", "logic", "memory", "warp"]
