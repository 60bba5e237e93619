"""Starting: a new process's import and its first calls, compiled or from the cache on disk; beside others.

Each sample is a process of its own, in which PyTorch has made a CUDA context before the clock starts. The first call of
all also loads the modules that every call needs; what a function itself takes shows the next one. The closed compiler
is measured where CLOSED_COMPILER names its folders (for PYTHONPATH), Triton where it is installed. A GEMM of a public
source is measured where DENSE_GEMM names its file, NVIDIA's examples/python/CuTeDSL/hopper/dense_gemm.py.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from bench.runner import Row

START = """
import json, os, sys, time
import torch
a, b = torch.randn(2, 1 << 20, device="cuda")
c = torch.empty_like(a)
torch.cuda.synchronize()
found = {}

def measured(name, call):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    result = call()
    torch.cuda.synchronize()
    found[name] = time.perf_counter() - begin
    return result

begin = time.perf_counter()
"""

OURS = """
import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
found["import"] = time.perf_counter() - begin
"""
CLOSED = """
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack
found["import"] = time.perf_counter() - begin
"""

DSL = """
@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * 256 + cute.arch.thread_idx()[0]
    c[i] = a[i] + b[i]

@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add_kernel(a, b, c).launch(grid=(4096, 1, 1), block=(256, 1, 1))

@cute.kernel
def subtract_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * 256 + cute.arch.thread_idx()[0]
    c[i] = a[i] - b[i]

