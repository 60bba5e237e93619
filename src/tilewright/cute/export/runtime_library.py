"""The C library behind `CuteDSLRuntime.h`, built from the sources in `runtime/` when it is first asked for.

Exported objects themselves need no library; this one loads them in C and C++ programs by name.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tilewright.base.errors import CompileError
from tilewright.targets.artifact_bytes import FORMAT

INCLUDE: Final = Path(__file__).with_name("runtime")
NAME: Final = "cute_dsl_runtime"
_SOURCES: Final = ("runtime.c", "object.c")
_FLAGS: Final = ("-O2", "-fPIC", "-shared", "-Wl,-soname,libcute_dsl_runtime.so", f"-DTW_FORMAT={FORMAT}")


def library_folder(cache: Path | None = None) -> Path:
    """The folder with `libcute_dsl_runtime.so`, which is built where it is not there yet.

    `cache` is where folders of built libraries go, by default the user's cache.

    Raises:
        CompileError: there is no C compiler, or it fails.
    """
    folder = (cache or Path.home() / ".cache" / "tilewright") / f"runtime-{_fingerprint()}"
    library = folder / f"lib{NAME}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _build(library)
    return folder


def _fingerprint() -> str:
    content = [path.read_bytes() for path in sorted(INCLUDE.iterdir()) if path.is_file()]
    return hashlib.sha256(b"\0".join([*content, " ".join(_FLAGS).encode()])).hexdigest()[:16]


def _build(library: Path) -> None:
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise CompileError("the runtime library is built by a C compiler, and there is none", hint="install gcc")
    handle, made = tempfile.mkstemp(dir=library.parent, suffix=".so")
    os.close(handle)
    sources = [str(INCLUDE / name) for name in _SOURCES]
    done = subprocess.run(
        [compiler, *_FLAGS, "-o", made, *sources, "-ldl"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        Path(made).unlink()
        raise CompileError(
            "the runtime library cannot be built", values={"compiler": compiler}, hint=done.stderr[-500:]
        )
    Path(made).chmod(0o755)
    Path(made).replace(library)  # whole or not at all, whoever else builds it
