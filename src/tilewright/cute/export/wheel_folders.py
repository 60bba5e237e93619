"""The folders of CuTe DSL's wheel, for build scripts that look for its headers and libraries there.

    FOLDER/python_packages/cutlass/    the drop-in; with python_packages on PYTHONPATH `cutlass.__file__` leads here
    FOLDER/cu12, FOLDER/cu13           include/CuteDSLRuntime.h, lib/libcute_dsl_runtime.so,
                                       lib/libcuda_dialect_runtime_static.a

The archive is empty: exported objects need no library. What is here does not depend on CUDA's version.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from tilewright.cute.export.runtime_library import INCLUDE, NAME, library_folder

FLAVORS: Final = ("cu12", "cu13")
_EMPTY_ARCHIVE: Final = b"!<arch>\n"
_PACKAGE: Final = '''\
"""`import cutlass` resolves to Tilewright; the file of this package tells build scripts where this folder is."""

import importlib
import sys

_own = sys.modules.pop(__name__)  # the drop-in takes no other cutlass
importlib.import_module("tilewright.dropin")
sys.modules[__name__] = _own
_face = importlib.import_module("tilewright")


def __getattr__(name):
    return getattr(_face, name)


def __dir__():
    return dir(_face)
'''


def lay(folder: Path, library: Path | None = None) -> Path:
    """Make the folders, or bring them up to date; `library` is where the runtime library lies, if not in the cache.

    Raises:
        CompileError: the runtime library cannot be built.
    """
    built = (library or library_folder()) / f"lib{NAME}.so"
    for flavor in FLAVORS:
        include, lib = folder / flavor / "include", folder / flavor / "lib"
        for made in (include, lib):
            made.mkdir(parents=True, exist_ok=True)
        shutil.copy(INCLUDE / "CuteDSLRuntime.h", include)
        shutil.copy(built, lib)
        (lib / "libcuda_dialect_runtime_static.a").write_bytes(_EMPTY_ARCHIVE)
    package = folder / "python_packages" / "cutlass"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(_PACKAGE)
    return folder
