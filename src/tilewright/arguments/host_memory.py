"""What the operating system says of an address: the mapping that it lies in."""

from __future__ import annotations

from pathlib import Path

from tilewright.base.errors import ArgumentError

_MAPS = Path("/proc/self/maps")


def mapping_of(address: int) -> tuple[int, int, bool]:
    """(address, bytes, writable) of the mapped memory around `address`.

    The bounds of a bare address: nothing narrower is known of it.

    Raises:
        ArgumentError: no memory of this process lies there.
    """
    for low, high, mode in _mappings():
        if low <= address < high and "r" in mode:
            return low, high - low, "w" in mode
    raise ArgumentError(f"no memory of this process lies at {address:#x}", hint="pass the address of host memory")


def _mappings() -> list[tuple[int, int, str]]:
    found = []
    for line in _MAPS.read_text().splitlines():
        span, mode, *_ = line.split()
        low, high = (int(part, 16) for part in span.split("-"))
        found.append((low, high, mode))
    return found