@cute.jit
def subtract(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    subtract_kernel(a, b, c).launch(grid=(4096, 1, 1), block=(256, 1, 1))

tensors = [from_dlpack(item) for item in (a, b, c)]
measured("first", lambda: add(*tensors))
assert torch.equal(c, a + b)
measured("again", lambda: add(*tensors))
measured("next", lambda: subtract(*tensors))
assert torch.equal(c, a - b)
found["mlir"] = any(name in sys.modules for name in ("mlir.ir", "cutlass._mlir.ir"))
if "DENSE_GEMM" in os.environ:
    if "tilewright" in sys.modules:
        import tilewright.dropin
    import importlib
    sys.path.insert(0, os.path.dirname(os.environ["DENSE_GEMM"]))
    import cuda.bindings.driver as cuda
    source = importlib.import_module("dense_gemm")
    x, y, z = (torch.randn(1, 1024, 1024, device="cuda").half().permute(1, 2, 0) for _ in range(3))
    tensors = [from_dlpack(item, assumed_align=16).mark_layout_dynamic(leading_dim=1) for item in (x, y, z)]
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    gemm = source.HopperWgmmaGemmKernel(source.cutlass.Float32, (128, 256), (1, 1))
    compiled = measured("gemm compile", lambda: source.cute.compile(gemm, *tensors, stream))
    measured("gemm launch", lambda: compiled(*tensors, stream))
    found["gemm"] = found["gemm compile"] + found["gemm launch"]
    difference = z[..., 0].float() - x[..., 0].float() @ y[..., 0].float().T
    assert difference.abs().max().item() < 1
print(json.dumps(found))
"""

TRITON = """
import triton
import triton.language
found["import"] = time.perf_counter() - begin
from bench.warm_start_triton import add_kernel, gemm_kernel, subtract_kernel
measured("first", lambda: add_kernel[(1024,)](a, b, c, BLOCK=1024))
assert torch.equal(c, a + b)
measured("again", lambda: add_kernel[(1024,)](a, b, c, BLOCK=1024))
measured("next", lambda: subtract_kernel[(1024,)](a, b, c, BLOCK=1024))
assert torch.equal(c, a - b)
x, y = torch.randn(2, 1024, 1024, device="cuda").half()
z = torch.empty_like(x)
measured("gemm", lambda: gemm_kernel[(8, 8)](x, y, z, 1024, 1024, 1024, TILE=128, DEPTH=64, num_warps=8))
assert (z.float() - x.float() @ y.float()).abs().max().item() < 1
found["mlir"] = False
print(json.dumps(found))
"""

WITHOUT_GPU = """
import contextlib, json, os, sys, time
found = {}
begin = time.perf_counter()
"""

POINTERS = """
make_ptr = cute.runtime.make_ptr

@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * 256 + cute.arch.thread_idx()[0]
    c[i] = a[i] + b[i]

@cute.jit
def add(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer):
    a, b, c = (cute.make_tensor(pointer, cute.make_layout(1 << 20)) for pointer in (a, b, c))
    add_kernel(a, b, c).launch(grid=(4096, 1, 1), block=(256, 1, 1))

@cute.kernel
def subtract_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * 256 + cute.arch.thread_idx()[0]
    c[i] = a[i] - b[i]

@cute.jit
def subtract(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer):
    a, b, c = (cute.make_tensor(pointer, cute.make_layout(1 << 20)) for pointer in (a, b, c))
    subtract_kernel(a, b, c).launch(grid=(4096, 1, 1), block=(256, 1, 1))

pointers = [make_ptr(cutlass.Float32, 4096 * (i + 1), cute.AddressSpace.gmem) for i in range(3)]
ours = "tilewright" in sys.modules

def compiled(function):
    made = cute.compile(function, *pointers)
    if ours and os.environ["STEP"] == "cold":
        made.stages["cubin"]

def called(function):
    # its cache serves direct calls alone, which end where they miss the driver
    with contextlib.suppress(Exception), open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        function(*pointers)

from_disk = not ours and os.environ["STEP"] == "warm"
for name, function in (("first", add), ("next", subtract)):
    begin = time.perf_counter()
    (called if from_disk else compiled)(function)
    found[name] = time.perf_counter() - begin
found["mlir"] = any(name in sys.modules for name in ("mlir.ir", "cutlass._mlir.ir"))
print(json.dumps(found))
"""

SYSTEMS = {"tilewright": OURS + DSL, "closed compiler": CLOSED + DSL, "triton": TRITON}
STEPS = {
    "import": ("import", None),
    "first": ("the first call: a vector addition", None),
    "again": ("the same again", None),
    "next": ("the next function: a vector subtraction", 5.0),
    "gemm": ("a GEMM", 15.0),
}
"""What each step is called, and the most milliseconds that it may take us from disk."""


def rows(quick: bool) -> Iterator[Row]:
    """For each system: a process that finds nothing cached, and medians over processes that find all on disk."""
    if find_spec("torch") is None or not _has_gpu():
        for system, begin in (("tilewright", OURS), ("closed compiler", CLOSED)):
            if _is_there(system):
                yield from _without_gpu(system, WITHOUT_GPU + begin + POINTERS, 3 if quick else 7)
        return
    for system, program in SYSTEMS.items():
        if _is_there(system):
            samples = (2 if quick else 7) if system == "tilewright" else (1 if quick else 3)
            try:
                yield from _of_system(system, START + program, samples)
            except subprocess.CalledProcessError as error:
                print(f"{system}: {error.stderr[-800:]}", file=sys.stderr)


def _of_system(system: str, program: str, samples: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as cache:
        cold, *warm = [_run(system, program, cache) for _ in range(samples + 1)]
    note = "MLIR was loaded" if any(run["mlir"] for run in warm) else ""
    for step, (name, target) in STEPS.items():
        if step not in cold:
            continue
        if step == "import":
            yield Row(f"{system}, import", statistics.median(run[step] for run in warm) * 1e3, "ms", samples)
            continue
        yield Row(f"{system}, {name}, nothing cached", cold[step] * 1e3, "ms")
        found = statistics.median(run[step] for run in warm) * 1e3
        target = target if system == "tilewright" else None
        yield Row(f"{system}, {name}, from disk", found, "ms", samples, target=target, note=note)


def _without_gpu(system: str, program: str, samples: int) -> Iterator[Row]:
    """Medians of processes that compile, and of such that find on disk what one before them made."""
    cold, warm = [], []
    with tempfile.TemporaryDirectory() as bytecode:
        _run(system, program, bytecode, STEP="cold")
        for _ in range(samples):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(_run(system, program, cache, STEP="cold", PYTHONPYCACHEPREFIX=f"{bytecode}/bytecode"))
                for _ in "12":
                    found = _run(system, program, cache, STEP="warm", PYTHONPYCACHEPREFIX=f"{bytecode}/bytecode")
                warm.append(found)
    yield Row(f"{system}, import", _median(cold, "import"), "ms", samples, note="no device")
    for step, name in (("first", "the first function: a vector addition"), ("next", STEPS["next"][0])):
        yield Row(f"{system}, {name}, compiled", _median(cold, step), "ms", samples, note="no device")
        target = STEPS["next"][1] if system == "tilewright" and step == "next" else None
        yield Row(f"{system}, {name}, from disk", _median(warm, step), "ms", samples, target=target, note="no device")


def _median(runs: list[dict[str, float]], step: str) -> float:
    return statistics.median(run[step] for run in runs) * 1e3


def _run(system: str, program: str, cache: str, **variables: str) -> dict[str, float]:
    folders = dict.fromkeys(("TILEWRIGHT_CACHE_DIR", "CUTE_DSL_CACHE_DIR", "TRITON_CACHE_DIR"), cache)
    paths = [str(Path(__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")]
    if system == "closed compiler":
        paths.insert(0, os.environ["CLOSED_COMPILER"])
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    kept |= {**folders, "PYTHONPATH": os.pathsep.join(paths), "PYTHONPYCACHEPREFIX": f"{cache}/bytecode"}
    kept |= {"CUTE_DSL_ARCH": "sm_90a", "TILEWRIGHT_TARGET": "emu"} | variables if "STEP" in variables else {}
    source = Path(cache, "program.py")  # the closed compiler reads the source of functions from a file
    source.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(source)], check=True, capture_output=True, text=True, env=kept, timeout=120
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _is_there(system: str) -> bool:
    return {
        "tilewright": True,
        "closed compiler": "CLOSED_COMPILER" in os.environ,
        "triton": find_spec("triton") is not None,
    }[system]


def _has_gpu() -> bool:
    done = subprocess.run(
        [sys.executable, "-c", "import torch; torch.zeros(1, device='cuda')"], capture_output=True, check=False
    )
    return done.returncode == 0
