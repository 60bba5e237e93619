"""What is ordered before what: vector clocks, and the events that move them."""

from tilewright.targets.emu.checks.order.happens_before import HappensBefore

__all__ = ["HappensBefore"]
