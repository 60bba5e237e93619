"""Compile once, deploy without Python: export `scale` as an object with a C header, and once more for tvm-ffi.

    python examples/export/export.py build
    g++ -std=c++17 -Ibuild -o build/use_scale examples/export/use_scale.cpp build/scale.o -ldl
    build/use_scale

Neither step needs a GPU; the program checks its arguments everywhere and runs the kernel where a GPU is.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tilewright.cute as cute
from tilewright import Float32

THREADS = 128


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, factor: Float32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    if i < x.shape[0]:
        y[i] = x[i] * factor


@cute.jit
def scale(x: cute.Tensor, y: cute.Tensor, factor: Float32):
    """y = x * factor"""
    scale_kernel(x, y, factor).launch(grid=cute.ceil_div(x.shape[0], THREADS), block=THREADS)


def export(folder: str | Path, arch: str = "sm_90a") -> list[Path]:
    """Write `scale.h`, `scale.o` and `scale_ffi.o`; the vectors have a multiple of 4 elements, aligned to 16 bytes."""
    n = cute.sym_int(divisibility=4)
    vector = cute.runtime.make_fake_compact_tensor(Float32, (n,), assumed_align=16)
    compiled = cute.compile(scale, vector, vector, Float32(1), arch=arch, target="emu")
    c_files = compiled.export_to_c(file_path=folder, file_name="scale", function_prefix="scale")
    ffi_files = compiled.export_to_c(Path(folder) / "scale_ffi.o", function_name="scale_ffi")
    return [*c_files, *ffi_files]


if __name__ == "__main__":
    for path in export(*(sys.argv[1:] or ["build"])):
        print(path)
