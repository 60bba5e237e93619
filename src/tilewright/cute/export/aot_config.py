"""Flags for building programs that use exported functions: `python -m tilewright.cute.export.aot_config --libs`.

    --includedir, --cflags    where CuteDSLRuntime.h is
    --libdir, --ldflags       where the runtime library is
    --libs                    its `-l` flag; with --with-tvm-ffi that of tvm-ffi's library too
    --target TRIPLE           flags for another processor
    --wheel FOLDER            lay the folders of CuTe DSL's wheel at FOLDER, and print what to put on PYTHONPATH

Exported objects need no library of their own. The runtime library loads objects by name; it exists for this machine.
For another one compile the sources in --includedir there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tilewright.base import streams
from tilewright.base.errors import CompileError
from tilewright.cute.export.runtime_library import INCLUDE, NAME, library_folder
from tilewright.cute.export.wheel_folders import lay
from tilewright.ir.llvm import host_target


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what the options ask for, a line each; the status is 1 when it cannot be had."""
    parser = argparse.ArgumentParser(
        prog="aot_config", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for flag in ("--includedir", "--cflags", "--libdir", "--ldflags", "--libs", "--with-tvm-ffi"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--target", default="", metavar="TRIPLE")
    parser.add_argument("--wheel", type=Path, metavar="FOLDER")
    options = parser.parse_args(arguments)
    wanted = (options.includedir, options.cflags, options.libdir, options.ldflags, options.libs, options.wheel)
    if not any(wanted):
        parser.error("nothing is asked for")
    streams.steady()
    try:
        print("\n".join(_lines(options)))
        streams.flush()
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        streams.give_up_output()
        print(f"{error.filename or 'the output'} cannot be written or read: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def _lines(options: argparse.Namespace) -> list[str]:
    lines = [str(INCLUDE)] if options.includedir else []
    lines += [f"-I{INCLUDE}"] if options.cflags else []
    if options.libdir or options.ldflags:
        _require_native(options.target)
        folder = library_folder()
        lines += [str(folder)] if options.libdir else []
        lines += [f"-L{folder}"] if options.ldflags else []
    if options.libs:
        _require_native(options.target)
        lines.append(" ".join([f"-l{NAME}", *(["-ltvm_ffi"] if options.with_tvm_ffi else [])]))
    if options.wheel:
        _require_native(options.target)
        lines.append(str(lay(options.wheel.resolve()) / "python_packages"))
    return lines


def _require_native(triple: str) -> None:
    here = host_target()[0]
    if triple and triple.partition("-")[0] != here.partition("-")[0]:
        raise CompileError(
            "there is no runtime library for that processor",
            values={"target": triple, "this machine": here},
            hint=f"exported objects link without it; to load them by name, compile the sources in {INCLUDE} there",
        )


if __name__ == "__main__":
    sys.exit(main())
