"""The last accesses to memory, and the search for those that nothing orders."""

from tilewright.targets.emu.checks.history.conflict import Conflict
from tilewright.targets.emu.checks.history.history import History

__all__ = ["Conflict", "History"]
