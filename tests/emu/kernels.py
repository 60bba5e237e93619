"""The kernels of tests/emu/data/cuda and written: their manifest, seeded operands, and what counts as agreement.

Those of `cuda` are compiled from CUDA C++ (`scripts/build_emu_kernels.py`), those of `written` are PTX written by hand,
with a `// kernel: {...}` comment before each in place of a row of the manifest. Several such comments are several
kernels of one entry, each with a `name`; those of tensor copies say which maps they take and what each block copies.

The recording on a GPU and the comparison on the emulator both take everything from here; NumPy is all it needs.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.emu import tensor_copies
from tests.emu.numerics import reference as ref

FOLDER = Path(__file__).parent / "data" / "cuda"
WRITTEN = FOLDER.parent / "written"
MANIFEST = FOLDER / "manifest.json"
ROWS = re.compile(r"^((?:// kernel: \{.*\}\n)+)\.visible \.entry (\w+)\(", re.MULTILINE)
Array = np.ndarray[Any, Any]
DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    **dict.fromkeys(("f16", "bf16", "u16"), np.uint16),
    **dict.fromkeys(("f16x2", "bf16x2", "e4m3x4", "e5m2x4", "u32"), np.uint32),
    "s16": np.int16,
    "s32": np.int32,
    "s64": np.int64,
    "u64": np.uint64,
}
WORDS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True)
class Kernel:
    """A row of the manifest.

    `inputs` are strings `TYPE KIND`, `TYPE KIND *WIDTH` (WIDTH elements for each thread) or `TYPE KIND =COUNT` (COUNT
    elements); `out` is the type of a result and the number of results of each thread; `compare` is "bits" or bounds
    `relative`, `absolute`; `initial` says what the output holds before: zeros (False or "zero"), seeded bits (True) or
    seeded values (`TYPE KIND`). `within` restricts the comparison where ptxas does not follow the PTX ISA: for a
    result's index, the greatest value of each of the inputs named by index; a result with none of them is not compared.

    For tensor copies and bulk reductions: `maps` follow the other parameters; `at` has the coordinates for each block,
    im2col offsets behind; `place` is where the box lies in shared memory, for all blocks or each; `room` how many bytes
    of shared memory a block copies in or out, by default the output's of a block; `op` the reduction; `masks` the
    blocks of the cluster that each block copies to. An input `s32 at` gives the kernel all of this.
    """

    name: str
    file: str
    inputs: tuple[str, ...]
    out: tuple[str, int]
    threads: int
    block: int = 128
    cluster: int = 1
    smem: int = 0
    initial: bool | str = False
    compare: dict[str, float] = field(default_factory=dict)
    within: dict[str, dict[str, int]] = field(default_factory=dict)
    folder: Path = FOLDER
    entry: str = ""
    maps: tuple[tensor_copies.Map, ...] = ()
    at: tuple[tuple[int, ...], ...] = ()
    place: int | tuple[int, ...] = 0
    room: int = 0
    op: str = ""
    masks: tuple[int, ...] = ()

    @property
    def function(self) -> str:
        """The name of the entry in the PTX."""
        return self.entry or self.name

    @property
    def grid(self) -> int:
        """Blocks of the launch."""
        return self.threads // self.block

    @property
    def ptx(self) -> Path:
        """The file with the kernel's PTX."""
        return self.folder / f"{self.file}.ptx"


def kernels() -> list[Kernel]:
    """All kernels, in the order of the manifest, then those written by hand."""
    rows = [*json.loads(MANIFEST.read_text())["kernels"], *written()]
    return [Kernel(**{**row, "inputs": tuple(row["inputs"]), "out": tuple(row["out"])}) for row in rows]


def written() -> list[dict[str, Any]]:
    """The rows of the kernels in `WRITTEN`."""
    rows = []
    for source in sorted(WRITTEN.glob("*.ptx")):
        for comments, entry in ROWS.findall(source.read_text()):
            for text in comments.splitlines():
                row = json.loads(text.removeprefix("// kernel: "))
                names = {"name": entry, "file": source.stem, "folder": WRITTEN, "entry": entry}
                rows.append({**names, "inputs": row.pop("in"), **row, **copies(row)})
    return rows


