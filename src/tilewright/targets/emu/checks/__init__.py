"""Looking for mistakes: a list of observers, each with its own state, fed by what the machine does."""

from tilewright.targets.emu.checks.barriers import Barriers
from tilewright.targets.emu.checks.bounds import Bounds
from tilewright.targets.emu.checks.copies import AsyncCopies
from tilewright.targets.emu.checks.history import History
from tilewright.targets.emu.checks.observer import Access, Batch, Observer
from tilewright.targets.emu.checks.order import HappensBefore
from tilewright.targets.emu.checks.proxies import Proxies
from tilewright.targets.emu.checks.races import Races
from tilewright.targets.emu.checks.tensor_maps import TensorMaps
from tilewright.targets.emu.checks.unwritten import Unwritten
from tilewright.targets.emu.checks.wgmma import WgmmaRegisters

STANDARD = (Bounds, Barriers, Races, AsyncCopies, Proxies, TensorMaps, Unwritten, WgmmaRegisters)
"""What `checks=True` looks for."""

__all__ = [
    "Access", "AsyncCopies", "Barriers", "Batch", "Bounds", "HappensBefore", "History", "Observer", "Proxies", "Races",
    "STANDARD", "TensorMaps", "Unwritten", "WgmmaRegisters",
]  # fmt: skip
