"""Several emulated devices in one process."""

from tilewright.targets.emu.fleet.fleet import Device, Devices, Fleet, current_fleet

__all__ = ["Device", "Devices", "Fleet", "current_fleet"]
