"""Names of CuTe DSL's documentation that its tutorials do not use: unions, vectors, sizes, what a GPU has."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device, on_host
from tilewright.base import not_built, settings, stubs
from tilewright.base.errors import ArgumentError, CompileError, CudaDriverDependencyError
from tilewright.targets.nvidia.devices import driver


@cute.struct
class Pair:
    real: cutlass.Float32
    imag: cutlass.Float64


@cute.union
class Word:
    as_int: cutlass.Int32
    as_float: cutlass.Float32
    bytes: cute.struct.MemRange[cutlass.Uint8, 4]


@cute.union
class Mixed:
    pair: Pair
    flags: cute.struct.Align[cute.struct.MemRange[cutlass.Int8, 5], 32]
    word: Word


def test_members_of_a_union_lie_at_its_start():
    assert {field.offset for field in Mixed.__tw_struct__.values()} == {0}
    assert (Word.__sizeof__(), Word.__alignof__(), Word.size_in_bytes()) == (4, 4, 4)
    assert (Mixed.__sizeof__(), Mixed.__alignof__()) == (32, 32)  # 16 bytes of the pair, to a multiple of 32
    assert (Pair.__sizeof__(), Pair.__alignof__()) == (16, 8)


def test_a_union_shows_the_same_bits_as_each_member():
    def body(out: cute.Tensor):
        word = cutlass.utils.SmemAllocator().allocate(Word)
        word.as_float = -1.5
        out[0] = word.as_int.load()
        out[1] = word.bytes[3].to(cutlass.Int32)
        word.as_int = 42
        out[2] = word.bytes[0].to(cutlass.Int32)
        out[3] = word.as_float.ptr.load().to(cutlass.Int32)

    bits = int(np.float32(-1.5).view(np.int32))
    out = on_device(body, np.ones(4, np.int32), block=1)
    assert out.tolist() == [bits, (bits & 0xFFFFFFFF) >> 24, 42, 0]


def test_facts_of_fields():
    data, aligned = cute.struct.MemRange[cutlass.Float16, 10], cute.struct.Align[cutlass.Int32, 16]
    assert (data.size, data.elem_width, data.size_in_bytes()) == (10, 16, 20)
    assert (aligned.dtype, aligned.align) == (cutlass.Int32, 16)
    assert cute.struct.Align[data, 64].dtype is data and cute.struct.Align[Pair, 64].dtype is Pair


def test_facts_of_a_range_in_memory():
    def body(out: cute.Tensor):
        data = cutlass.utils.SmemAllocator().allocate(Mixed).flags
        out[0], out[1], out[2] = data.size, data.elem_width, data.size_in_bytes

    assert on_device(body, np.zeros(3, np.int32), block=1).tolist() == [5, 8, 5]


@pytest.mark.parametrize("where", [on_device, on_host])
def test_vectors_of_elements(where):
    def body(x: cute.Tensor, out: cute.Tensor):
        a = cutlass.Vector.from_elements((x[0], 2, 3.5, x[1]), cutlass.Float32)
        b = cutlass.Vector.from_elements([x[0], x[1]])
        out.store(a * 2 + cutlass.Vector.from_elements((1.0, 2.0, 3.0, 4.0)))
        x.store(b + b)
        assert (a.dtype, a.shape, b.dtype) == (cutlass.Float32, (4,), cutlass.Int32)

    options = {"block": 1} if where is on_device else {}
    x, out = where(body, np.array([5, -7], np.int32), np.zeros(4, np.float32), **options)
    assert out.tolist() == [11, 6, 10, -10]
    assert x.tolist() == [10, -14]


def test_elements_of_vectors():
    def body(x: cute.Tensor, out: cute.Tensor):
        low, high = cutlass.Vector.from_elements((x[0],), cutlass.Int64).bitcast(cutlass.Int32).to_elements()
        out[0], out[1] = low, high
        for i, item in enumerate(x.load().to_elements()):
            out[2 + i] = item.to(cutlass.Int32)

    out = on_device(body, np.array([-(2**40) + 3, 7], np.int64), np.zeros(4, np.int32), block=1)[1]
    assert out.tolist() == [3, -(2**8), 3, 7]


@pytest.mark.parametrize("elements", [(), (1, 2.5)])
def test_vectors_of_no_one_type(elements):
    with pytest.raises(CompileError, match="from_elements takes numbers of one type, at least one"):
        on_device(lambda out: out.store(cutlass.Vector.from_elements(elements)), np.zeros(2, np.float32), block=1)


def test_sizes_and_copies():
    assert cute.size_in_bytes(cutlass.Float16, cute.make_layout((3, 5), stride=(8, 1))) == (2 * 8 + 4 + 1) * 2
    assert cute.size_in_bytes(cutlass.Int4, cute.make_layout(5)) == 3
    assert (cute.repeat(2, 3), cute.repeat(2, 1), cute.repeat_as_tuple(2, 1)) == ((2, 2, 2), 2, (2,))
    assert cute.arch.get_dyn_smem_size is cute.arch.dynamic_smem_size
    assert cutlass.runtime is cute.runtime


@pytest.mark.skipif(driver.available(), reason="asks what a machine without a GPU says")
def test_hardware_needs_a_driver():
    with settings.scope(target="cuda"), pytest.raises(CudaDriverDependencyError):
        cutlass.utils.HardwareInfo()


@pytest.mark.parametrize(("arch", "sms", "l2"), (("sm_90a", 132, 50), ("sm_80", 108, 40), ("sm_89", 128, 72)))
def test_hardware_on_the_emulator_is_a_card_of_the_chip(arch, sms, l2):
    with settings.scope(target="emu", arch=arch):
        info = cutlass.utils.HardwareInfo()
    assert info.get_device_multiprocessor_count() == sms
    assert info.get_l2_cache_size_in_bytes() == l2 << 20
    assert info.get_max_active_clusters(4) == sms // 4
    with pytest.raises(ArgumentError, match="positive number of blocks"):
        info.get_max_active_clusters(0)


def test_hardware_of_a_chip_without_a_known_card():
    unknown = pytest.raises(ArgumentError, match="the peak rates of 'sm_86' are not known")
    with settings.scope(target="emu", arch="sm_86"), unknown:
        cutlass.utils.HardwareInfo()


@pytest.mark.skipif(not driver.available(), reason="needs a GPU")
def test_hardware_of_this_machine():
    info = cutlass.utils.HardwareInfo()
    device = driver.driver().device(0)
    assert info.get_device_multiprocessor_count() == device.attributes["multiprocessors"]
    assert info.get_l2_cache_size_in_bytes() > 0
    if device.capability >= (9, 0):
        assert info.get_max_active_clusters(1) == info.get_device_multiprocessor_count()
        assert 0 < info.get_max_active_clusters(4) <= info.get_device_multiprocessor_count() // 4
    with pytest.raises(ArgumentError, match="positive number of blocks"):
        info.get_max_active_clusters(0)


NOT_BUILT = [
    ("from cutlass import jax", "ImportError: cutlass.jax calls kernels from JAX, not built yet"),
    ("cutlass.Float4E2M1FNx2", "AttributeError: cutlass.Float4E2M1FNx2 is a pair of Float4E2M1FN"),
    ("cutlass.cute.nonesuch", "AttributeError: module 'tilewright.cute' has no attribute 'nonesuch'"),
    ("from cutlass import nonesuch", "ImportError: cannot import name 'nonesuch'"),
]
PROGRAM = """
import tilewright.dropin, cutlass, cutlass.cute
for line in {lines!r}:
    try:
        exec(line)
    except (ImportError, AttributeError) as error:
        kind = "ImportError" if isinstance(error, ImportError) else "AttributeError"
        print(f"{{kind}}: {{error}}")
    else:
        print("no error")
assert not hasattr(cutlass, "nonesuch") and getattr(cutlass, "jax", None) is None
"""


def test_names_that_are_not_built_say_what_they_are_for():
    source = PROGRAM.format(lines=[line for line, _ in NOT_BUILT])
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=100, check=True)
    for (line, expected), printed in zip(NOT_BUILT, done.stdout.splitlines(), strict=True):
        assert printed.startswith(expected), line


def test_nothing_that_is_built_is_listed_as_not_built():
    for module, names in not_built.NOT_BUILT.items():
        if importlib.util.find_spec(module) is None:  # its names are modules, which the drop-in refuses
            continue
        found = __import__(module, fromlist=["x"])
        have = [name for name in names if not stubs.is_stub(getattr(found, name, stubs.Stub))]
        have = [name for name in have if hasattr(found, name)]
        assert not have, module
