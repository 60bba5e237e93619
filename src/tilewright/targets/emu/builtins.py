"""Device functions that the machine serves: printing, assertions, the heap."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import unflatten
from tilewright.targets.emu.rules.memory import generic_load
from tilewright.targets.emu.runtime import builtin

_CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|j|t)?([diouxXeEfFgGaAcsp%])")
_MAX_TEXT = 1 << 16


def read_text(machine: Any, address: int) -> str:
    """A C string in global memory."""
    data = bytearray()
    while len(data) < _MAX_TEXT:
        byte = machine.g.at(address + len(data), 1)
        if byte is None:
            raise Fault("bounds", "Out-of-bounds read of a string", values={"address": f"{address + len(data):#x}"})
        if byte[0] == 0:
            break
        data.append(int(byte[0]))
    return data.decode("utf-8", "replace")


def argument(machine: Any, cohort: Cohort, place: Any, dtype: Any) -> Any:
    """A call argument: by its place in the caller's frame."""
    shift = dtype.itemsize.bit_length() - 1
    if isinstance(place, int):
        return machine.lo.load(-1, cohort.L, np.uint64(place), dtype, shift)
    return np.broadcast_to(place, (cohort.L.n,))


def give(machine: Any, cohort: Cohort, place: Any, value: Any) -> None:
    """Store a call's result where the caller expects it."""
    if place is not None:
        shift = value.dtype.itemsize.bit_length() - 1
        machine.lo.store(-1, cohort.L, np.uint64(place), value, value.dtype, shift)


@builtin("vprintf")
def vprintf(machine: Any, cohort: Cohort, site: int, arguments: list[Any], results: list[Any]) -> None:
    """`vprintf(format, arguments)`: the arguments lie one after another, each aligned to its size."""
    formats = argument(machine, cohort, arguments[0], np.dtype(np.uint64))
    lists = argument(machine, cohort, arguments[1], np.dtype(np.uint64))
    for lane in range(cohort.L.n):
        text = read_text(machine, int(formats[lane]))
        machine.launch.print(_format(machine, cohort, lane, text, int(lists[lane])))
    for place in results:
        give(machine, cohort, place, np.zeros(cohort.L.n, np.uint32))


def _format(machine: Any, cohort: Cohort, lane: int, text: str, at: int) -> str:
    one = cohort.L.subset(np.array([lane]))
    position = at

    def take(dtype: Any) -> Any:
        nonlocal position
        size = dtype.itemsize
        position = -(-position // size) * size
        value = generic_load(machine, -1, one, np.array([position], np.uint64), dtype, size.bit_length() - 1)[0]
        position += size
        return value

    def convert(match: re.Match[str]) -> str:
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        width = str(int(take(np.dtype(np.int32)))) if width == "*" else width or ""
        precision = str(int(take(np.dtype(np.int32)))) if precision == "*" else precision
        spec = "%" + flags + width + (f".{precision}" if precision is not None else "")
        return _convert_one(machine, take, spec, length or "", kind)

    return _CONVERSION.sub(convert, text)


def _convert_one(machine: Any, take: Any, spec: str, length: str, kind: str) -> str:
    wide = length in ("l", "ll", "z", "j", "t")
    if kind in "di":
        return (spec + "d") % int(take(np.dtype(np.int64 if wide else np.int32)))
    if kind in "ouxX":
        return (spec + ("d" if kind == "u" else kind)) % int(take(np.dtype(np.uint64 if wide else np.uint32)))
    if kind in "eEfFgG":
        return (spec + kind) % float(take(np.dtype(np.float64)))
    if kind in "aA":
        return float(take(np.dtype(np.float64))).hex()
    if kind == "c":
        return (spec + "c") % chr(int(take(np.dtype(np.int32))) & 255)
    if kind == "s":
        return (spec + "s") % read_text(machine, int(take(np.dtype(np.uint64))))
    return (spec + "s") % f"{int(take(np.dtype(np.uint64))):#x}"


@builtin("__assertfail")
def assert_fail(machine: Any, cohort: Cohort, site: int, arguments: list[Any], results: list[Any]) -> None:
    """`__assertfail(condition, file, line, function, size)`."""
    texts = [argument(machine, cohort, arguments[k], np.dtype(np.uint64)) for k in (0, 1, 3)]
    line = argument(machine, cohort, arguments[2], np.dtype(np.uint32))
    condition, file, function = (read_text(machine, int(t[0])) for t in texts)
    block = unflatten(int(cohort.L.block[0]), machine.shape.grid)
    raise Fault("assert", f"Device assertion failed: {condition}", site, np.arange(cohort.L.n),
                {"at": f"{file}:{int(line[0])} in {function}", "first block": block})  # fmt: skip


@builtin("malloc")
def device_malloc(machine: Any, cohort: Cohort, site: int, arguments: list[Any], results: list[Any]) -> None:
    """The device heap: each allocation is a buffer of its own, so that its bounds are checked."""
    sizes = argument(machine, cohort, arguments[0], np.dtype(np.uint64))
    addresses = machine.launch.allocate(sizes)
    machine.on.allocated(addresses)
    give(machine, cohort, results[0], addresses)


@builtin("free")
def device_free(machine: Any, cohort: Cohort, site: int, arguments: list[Any], results: list[Any]) -> None:
    """`free`: the buffer of the allocation is gone."""
    for address in argument(machine, cohort, arguments[0], np.dtype(np.uint64)):
        machine.launch.release(int(address), site)
