"""Record what a GPU gives for the kernels of the emulator's differential suite.

Run on a machine with an NVIDIA GPU of compute capability 9.0: `python scripts/record_emu_reference.py --out FILE.npz`.
It needs the driver, NumPy and ptxas (on PATH, in an nvidia wheel, or `--ptxas PATH`). The PTX is assembled with
`-fmad=false`, as the emulator does not contract. Each kernel runs twice from the same operands; FILE.npz holds the
outputs by kernel name, and the card's name under `card`. A kernel that fails, hangs or gives two different results is
named and left out; the others are recorded.

`--missing` records the kernels that FILE.npz does not have, `--only NAME ...` those named; what else is in the file
stays, and `card` then names the kernels that another card gave.
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.emu import kernels, tensor_copies  # noqa: E402

SECONDS = 60.0  # for one kernel, with the start of a process before the first
SIZE_LIMIT = 4_000_000
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute of the driver API."""

    _fields_ = (("id", ctypes.c_uint32), ("pad", ctypes.c_uint32), ("value", ctypes.c_uint32 * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig of the driver API."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", ctypes.c_uint32),
    )


class Driver:
    """The few calls of the CUDA driver that a launch takes."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.modules: dict[Path, ctypes.c_void_p] = {}
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; RuntimeError with the driver's own word for a failure."""
        status = getattr(self.library, name)(*arguments)
        if status == 0:
            return
        text = ctypes.c_char_p()
        self.library.cuGetErrorName(status, ctypes.byref(text))
        raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def name(self) -> str:
        """The card's name."""
        text = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", text, 128, self.device)
        return text.value.decode()

    def function(self, cubin: Path, name: str) -> ctypes.c_void_p:
        """A kernel of a cubin file."""
        if cubin not in self.modules:
            module = ctypes.c_void_p()
            self.call("cuModuleLoadData", ctypes.byref(module), cubin.read_bytes())
            self.modules[cubin] = module
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.modules[cubin], name.encode())
        return function

    def run(self, kernel: kernels.Kernel, cubin: Path) -> Any:
        """Launch a kernel on its operands; the output array."""
        arrays = [*kernels.operands(kernel), kernels.output(kernel)]
        pointers = [self.upload(array) for array in arrays]
        count = ctypes.c_int32(kernel.threads)
        maps = [self.tensor_map(made, pointers[-1 if made.of == "out" else int(made.of)]) for made in kernel.maps]
        values = [*pointers, count, *maps]
        parameters = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        attribute = LaunchAttribute(CLUSTER_DIMENSION, 0, (ctypes.c_uint32 * 16)(kernel.cluster, 1, 1))
        config = LaunchConfig(
            (kernel.grid, 1, 1), (kernel.block, 1, 1), kernel.smem, None, ctypes.pointer(attribute), kernel.cluster > 1
        )
        function = self.function(cubin, kernel.function)
        if kernel.smem > 48 * 1024:
            self.call("cuFuncSetAttribute", function, DYNAMIC_SHARED, kernel.smem)
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, parameters, None)
        self.call("cuCtxSynchronize")
        result = arrays[-1]
        host = result.ctypes.data_as(ctypes.c_void_p)
        self.call("cuMemcpyDtoH_v2", host, pointers[-1], ctypes.c_size_t(result.nbytes))
        for pointer in pointers:
            self.call("cuMemFree_v2", pointer)
        return result

    def tensor_map(self, made: tensor_copies.Map, address: ctypes.c_uint64) -> Any:
        """The 128 bytes that describe a tensor, made by the driver; at a multiple of 64, as it wants them."""
        room = ctypes.create_string_buffer(192)
        start = -ctypes.addressof(room) % 64
        result = (ctypes.c_char * 128).from_buffer(room, start)
        sizes = (numbers(ctypes.c_uint64, made.extents), numbers(ctypes.c_uint64, made.all_strides or (0,)))
        steps = numbers(ctypes.c_uint32, made.all_steps)
        kinds = (made.interleave // 16, tensor_copies.SWIZZLES.index(made.swizzle), 0, int(made.nan))
        first = (result, tensor_copies.TYPES.index(made.type), made.rank, address, *sizes)
        if made.lower:
            corners = (numbers(ctypes.c_int, made.lower), numbers(ctypes.c_int, made.upper))
            self.call("cuTensorMapEncodeIm2col", *first, *corners, *made.box, steps, *kinds)
        else:
            self.call("cuTensorMapEncodeTiled", *first, numbers(ctypes.c_uint32, made.box), steps, *kinds)
        return result

    def upload(self, array: Any) -> ctypes.c_uint64:
        """A copy of an array in device memory."""
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(array.nbytes))
        self.call("cuMemcpyHtoD_v2", pointer, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return pointer


def numbers(kind: Any, values: tuple[int, ...]) -> Any:
    """A C array."""
    return (kind * len(values))(*values)


def worker(pipe: Connection, names: list[str], folder: Path) -> None:
    """Run kernels one by one; send ("card", name), then (kernel, output or a text that says what went wrong)."""
    driver = Driver()
    pipe.send(("card", driver.name()))
    rows = {kernel.name: kernel for kernel in kernels.kernels()}
    for name in names:
        kernel = rows[name]
        try:
            first, second = (driver.run(kernel, folder / cubin_name(kernel)) for _ in range(2))
        except RuntimeError as error:
            pipe.send((name, str(error)))
            return  # an error of a kernel spoils the context
        same = first.tobytes() == second.tobytes()
        pipe.send((name, first if same else "two runs differ"))


def record(names: list[str], folder: Path) -> dict[str, Any]:
    """Outputs or error texts of all kernels, and the card's name; a new process after each failure."""
    results: dict[str, Any] = {}
    context = multiprocessing.get_context("spawn")
    while left := [name for name in names if name not in results]:
        ours, theirs = context.Pipe()
        process = context.Process(target=worker, args=(theirs, left, folder), daemon=True)
        process.start()
        theirs.close()
        for name in receive(ours, left, results):
            results[name] = "the kernel hung" if process.is_alive() else "the process ended"
        process.kill()
        process.join()
        if "card" not in results:
            raise SystemExit("no GPU: the driver did not start")
    return results


def receive(pipe: Connection, names: list[str], results: dict[str, Any]) -> list[str]:
    """Take results until all have come or one fails; the kernel that did not answer, if any."""
    for name in ["card", *names]:
        try:
            if not pipe.poll(SECONDS):
                return [name] if name != "card" else []
            key, value = pipe.recv()
        except (EOFError, ConnectionError):
            return [name] if name != "card" else []
        results[key] = value
        if key != "card" and isinstance(value, str) and value != "two runs differ":
            return []
    return []


def cubin_name(kernel: kernels.Kernel) -> str:
    """The file that a kernel is assembled into, with the others of its PTX."""
    return f"{kernel.folder.name}_{kernel.file}.cubin"


def assemble(ptxas: str, folder: Path, names: list[str]) -> None:
    """Write the cubins of some kernels' PTX files."""
    sources = {cubin_name(kernel): kernel.ptx for kernel in kernels.kernels() if kernel.name in names}
    for target, source in sources.items():
        subprocess.run([ptxas, "-arch=sm_90a", "-fmad=false", str(source), "-o", str(folder / target)], check=True)


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A recording with newer outputs in place; `card` keeps the first card's name, and says which others gave what."""
    if not old:
        return new
    first, *others = str(old["card"]).split("; ")
    card = str(new["card"])
    names = {name for name in new if name != "card"}
    by_card = {}
    for entry in others:
        other, _, given = entry.partition(": ")
        by_card[other] = set(given.split()) - names
    if card != first:
        by_card[card] = by_card.get(card, set()) | names
    entries = [f"{other}: {' '.join(sorted(given))}" for other, given in by_card.items() if given]
    return {**old, **new, "card": np.asarray("; ".join([first, *entries]))}


def read(path: Path) -> dict[str, Any]:
    """What a file holds; nothing if there is none."""
    if not path.exists():
        return {}
    with np.load(path) as recorded:
        return dict(recorded)


def choose(arguments: argparse.Namespace, old: dict[str, Any]) -> list[str]:
    """The names of the kernels to record; SystemExit for one that does not exist."""
    known = [kernel.name for kernel in kernels.kernels()]
    if arguments.only:
        unknown = sorted(set(arguments.only) - set(known))
        if unknown:
            raise SystemExit(f"there is no kernel {unknown[0]!r}")
        return list(arguments.only)
    return [name for name in known if not arguments.missing or name not in old]


def find_ptxas() -> str:
    """ptxas on PATH or in an installed nvidia wheel."""
    found = shutil.which("ptxas")
    places = [Path(place) for place in sys.path if place]
    wheels = [str(file) for place in places for file in place.glob("nvidia/*/bin/ptxas")]
    if found or wheels:
        return found or wheels[0]
    raise SystemExit("ptxas not found: put it on PATH or pass --ptxas")


def main() -> int:
    """Record everything; 1 if a kernel could not be recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=kernels.FOLDER / "reference.npz", help="the file to write")
    parser.add_argument("--ptxas", help="the assembler to use")
    parser.add_argument("--only", nargs="*", help="record these kernels, keep the others")
    parser.add_argument("--missing", action="store_true", help="record the kernels that the file does not have yet")
    arguments = parser.parse_args()
    old = read(arguments.out) if arguments.only or arguments.missing else {}
    names = choose(arguments, old)
    if not names:
        print("every kernel is recorded")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        assemble(arguments.ptxas or find_ptxas(), Path(folder), names)
        results = record(names, Path(folder))
    failed = {name: text for name, text in results.items() if isinstance(text, str) and name != "card"}
    kept = {name: np.asarray(value) for name, value in results.items() if name not in failed}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(arguments.out, **merged(old, kept))
    size = arguments.out.stat().st_size
    print(f"{results['card']}: {len(kept) - 1} kernels recorded, {size} bytes")
    for name, text in failed.items():
        print(f"  {name}: {text}")
    if size > SIZE_LIMIT:
        print(f"  the file is larger than {SIZE_LIMIT} bytes")
    return int(bool(failed) or size > SIZE_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
