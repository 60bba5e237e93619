"""The public sources that `scripts/compatibility.py` runs: from checkouts, or from an archive of what is needed.

An archive holds `cutlass/`, `forge/` and so on as far as the table's files reach, a few MB at most, for machines that
have no checkout and no network.
"""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

_NEEDED = {
    "cutlass": (
        "LICENSE.txt",
        "examples/python/CuTeDSL/cute/ampere",
        "examples/python/CuTeDSL/cute/hopper",
        "examples/python/CuTeDSL/cute/notebooks",
        "examples/python/CuTeDSL/cute/tvm_ffi",
        "examples/python/CuTeDSL/dsl_tutorials",
        "examples/python/CuTeDSL/experimental/primitives",
        "examples/python/CuTeDSL/helpers",
        "examples/python/CuTeDSL/utils",
        "test/examples/CuTeDSL",
    ),
    "forge": ("LICENSE", "forge_cute_py", "tests"),
    "quack": ("LICENSE", "quack", "tests"),
    "flash-attention": ("LICENSE", "flash_attn", "tests/cute"),
    "learn-cutedsl": ("README.md", "cutedsl", "fused_kernel"),
    "learn-CuTeDSL": ("LICENSE", "01_basic", "02_layout", "03_transpose", "04_gemm"),
    "cute-dsl-cookbook": ("readme.md", "python"),
    "cute-dsl-practice": ("README.md", "cute-dsl"),
}
_SUFFIXES = frozenset((".py", ".ipynb", ".cpp", ".h", ".txt", ".sh", ".toml", ""))
_MADE = frozenset(("__pycache__", "build", "images"))  # results of earlier runs, pictures


def pack(folders: dict[str, Path], target: Path) -> int:
    """Write the archive `target`; gives its size in bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(target, "w:gz") as archive:
        for repository, folder in folders.items():
            for name in _NEEDED[repository]:
                if (folder / name).exists():
                    archive.add(folder / name, f"{repository}/{name}", filter=_kept)
    return target.stat().st_size


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    path = Path(entry.name)
    if _MADE & set(path.parts) or not (entry.isdir() or path.suffix in _SUFFIXES):
        return None
    return entry


def unpack(source: Path) -> dict[str, Path]:
    """The folders of the repositories in an archive, which is unpacked, or in a folder that holds them."""
    if source.is_dir():
        folder = source
    else:
        folder = Path(tempfile.mkdtemp(prefix="compat-"))
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
    return {name: folder / name for name in _NEEDED if (folder / name).is_dir()}
