"""One case: every backend is checked, then all that were right are timed, or run on the emulator and counted."""

from __future__ import annotations

import contextlib
import gc
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tilewright.base.errors import TilewrightError
from tilewright.emulate import observe
from tilewright.ops.frameworks import torch
from tilewright.tools.benching import checking, timing
from tilewright.tools.benching.cases import Case
from tilewright.tools.benching.subjects import subject
from tilewright.tools.benching.subjects.subject import Function, Inputs, as_tuple

Send = Callable[[dict[str, Any]], None]
"""Takes a message for whoever keeps the results; `tilewright.tools.benching.suite_run` says which there are."""


AGAIN = "again"
"""The first backend once more, to see by how much two series of the same calls differ."""


class DeviceLost(Exception):
    """The device answers no more in this process."""


@dataclass
class Checked:
    """What backends gave right results, and the bytes that the op must move: inputs read once, results written once."""

    functions: dict[str, Function]
    bytes: int = 0


class Bench:
    """Measures cases on `target`, cuda or emu, and sends what it finds."""

    def __init__(self, target: str, warmup: int, iterations: int, send: Send, clock: str = "device") -> None:
        self.target = target
        self.clock = clock
        self.device = "cuda" if target == "cuda" else "cpu"
        self.warmup = warmup
        self.iterations = iterations
        self.send = send
        self._l2 = timing.L2() if target == "cuda" else None

    def run(self, number: int, case: Case, backends: Sequence[str]) -> None:
        """Measure one case; a backend that fails is reported and left out.

        Raises:
            DeviceLost: nothing more can be measured in this process.
        """
        self.send({"begin": number, "backend": None})
        found = subject(case.op)
        inputs = found.inputs(Inputs(case, self.device))
        exact = found.wanted(case, inputs)
        if case.recorded:
            inputs = tuple(item.requires_grad_() if item.is_floating_point() else item for item in inputs)
        checked = Checked({})
        for name in backends:
            self.send({"begin": number, "backend": name})
            try:
                self._check(name, case, inputs, exact, checked)
            except Exception as error:  # noqa: BLE001  a peer may fail in any way, and the others go on
                self._report(case, name, error)
        del exact
        self.send({"begin": number, "backend": None})
        calls = {name: _bound(function, inputs) for name, function in checked.functions.items()}
        if self.target == "cuda" and self.clock == "host":
            self._time_on_host(case, calls, checked.bytes)
        elif self._l2 is not None and calls:
            self._time(case, calls, checked.bytes, self._l2)
        self.send({"end": number})

    def _check(self, name: str, case: Case, inputs: tuple[Any, ...], exact: tuple[Any, ...], checked: Checked) -> None:
        try:
            function = subject(case.op).backend(name, case)
        except ModuleNotFoundError as error:
            self.send({"missing": name, "why": str(error)})
            return
        if function is None:
            return
        with observe(counters=True) as reports:
            results = tuple(item.detach() for item in as_tuple(function(*inputs)))
        self._synchronize()
        checking.check(results, exact, case.dtype)
        bytes_ = _bytes(inputs) + _bytes(results)
        shapes = [(tuple(item.shape), item.dtype) for item in results]
        del results
        checking.spoil(shapes, self.device)
        checked.bytes = checked.bytes or bytes_
        checked.functions[name] = function
        if self.target == "emu":
            self.send({"row": {**_row(case, name, checked.bytes), "emulator": [item.counts() for item in reports]}})

    def _time(self, case: Case, calls: dict[str, Callable[[], object]], bytes_: int, l2: timing.L2) -> None:
        roofs = timing.copy_functions(bytes_)
        first = next(iter(calls))
        functions = {**roofs, **calls, AGAIN: calls[first]}
        found = timing.interleaved(functions, self.warmup, self.iterations, l2.flush)
        rates = {name: found[name].gbs(bytes_) for name in roofs}
        roof, spread = max(rates.values()), abs(found[AGAIN].p50_us / found[first].p50_us - 1)
        self.send({"roof": {**_row(case, "", bytes_), "gbs": rates, "spread": spread}})
        for name in calls:
            times, gbs = found[name], found[name].gbs(bytes_)
            figures = {"p50_us": times.p50_us, "p90_us": times.p90_us, "gbs": gbs, "fraction_of_copy": gbs / roof}
            self.send({"row": {**_row(case, name, bytes_), **figures}})

    def _time_on_host(self, case: Case, calls: dict[str, Callable[[], object]], bytes_: int) -> None:
        for name, times in timing.on_host(calls, self.warmup, self.iterations).items():
            figures = {"clock": "host", "p50_us": times.p50_us, "p90_us": times.p90_us}
            self.send({"row": {**_row(case, name, bytes_), **figures}})

    def _report(self, case: Case, backend: str, error: Exception) -> None:
        """Send the failure; nothing of it may keep memory from the next backend.

        Raises:
            DeviceLost: the error left the device unusable.
        """
        text = str(error) if isinstance(error, (TilewrightError, checking.WrongResult)) else _last_lines(error)
        self.send({"failure": {**_row(case, backend, None), "error": text}})
        traceback.clear_frames(error.__traceback__)
        gc.collect()
        try:
            self._synchronize()
        except Exception as lost:
            raise DeviceLost(str(lost)) from lost

    def _synchronize(self) -> None:
        if self.target == "cuda":
            torch.cuda.synchronize()


def _bound(function: Function, inputs: tuple[Any, ...]) -> Callable[[], object]:
    return lambda: function(*inputs)


def _bytes(tensors: Sequence[Any]) -> int:
    """Bytes of the memory of tensors; an expanded dimension counts once."""
    total = 0
    for item in tensors:
        if item is not None:
            extents = [extent for extent, step in zip(item.shape, item.stride(), strict=True) if step or extent == 0]
            total += torch.Size(extents).numel() * item.itemsize
    return total


def _row(case: Case, backend: str, bytes_: int | None) -> dict[str, Any]:
    row: dict[str, Any] = {"op": case.op, "backend": backend, "shape": list(case.shape), "dtype": case.dtype}
    if bytes_ is not None:
        row["bytes"] = bytes_
    return {**row, "options": dict(case.options)} if case.options else row


def _last_lines(error: Exception) -> str:
    """The error as Python says it, its first lines only."""
    return "".join(traceback.format_exception_only(error)).strip()[:2000]


def device_facts(target: str) -> dict[str, Any]:
    """The device and the versions that a figure depends on."""
    facts: dict[str, Any] = {"torch": torch.__version__}
    for name, package in (("triton", "triton"), ("quack", "quack-kernels")):
        with contextlib.suppress(PackageNotFoundError):
            facts[name] = version(package)
    if target != "cuda":
        return {"device": "emulator", **facts}
    properties = torch.cuda.get_device_properties(0)
    return {
        "device": properties.name, "multiprocessors": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size, "memory_bytes": properties.total_memory, "cuda": torch.version.cuda,
        **facts,
    }  # fmt: skip
