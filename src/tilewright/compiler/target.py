"""Where to run, and for which chip to compile."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.base.interrupts import uninterrupted
from tilewright.hw.chips import normalize_arch
from tilewright.targets.nvidia import driver

DEFAULT_ARCH = "sm_90a"
# The module and class that run compiled functions, by target; loaded when a target is first used.
DEVICES = {
    "cuda": ("tilewright.compiler.cuda_device", "CudaDevice"),
    "emu": ("tilewright.compiler.emu_device", "EmuDevice"),
}
TARGETS = tuple(DEVICES)


def make_device(target: str, artifact: Any, checks: Any) -> Any:
    """The device that runs the compiled function `artifact`."""
    module, name = DEVICES[target]
    return _class_of(module, name)(artifact, checks)


@functools.cache
def _class_of(module: str, name: str) -> Any:
    return getattr(uninterrupted(lambda: importlib.import_module(module)), name)


def choose_target(wanted: str | None) -> str:
    """The target asked for, else the setting, else cuda where a driver and a device are, else emu.

    Raises:
        CompileError: there is no such target.
        CudaDriverDependencyError: cuda is asked for and there is none.
    """
    name = wanted or settings.get("target")
    if not name:
        return "cuda" if driver.available() else "emu"
    if name not in TARGETS:
        raise CompileError(f"unknown target {name!r}", hint=f"targets: {', '.join(TARGETS)}")
    if name == "cuda":
        driver.driver()
    return str(name)


def choose_arch(wanted: str, target: str) -> str:
    """The chip asked for, else the device's, else sm_90a."""
    if wanted:
        return normalize_arch(wanted)
    return driver.driver().device().arch if target == "cuda" else DEFAULT_ARCH
