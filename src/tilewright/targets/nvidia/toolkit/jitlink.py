"""nvJitLink: PTX, cubins and libraries to one cubin.

The library crashes on some kernels (13.0), so it runs in a process that stays for the next kernel, and a crash is an
error. Threads link side by side, each with a process of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilewright.base.errors import CompileError
from tilewright.base.interrupts import raised_by_signal
from tilewright.targets.nvidia.toolkit import jitlink_child, toolchain

TIME_LIMIT: Final = 600.0
"""Seconds that one link may take."""

CUBIN: Final = 1
PTX: Final = 2
LTO_IR: Final = 3
FATBIN: Final = 4
OBJECT: Final = 5
LIBRARY: Final = 6

_KINDS: Final = {".a": LIBRARY, ".lib": LIBRARY, ".o": OBJECT, ".cubin": CUBIN, ".fatbin": FATBIN, ".ptx": PTX,
                 ".ltoir": LTO_IR}  # fmt: skip


@dataclass(frozen=True)
class Input:
    """One thing to link: its kind (a constant of this module), its bytes and a name for messages."""

    kind: int
    data: bytes
    name: str


@dataclass(frozen=True)
class Linked:
    """What came out: `status` 0 and a cubin, or another status and the log that says why."""

    status: int
    cubin: bytes
    log: str


def library_file(name: str) -> Path:
    """The file that a name in `LinkLibraries` stands for: a path, else one of the toolkit's libraries."""
    file = Path(name)
    bare = file.name == name and not file.exists()
    return (toolchain.library(name) if bare else None) or file


def read_library(name: str) -> bytes:
    """The content of a library.

    Raises:
        CompileError: no such file.
    """
    file = library_file(name)
    try:
        return file.read_bytes()
    except OSError as error:
        bare = file.name == name
        hint = f"{name} is in no toolkit or package either; give its path" if bare else "give the path of the library"
        raise CompileError(f"cannot read {name!r}: {error.strerror}", hint=hint) from error


_ELF_OF_CUDA: Final = b"\x7fELF", 18, (190).to_bytes(2, "little")


def library_input(path: str) -> Input:
    """A file to link, its kind told by its suffix: `.a .o .cubin .fatbin .ptx .ltoir`.

    A name without a folder that is not in the working directory is one of the toolkit's libraries: `libcudadevrt.a`.
    A `.o` may be an object of the host with device code in it, or device code alone.

    Raises:
        CompileError: no such file, or a suffix that nvJitLink cannot take.
    """
    file = library_file(path)
    kind = _KINDS.get(file.suffix)
    if kind is None:
        raise CompileError(f"cannot link {path!r}", hint=f"a library ends in one of .bc .ll {' '.join(_KINDS)}")
    data = read_library(path)
    magic, place, machine = _ELF_OF_CUDA
    if kind == OBJECT and data.startswith(magic) and data[place : place + 2] == machine:
        kind = CUBIN
    return Input(kind, data, file.name)


class _Process:
    """A process that has loaded one library; one request at a time."""

    def __init__(self, path: Path) -> None:
        python = sys.executable or shutil.which("python3")  # a program that embeds Python has no executable of it
        if not python:
            raise CompileError("nvJitLink needs a python3 on PATH", hint="or set CUDA_TOOLKIT_PATH to use its ptxas")
        command = [python, "-I", "-S", jitlink_child.__file__, str(path)]
        pipe = subprocess.PIPE
        # A group of its own: Ctrl-C is for the user's process, which then ends this one.
        try:
            self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, process_group=0)
        except OSError as error:
            if raised_by_signal(error):
                raise
            raise CompileError(f"cannot start a process for nvJitLink: {error}") from error
        self._version: tuple[int, int] | None = None

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    @property
    def version(self) -> tuple[int, int]:
        """The CUDA version of the library; CompileError if it does not load."""
        if self._version is None:
            self._version, refusal = self._receive()
            if refusal is not None:
                raise CompileError(f"cannot load nvJitLink: {refusal}", hint=toolchain.remedy("nvJitLink"))
            assert self._version is not None
        return self._version

    def link(self, inputs: Sequence[Input], options: Sequence[str]) -> Linked:
        version = self.version
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the answer tells that it ended
            pickle.dump(([(item.kind, item.data, item.name) for item in inputs], list(options)), self._child.stdin)
            self._child.stdin.flush()
        return Linked(*self._receive(f"nvJitLink {version[0]}.{version[1]}"))

    def _receive(self, name: str = "nvJitLink") -> Any:
        output = self._child.stdout
        assert output is not None
        poll = select.poll()
        poll.register(output, select.POLLIN)
        if not poll.poll(TIME_LIMIT * 1000):
            raise CompileError(f"{name} took more than {TIME_LIMIT:g} s")
        try:
            return pickle.load(output)
        except (EOFError, pickle.UnpicklingError) as error:
            raise _ended(name, self._child.wait()) from error

    def disown(self) -> None:
        """Leave it to the process that started it."""
        self._child.returncode = 0  # nobody here waits for it
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                stream.close()

    def end(self) -> None:
        """Now, whatever it does."""
        self._child.kill()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._child.wait()


def _ended(name: str, status: int) -> CompileError:
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    return CompileError(
        f"{name} ended {how}, which is a fault of nvJitLink itself",
        hint=f"install a newer nvidia-nvjitlink ({toolchain.remedy('nvJitLink')}), or compile with OptLevel(0)",
    )


_idle: dict[Path, list[_Process]] = {}
_KEPT: Final = max(os.cpu_count() or 1, 2)  # processes that wait; what more threads start is ended


def end_idle() -> None:
    """End the processes that wait for a link; the next link starts one."""
    while _idle:
        for process in _idle.popitem()[1]:
            process.end()


atexit.register(end_idle)


def _disown() -> None:
    """In a forked process: the processes that wait are the parent's, and answer it."""
    while _idle:
        for process in _idle.popitem()[1]:
            process.disown()


os.register_at_fork(after_in_child=_disown)


def prepare(path: Path) -> None:
    """Start a process for the next link, if none waits for one: it loads the library meanwhile."""
    if not _idle.get(path):
        _idle.setdefault(path, []).append(_Process(path))


def _take(waiting: list[_Process]) -> _Process | None:
    while waiting:
        with contextlib.suppress(IndexError):  # another thread was faster
            process = waiting.pop()
            if process.alive:
                return process
            process.end()
    return None


@contextlib.contextmanager
def _borrowed(path: Path) -> Iterator[_Process]:
    """A process that no other thread uses. After an error it is not used again."""
    waiting = _idle.setdefault(path, [])
    process = _take(waiting) or _Process(path)
    try:
        yield process
    except BaseException:
        process.end()
        raise
    if len(waiting) < _KEPT:
        waiting.append(process)
    else:
        process.end()


def version(path: Path) -> tuple[int, int]:
    """The CUDA version of the library: (13, 5).

    Raises:
        CompileError: it does not load.
    """
    with _borrowed(path) as process:
        return process.version


def link(path: Path, inputs: Sequence[Input], options: Sequence[str]) -> Linked:
    """Link `inputs` under `options` (`-arch=sm_90a`, `-O3`, `-lineinfo`, `-Xptxas=...`).

    A refusal is not an exception but a status and a log.

    Raises:
        CompileError: the library does not load, crashes, or takes more than `TIME_LIMIT`.
    """
    with _borrowed(path) as process:
        return process.link(inputs, options)
