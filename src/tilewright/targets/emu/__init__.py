"""The PTX emulator: `load` a text, `launch` a kernel on host memory; several devices are a `Fleet`."""

from tilewright.targets.emu.debug import Debugger, Step, Stop
from tilewright.targets.emu.fleet import Device, Devices, current_fleet
from tilewright.targets.emu.image import Program, load
from tilewright.targets.emu.launch import launch
from tilewright.targets.emu.memory import Buffer
from tilewright.targets.emu.options import Options
from tilewright.targets.emu.report import Report

__all__ = [
    "Buffer", "Debugger", "Device", "Devices", "Options", "Program", "Report", "Step", "Stop", "current_fleet",
    "launch", "load",
]  # fmt: skip
