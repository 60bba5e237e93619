"""Where to run, and for which architecture to compile."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.base import settings
from tilewright.targets.target import back_end_of, default_back_end, device_of


def choose_target(wanted: str | None) -> str:
    """The target asked for, else the setting, else the first of the default back end's devices that is available.

    Raises:
        CompileError: there is no such target.
        CudaDriverDependencyError: cuda is asked for and there is none.
    """
    name = wanted or settings.get("target")
    if not name:
        return next(name for name in default_back_end().devices if device_of(name).available())
    device_of(name).require()
    return str(name)


def choose_arch(wanted: str, target: str, places: Iterable[tuple[int, int]] = ()) -> str:
    """The architecture asked for, else that of the device, else the back end's default.

    `places` is where tensors of a call lie (`arguments.binding.places`), which choose among several devices.
    """
    back_end = back_end_of(target)
    return back_end.normalize_arch(wanted) if wanted else device_of(target).arch(places) or back_end.default_arch
