"""Running programs: on the emulator, and from a cubin on a device that may hang or lose its context."""

from __future__ import annotations

import ctypes
import multiprocessing
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Final, Protocol

import numpy as np

from tilewright.base.errors import LaunchError, TilewrightError
from tilewright.emulate import run_ptx
from tilewright.targets.nvidia.devices.driver import Buffer, Driver, driver
from tilewright.tools.fuzzing.inputs import INPUTS, Array, memory, outputs_of, record_of, records
from tilewright.tools.fuzzing.program import OUT_BYTES, THREADS, Program, module

Outcome = Array | str
"""The words that a program stored, or what went wrong."""
LIMIT: Final = 200_000
"""Blocks of code that the emulator runs before it calls a program endless."""
SECONDS: Final = 5.0
"""What a batch may take on a device."""
_START_SECONDS: Final = 30.0
_MOST_LOST: Final = 30


def emulated(program: Program, ptx: str | None = None, kernel: str = "k0", *, checks: bool = True) -> Outcome:
    """What a program, or a kernel of a text, stores on the emulator; a finding of its checks is its words."""
    stored = memory()
    arguments = [record_of(program).copy(), stored]
    try:
        run_ptx(ptx or module([program]), kernel, 1, THREADS, arguments, checks=checks, limit=LIMIT, progress=False)
    except TilewrightError as error:
        return str(error)
    return outputs_of(program, stored)


class Machine(Protocol):
    """What runs cubins."""

    def run(self, cubin: bytes, programs: Sequence[Program]) -> list[Outcome]:
        """What kernel `k<n>`, the n-th program, stored; or how it failed."""


class CudaMachine:
    """Device 0, by a child process: a kernel that hangs or faults ends that process and not this one.

    Raises:
        LaunchError: `run`, when every child of several was lost: then it is the device, not the programs.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._lost = 0
        self._start()

    def run(self, cubin: bytes, programs: Sequence[Program]) -> list[Outcome]:
        """All programs at once; halves of them where they fail, down to the one that does."""
        return self._parts(cubin, list(enumerate(programs)))

    def close(self) -> None:
        """End the child."""
        self._child.kill()
        self._child.join()

    def _parts(self, cubin: bytes, programs: list[tuple[int, Program]]) -> list[Outcome]:
        found = self._attempt(cubin, programs)
        if not isinstance(found, str):
            self._lost = 0
            return [outputs_of(program, found[place]) for place, (_, program) in enumerate(programs)]
        self.close()
        self._lost += 1
        if self._lost > _MOST_LOST:
            raise LaunchError(f"the device runs no program any more: {found}")
        self._start()
        if len(programs) == 1:
            return [f"device: {found}"]
        half = len(programs) // 2
        return self._parts(cubin, programs[:half]) + self._parts(cubin, programs[half:])

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._child.start()
        theirs.close()
        self._start_seconds = _START_SECONDS  # for the first answer

    def _attempt(self, cubin: bytes, programs: list[tuple[int, Program]]) -> Array | str:
        """(programs, OUT_BYTES) bytes, or why there are none."""
        try:
            self._pipe.send((cubin, [(number, program.seed % INPUTS) for number, program in programs]))
            if not self._pipe.poll(self.seconds + self._start_seconds):
                return f"no end after {self.seconds:g} s"
            found = self._pipe.recv()
            self._start_seconds = 0.0
        except (EOFError, OSError):
            return "the process was lost"
        return found if isinstance(found, np.ndarray) else str(found)


def _serve(pipe: Connection) -> None:
    """Load each cubin that comes and run its kernels; after an error the process ends, as the context may be lost."""
    try:
        opened = driver()
        opened.make_current(0)
        inputs = [_uploaded(opened, records(which)) for which in range(INPUTS)]
        while True:
            cubin, kernels = pipe.recv()
            pipe.send(_launched(opened, cubin, kernels, inputs))
    except TilewrightError as error:
        pipe.send(str(error))
    except EOFError:
        return


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
