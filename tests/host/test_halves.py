"""16-bit float conversions of host code, against NumPy and exact rounding."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

from tilewright.ir.llvm import emit_object
from tilewright.targets.host.irtext import llvm_file
from tilewright.targets.host.loader import load_object

# C has no 16-bit floats: arrays go through loops in IR.
LOOP = """
define void @each_{name}(ptr %out, ptr %in, i64 %count) {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %from = getelementptr {source}, ptr %in, i64 %i
  %to = getelementptr {target}, ptr %out, i64 %i
  %x = load {source}, ptr %from
  {convert}
  store {target} %y, ptr %to
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %next, label %end
end:
  ret void
}}
"""
TRUNCATE = "%w = call float @{name}({source} %x)\n  %b = bitcast float %w to i32\n  %y = trunc i32 %b to i16"
EXTEND = "%w = zext i16 %x to i32\n  %f = bitcast i32 %w to float\n  %y = call float @{name}(float %f)"
SOURCES = {"__truncsfhf2": "float", "__truncdfhf2": "double", "__truncsfbf2": "float", "__truncdfbf2": "double"}


@pytest.fixture(scope="module")
def convert():
    parts = [llvm_file("halves"), LOOP.format(name="__extendhfsf2", source="i16", target="float",
                                    convert=EXTEND.format(name="__extendhfsf2"))]  # fmt: skip
    for name, source in SOURCES.items():
        text = TRUNCATE.format(name=name, source=source)
        parts.append(LOOP.format(name=name, source=source, target="i16", convert=text))
    loaded = load_object(emit_object("\n".join(parts)))

    def run(name, values, dtype):
        out = np.zeros(len(values), dtype)
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
            loaded.address(f"each_{name}")
        )
        function(out.ctypes.data, values.ctypes.data, len(values))
        return out

    run.keep = loaded
    return run


def floats(count=200_000):
    generator = np.random.default_rng(7)
    bits = generator.integers(0, 2**32, count, dtype=np.uint32)
    near_half = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    near_half = near_half[~np.isnan(near_half)]
    neighbours = [np.nextafter(near_half, np.float32(side)) for side in (-np.inf, np.inf)]
    ties = ((np.arange(65536, dtype=np.uint32) << 13) + 0x38000000 + 0x1000).view(np.float32)
    upper = np.arange(65536, dtype=np.uint32) << 16
    near_bfloat = [(upper + extra).view(np.float32) for extra in (0, 0x7FFF, 0x8000, 0x8001)]
    return np.concatenate([bits.view(np.float32), near_half, *neighbours, ties, *near_bfloat])


def same(got, expected):
    return np.array_equal(np.isnan(got), np.isnan(expected)) and np.array_equal(
        got.view(np.uint16)[~np.isnan(got)], expected.view(np.uint16)[~np.isnan(expected)]
    )


def test_every_half_extends(convert):
    halves = np.arange(65536, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        expected = halves.view(np.float16).astype(np.float32)
    got = convert("__extendhfsf2", halves, np.float32)
    numbers = ~np.isnan(expected)
    assert np.array_equal(got.view(np.uint32)[numbers], expected.view(np.uint32)[numbers])
    assert np.isnan(got[~numbers]).all()


@pytest.mark.parametrize(("name", "dtype"), [("__truncsfhf2", np.float16), ("__truncsfbf2", ml_dtypes.bfloat16)])
def test_floats_truncate(convert, name, dtype):
    values = floats()
    with np.errstate(all="ignore"):
        expected = values.astype(dtype)
    assert same(convert(name, values, np.uint16).view(dtype), expected)


def test_doubles_truncate_to_half(convert):
    with np.errstate(all="ignore"):
        wide = floats().astype(np.float64)
        values = np.concatenate([wide * (1 + scale) for scale in (0, 2**-30, -(2**-30), 2**-52)])
        expected = values.astype(np.float16)  # NumPy rounds once
    assert same(convert("__truncdfhf2", values, np.uint16).view(np.float16), expected)


def test_doubles_truncate_to_bfloat_once(convert):
    # Just beside the middle between two neighbours: the float in between is the middle itself.
    upper = (np.arange(0x0080, 0x7F00, dtype=np.uint32) << 16).view(np.float32).astype(np.float64)
    above = (np.arange(0x0081, 0x7F01, dtype=np.uint32) << 16).view(np.float32).astype(np.float64)
    middle = (upper + above) / 2
    down, up = np.nextafter(middle, 0), np.nextafter(middle, np.inf)
    bits = convert("__truncdfbf2", np.concatenate([down, up]), np.uint16)
    index = np.arange(0x0080, 0x7F00, dtype=np.uint16)
    assert np.array_equal(bits[: len(index)], index)
    assert np.array_equal(bits[len(index) :], index + 1)
