"""Finding NVIDIA's compiler tools: the user's toolkit, then the installed packages, then PATH.

A *root* is a folder laid out like a CUDA toolkit. The setting `toolkit` names one; the wheels bring one each
(`nvidia/cu13`); the folder above a program on PATH is the last.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.base.interrupts import raised_by_signal
from tilewright.base.notices import say_once

Origin = Literal["toolkit", "package", "PATH"]


@dataclass(frozen=True)
class Tool:
    """A program, library or file that was found. `root` is the toolkit folder that holds it."""

    name: str
    path: Path
    root: Path
    origin: Origin


@dataclass(frozen=True)
class _Search:
    """Where a tool lies under a root, and how to get it."""

    patterns: tuple[str, ...]
    package: str


_LIBRARY_FOLDERS: Final = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")


def _library(name: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}.so*" for folder in _LIBRARY_FOLDERS)


TOOLS: Final[dict[str, _Search]] = {
    "ptxas": _Search(("bin/ptxas",), "nvidia-cuda-nvcc"),
    "nvdisasm": _Search(("bin/nvdisasm",), "nvidia-cuda-nvdisasm"),
    "nvJitLink": _Search(_library("libnvJitLink"), "nvidia-nvjitlink"),
    "libnvvm": _Search(("nvvm/lib64/libnvvm.so*", *_library("libnvvm")), "nvidia-nvvm"),
    "libdevice": _Search(("nvvm/libdevice/libdevice*.bc",), "nvidia-nvvm"),
}
"""The tools by name: where each lies in a toolkit, and the package that brings it."""

_VERSION_SECONDS: Final = 20.0


def _toolkit_root() -> Iterator[tuple[Path, Origin]]:
    text = settings.get("toolkit")
    if not text:
        return
    root = Path(text).expanduser()
    if not root.is_dir():
        say_once(f"the toolkit {text} is no folder, so tools come from the installed packages and from PATH", None)
    yield root, "toolkit"


def _package_roots() -> Iterator[tuple[Path, Origin]]:
    """`nvidia/cu13` of CUDA 13's wheels, newest first, then the one-folder-per-component wheels of CUDA 12."""
    spec = importlib.util.find_spec("nvidia")
    bases = [Path(base) for base in (spec.submodule_search_locations or ())] if spec is not None else []
    for base in bases:
        for root in sorted(base.glob("cu[0-9][0-9]"), reverse=True):
            yield root, "package"
    for base in bases:
        for component in ("cuda_nvcc", "cuda_nvdisasm", "nvjitlink", "cuda_runtime"):
            yield base / component, "package"


def _path_roots() -> Iterator[tuple[Path, Origin]]:
    for program in ("ptxas", "nvdisasm", "nvcc"):
        found = shutil.which(program)
        if found:
            yield Path(found).resolve().parent.parent, "PATH"


def _newest(matches: Iterator[Path]) -> Path | None:
    """The match with the highest number in its name: libX.so.13 before libX.so.12."""
    files = [match for match in matches if match.is_file()]
    return max(files, key=lambda file: [int(part) for part in re.findall(r"\d+", file.name)], default=None)


_found: dict[tuple[str, str], Tool] = {}


def locate(name: str) -> Tool | None:
    """The tool that would be used now, or None."""
    key = name, str(settings.get("toolkit"))
    known = _found.get(key)
    if known is not None and known.path.is_file():
        return known
    tool = _look(name)
    if tool is not None:
        _found[key] = tool
    return tool


def _look(name: str) -> Tool | None:
    search = TOOLS[name]
    for roots in (_toolkit_root, _package_roots, _path_roots):
        for root, origin in roots():
            for pattern in search.patterns:
                path = _newest(root.glob(pattern))
                if path is not None:
                    return Tool(name, path, root, origin)
    return _on_path(name)


def _on_path(name: str) -> Tool | None:
    # A wrapper script on PATH has no toolkit around it.
    found = shutil.which(name) if TOOLS[name].patterns[0].startswith("bin/") else None
    return Tool(name, Path(found), Path(found).parent.parent, "PATH") if found else None


def find(name: str) -> Tool:
    """The tool that will be used.

    Raises:
        CompileError: it is nowhere; the message says where it was looked for and what brings it.
    """
    tool = locate(name)
    if tool is None:
        raise CompileError(
            f"{name} was not found",
            values={"toolkit": settings.get("toolkit") or "(not set)", "packages": "nvidia-*", "PATH": "searched"},
            hint=remedy(name),
        )
    return tool


def library(name: str) -> Path | None:
    """A library by its file name, such as `libcudadevrt.a`, in the folders of the toolkit, then of the packages."""
    for roots in (_toolkit_root, _package_roots, _path_roots):
        for root, _ in roots():
            for folder in _LIBRARY_FOLDERS:
                path = root / folder / name
                if path.is_file():
                    return path
    return None


def remedy(name: str) -> str:
    """What a user does about a missing tool."""
    return f"pip install {TOOLS[name].package}, or set CUDA_TOOLKIT_PATH to a CUDA toolkit that has {name}"


def tool_version(tool: Tool) -> tuple[int, int]:
    """The CUDA version of ptxas or nvdisasm, (13, 5); (0, 0) when the program does not say.

    Raises:
        CompileError: the program does not run.
    """
    return _program_version(str(tool.path), tool.path.stat().st_mtime_ns)


_versions: dict[tuple[str, int], tuple[int, int]] = {}


def _program_version(path: str, stamp: int) -> tuple[int, int]:
    # The time stamp is part of the key: a user may replace a toolkit under a running process.
    if (path, stamp) not in _versions:
        found = re.search(r"release (\d+)\.(\d+)", run_tool([path, "--version"], _VERSION_SECONDS).stdout)
        _versions[path, stamp] = (int(found[1]), int(found[2])) if found else (0, 0)
    return _versions[path, stamp]


def run_tool(command: list[str], time_limit: float) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, or to `time_limit` seconds, then it is killed.

    Raises:
        CompileError: it cannot be started, or ran out of time.
    """
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=time_limit,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise CompileError(f"{Path(command[0]).name} took more than {time_limit:g} s and was ended") from error
    except OSError as error:
        if raised_by_signal(error):
            raise
        raise CompileError(f"cannot start {command[0]}: {error.strerror}") from error