def copies(row: dict[str, Any]) -> dict[str, Any]:
    """What a row says of tensor copies; a block of 32 threads for each place unless it says otherwise."""
    if "at" not in row:
        return {}
    block = row.get("block", 32)
    return {
        "maps": tuple(tensor_copies.map_of(made) for made in row.get("maps", ())),
        "at": tuple(map(tuple, row["at"])),
        "masks": tuple(row.get("masks", ())),
        "place": tuple(place) if isinstance(place := row.get("place", 0), list) else place,
        "block": block,
        "threads": block * len(row["at"]),
    }


# ---- operands -------------------------------------------------------------------------------------------------


def operands(kernel: Kernel) -> list[Array]:
    """The input arrays, the same on every machine."""
    made: list[Array] = []
    for position, text in enumerate(kernel.inputs):
        rng = np.random.default_rng(zlib.crc32(f"{kernel.name} {position}".encode()))
        type, kind, *width = text.split()
        count = int(width[0][1:]) if width else 1
        count *= 1 if width and width[0][0] == "=" else kernel.threads
        if kind == "at":
            made.append(tensor_copies.table(kernel))
        elif kind == "alike":
            first = made[0].view(WORDS[made[0].dtype.itemsize])
            other = values(type, "any", count, rng).view(first.dtype)
            made.append(np.where(rng.integers(0, 3, count) == 0, first, other).view(DTYPES[type]))
        else:
            made.append(values(type, kind, count, rng))
    return made


def output(kernel: Kernel) -> Array:
    """The output array before the launch."""
    type, per_thread = kernel.out
    count = kernel.threads * per_thread
    if kernel.initial is True:
        rng = np.random.default_rng(zlib.crc32(f"{kernel.name} initial".encode()))
        return (
            rng.integers(0, 2**32, count, dtype=np.uint64)
            .astype(WORDS[np.dtype(DTYPES[type]).itemsize])
            .view(DTYPES[type])
        )
    if kernel.initial and kernel.initial != "zero":
        rng = np.random.default_rng(zlib.crc32(f"{kernel.name} initial".encode()))
        return values(*str(kernel.initial).split(), count, rng).view(DTYPES[type])
    return np.zeros(count, DTYPES[type])


