"""Watching for mistakes: races by happens-before, values never written, copies not waited for."""

from tilewright.targets.emu.checks.watch import WatchingMachine

__all__ = ["WatchingMachine"]
