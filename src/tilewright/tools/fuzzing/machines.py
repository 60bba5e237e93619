"""Running programs: on the emulator, and from a cubin on a device that may hang or lose its context."""

from __future__ import annotations

import ctypes
import multiprocessing
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Final, Protocol

import numpy as np

from tilewright.base.errors import TilewrightError
from tilewright.emulate import run_ptx
from tilewright.targets.nvidia.driver import Buffer, Driver, driver
from tilewright.tools.fuzzing.inputs import INPUTS, Array, memory, outputs_of, record_of, records
from tilewright.tools.fuzzing.program import OUT_BYTES, THREADS, Program, module

Outcome = Array | str
"""The words that a program stored, or what went wrong."""
LIMIT: Final = 200_000
"""Blocks of code that the emulator runs before it calls a program endless."""
SECONDS: Final = 10.0
"""What a batch may take on a device."""


def emulated(program: Program, ptx: str | None = None, *, checks: bool = True) -> Outcome:
    """What a program, or a text in its place, stores on the emulator; a finding of its checks is its words."""
    stored = memory()
    arguments = [record_of(program).copy(), stored]
    try:
        run_ptx(ptx or module([program]), "k0", 1, THREADS, arguments, checks=checks, limit=LIMIT, progress=False)
    except TilewrightError as error:
        return str(error)
    return outputs_of(program, stored)


class Machine(Protocol):
    """What runs cubins."""

    def run(self, cubin: bytes, programs: Sequence[Program]) -> list[Outcome]:
        """What kernel `k<n>`, the n-th program, stored; or how it failed."""


class CudaMachine:
    """Device 0, by a child process: a kernel that hangs or faults ends that process and not this one."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._start()

    def run(self, cubin: bytes, programs: Sequence[Program]) -> list[Outcome]:
        """All programs at once; one by one where they fail."""
        found = self._attempt(cubin, list(enumerate(programs)))
        if found is not None:
            return found
        singly = [self._attempt(cubin, [numbered]) for numbered in enumerate(programs)]
        return [outcome[0] if outcome is not None else "hangs or faults on the device" for outcome in singly]

    def close(self) -> None:
        """End the child."""
        self._child.kill()
        self._child.join()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._child.start()
        theirs.close()

    def _attempt(self, cubin: bytes, programs: list[tuple[int, Program]]) -> list[Outcome] | None:
        """The outcomes; None when the child is lost, and another one has been started."""
        try:
            self._pipe.send((cubin, [(number, program.seed % INPUTS) for number, program in programs]))
            if self._pipe.poll(self.seconds + (20 if not self._child.is_alive() else 0)):
                raw = self._pipe.recv()
                if isinstance(raw, Array):
                    return [outputs_of(program, raw[place]) for place, (_, program) in enumerate(programs)]
        except (EOFError, OSError):
            pass
        self.close()
        self._start()
        return None


def _serve(pipe: Connection) -> None:
    """Load each cubin that comes and run its kernels; an error ends the process, as the context may be lost."""
    opened = driver()
    opened.make_current(0)
    inputs = [_uploaded(opened, records(which)) for which in range(INPUTS)]
    while True:
        cubin, kernels = pipe.recv()
        pipe.send(_launched(opened, cubin, kernels, inputs))


def _uploaded(opened: Driver, array: Array) -> Buffer:
    buffer = opened.allocate(array.nbytes)
    opened.copy_to_device(buffer.address, array.ctypes.data, array.nbytes)
    opened.synchronize()
    return buffer


def _launched(opened: Driver, cubin: bytes, kernels: list[tuple[int, int]], inputs: list[Buffer]) -> Array:
    """(kernels, OUT_BYTES) bytes that the kernels, each with the number of its input, left."""
    stored = np.zeros((len(kernels), OUT_BYTES), np.uint8)
    target = _uploaded(opened, stored)
    library = opened.load_library(cubin)
    for place, (number, which) in enumerate(kernels):
        addresses = [ctypes.c_uint64(inputs[which].address), ctypes.c_uint64(target.address + place * OUT_BYTES)]
        opened.launch(library.kernel(f"k{number}"), (1, 1, 1), (THREADS, 1, 1), addresses)
    opened.synchronize()
    opened.copy_to_host(stored.ctypes.data, target.address, stored.nbytes)
    opened.synchronize()
    target.free()
    library.unload()
    return stored