def values(type: str, kind: str, count: int, rng: np.random.Generator) -> Array:
    """Seeded values of a type. Kinds are listed in `FLOAT_KINDS` and `INTEGER_KINDS`."""
    dtype = DTYPES[type]
    if type[0] in "su":
        return INTEGER_KINDS[kind](np.dtype(dtype), count, rng).astype(dtype)
    scalar, _, packed = type.partition("x")
    lanes = int(packed or 1)
    words = FLOAT_KINDS[kind](scalar, count * lanes, rng).astype(
        WORDS[-(-ref.width(scalar) // 8)] if lanes < 4 else np.uint8
    )
    return np.ascontiguousarray(words).view(dtype)


def _bits(numbers: Array, type: str) -> Array:
    """Bit patterns of float64 numbers, rounded to nearest."""
    with np.errstate(all="ignore"):
        if type == "f64":
            return numbers.astype(np.float64).view(np.uint64)
        if type == "f32":
            return numbers.astype(np.float32).view(np.uint32)
        if type == "f16":
            return numbers.astype(np.float16).view(np.uint16)
        if type == "bf16":
            return (_on_grid(numbers, type).astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    codes = [code for code in range(256) if not ref.is_nan(ref.value(code, type))]
    table = np.array([float(ref.value(code, type)) for code in codes])
    order = np.argsort(table, kind="stable")
    places = np.searchsorted(table[order], _on_grid(numbers, type))
    return np.array(codes, np.uint8)[order][np.minimum(places, len(codes) - 1)]


def _on_grid(numbers: Array, type: str) -> Array:
    """Float64 numbers rounded to the precision of a type, ties to even."""
    mantissa = ref.FORMATS[type][1]
    _, exponent = np.frexp(numbers)
    quantum = np.ldexp(1.0, np.maximum(exponent - 1, 1 - ref.bias(type)) - mantissa)
    return np.where(np.isfinite(numbers), np.rint(numbers / quantum) * quantum, numbers)


def _any_float(type: str, count: int, rng: np.random.Generator) -> Array:
    return ref.random_bits(type, count, rng)


def _edge(type: str, count: int, rng: np.random.Generator) -> Array:
    """Values whose products lie within a few units of the least normal number, or of half the least subnormal."""
    unit = 2.0**-23
    near = 1 + rng.integers(-3, 4, count) * unit * rng.choice([0.5, 1.0, 2.0], count)
    scale = 2.0 ** rng.choice([-63, -63, -63, -62, -64, -74, -75, 0, -126], count)
    return _bits(near * scale * rng.choice([-1.0, 1.0], count), type)


def _integral(type: str, count: int, rng: np.random.Generator) -> Array:
    """Values about the limits of integer types, halves, and anything else."""
    power = 2.0 ** rng.choice([0, 1, 3, 7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64], count)
    step = rng.choice([-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 1.5], count)
    numbers = (power + step) * rng.choice([-1.0, 1.0], count)
    return np.where(
        rng.integers(0, 3, count) == 0, _any_float(type, count, rng), _bits(numbers, type).astype(np.uint64)
    )


def _half(type: str, count: int, rng: np.random.Generator) -> Array:
    """Values within and about the range of f16, bf16 and tf32, many of them ties."""
    kept = rng.choice([7, 8, 10, 11, 12, 23], count)
    fraction = 1 + rng.integers(0, 1 << 23, count) // (1 << (23 - kept)) / 2.0**kept
    numbers = fraction * 2.0 ** rng.integers(-28, 18, count) * rng.choice([-1.0, 1.0], count)
    numbers *= rng.choice([1.0, 1.0, 1.0, 2.0**-110, 2.0**110], count)
    return np.where(
        rng.integers(0, 4, count) == 0, _any_float(type, count, rng), _bits(numbers, type).astype(np.uint64)
    )


def _tiny(type: str, count: int, rng: np.random.Generator) -> Array:
    """Values within and about the range of the 8-bit formats, many of them ties."""
    kept = rng.choice([2, 3, 4, 23], count)
    fraction = 1 + rng.integers(0, 1 << 23, count) // (1 << (23 - kept)) / 2.0**kept
    numbers = fraction * 2.0 ** rng.integers(-19, 18, count) * rng.choice([-1.0, 1.0], count)
    return np.where(
        rng.integers(0, 6, count) == 0, _any_float(type, count, rng), _bits(numbers, type).astype(np.uint64)
    )


def _uniform(low: float, high: float) -> Any:
    return lambda type, count, rng: _bits(rng.uniform(low, high, count), type)


def _positive(type: str, count: int, rng: np.random.Generator) -> Array:
    wide = 2.0 ** rng.uniform(-149, 128, count)
    numbers = np.where(rng.integers(0, 2, count) == 0, wide, 1 + rng.uniform(-0.6, 1.2, count))
    specials = rng.choice([0.0, -0.0, np.inf, np.nan, -1.0, 1.0], count)
    return _bits(np.where(rng.integers(0, 20, count) == 0, specials, numbers), type)


def _exponent(type: str, count: int, rng: np.random.Generator) -> Array:
    specials = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, -126.0, -149.0, -150.0, 127.5, 128.0, 1e-40], count)
    return _bits(np.where(rng.integers(0, 20, count) == 0, specials, rng.uniform(-151, 129, count)), type)


def _exact(type: str, count: int, rng: np.random.Generator) -> Array:
    """Small multiples of a half: sums of their products are exact in every accumulator."""
    bound = 2 if type in ("e4m3", "e5m2") else 3
    return _bits(rng.integers(-bound, bound + 1, count) * 0.5, type)


def _special(type: str, count: int, rng: np.random.Generator) -> Array:
    """As `_exact`, with an infinity or a NaN among some hundred values."""
    rare = rng.choice([np.inf, -np.inf, np.nan, -0.0], count)
    numbers = np.where(rng.integers(0, 120, count) == 0, rare, rng.integers(-3, 4, count) * 0.5)
    return _bits(numbers, type)


FLOAT_KINDS: dict[str, Any] = {
    "any": _any_float,
    "edge": _edge,
    "integral": _integral,
    "half": _half,
    "tiny": _tiny,
    "unit": _uniform(-1, 1),
    "angle": _uniform(-2 * np.pi, 2 * np.pi),
    "positive": _positive,
    "exponent": _exponent,
    "exact": _exact,
    "special": _special,
}


def _any_integer(dtype: np.dtype[Any], count: int, rng: np.random.Generator) -> Array:
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True) >> rng.integers(0, info.bits, count).astype(
        dtype
    )
    edges = [info.min, info.max, 0, 1, info.max - 1, info.min + 1, info.max // 2, -1 if info.min else 2]
    return np.where(rng.integers(0, 6, count) == 0, rng.choice(np.array(edges, dtype), count), x)


def _divisor(dtype: np.dtype[Any], count: int, rng: np.random.Generator) -> Array:
    rare = rng.choice(np.array([0, 1, 2, 3, 7, 10, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype), count)
    rare = np.where(rng.integers(0, 4, count) == 0, ~rare, rare)
    return np.where(rng.integers(0, 3, count) == 0, rare, _any_integer(dtype, count, rng))


def _place(dtype: np.dtype[Any], count: int, rng: np.random.Generator) -> Array:
    near = rng.integers(0, 70, count)
    return np.where(rng.integers(0, 8, count) == 0, _any_integer(dtype, count, rng).astype(np.int64), near)


def _nibbles(choices: tuple[int, ...]) -> Any:
    """Words whose four-bit fields are all among `choices`: metadata of sparse matrices."""

    def make(dtype: np.dtype[Any], count: int, rng: np.random.Generator) -> Array:
        fields = rng.choice(np.array(choices, np.int64), (count, 8))
        return (fields << (4 * np.arange(8))).sum(axis=1)

    return make


INTEGER_KINDS: dict[str, Any] = {
    "any": _any_integer,
    "divisor": _divisor,
    "place": _place,
    "nth": lambda dtype, count, rng: rng.integers(-20, 21, count),
    "index": lambda dtype, count, rng: np.arange(1, count + 1),
    "small": lambda dtype, count, rng: rng.integers(0, 64, count),
    "nibbles": _nibbles((0x4, 0x8, 0x9, 0xC, 0xD, 0xE)),
    "halves": _nibbles((0x4, 0xE)),
}


# ---- agreement ------------------------------------------------------------------------------------------------


def disagreement(kernel: Kernel, got: Array, wanted: Array) -> str:
    """Empty where the outputs agree, else what differs first and how much."""
    if not kernel.compare:
        bits = WORDS[got.dtype.itemsize]
        wrong = np.flatnonzero((got.view(bits) != wanted.view(bits)) & comparable(kernel))
        shown = got.view(bits), wanted.view(bits)
    else:
        shown = numbers(got, kernel.out[0]), numbers(wanted, kernel.out[0])
        wrong = np.flatnonzero(~_close(*shown, **kernel.compare))
    if not len(wrong):
        return ""
    return f"{kernel.name}: {len(wrong)} of {len(shown[0])} results differ; " + "; ".join(
        _line(kernel, int(at), *shown) for at in wrong[:4]
    )


def comparable(kernel: Kernel) -> Array:
    """Which outputs the comparison takes (see `Kernel.within`)."""
    taken = np.ones((kernel.out[1], kernel.threads), bool)
    inputs = operands(kernel) if kernel.within else []
    for result, bounds in kernel.within.items():
        taken[int(result)] = bool(bounds)
        for position, greatest in bounds.items():
            taken[int(result)] &= inputs[int(position)] <= greatest
    return taken.reshape(-1)


def _line(kernel: Kernel, at: int, got: Array, wanted: Array) -> str:
    per_value = len(got) // (kernel.threads * kernel.out[1])
    result, thread = divmod(at // per_value, kernel.threads)
    form = (lambda x: f"{x:#x}") if got.dtype.kind == "u" else (lambda x: f"{x:.9g}")
    inputs = ", ".join(
        f"{x[thread].view(WORDS[x.dtype.itemsize]):#x}" for x in operands(kernel) if len(x) == kernel.threads
    )
    return f"result {result} of thread {thread} ({inputs}): {form(got[at])}, not {form(wanted[at])}"


def numbers(words: Array, type: str) -> Array:
    """Outputs of a float type as float64; packed pairs become twice as many."""
    scalar = type.split("x")[0]
    if scalar in ("f32", "f64"):
        return words.astype(np.float64)
    halves = np.ascontiguousarray(words).view(np.uint16)
    if scalar == "f16":
        return halves.view(np.float16).astype(np.float64)
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def _close(got: Array, wanted: Array, relative: float = 0.0, absolute: float = 0.0) -> Array:
    with np.errstate(all="ignore"):
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        return same | (np.abs(got - wanted) <= np.maximum(absolute, relative * np.abs(wanted)))
