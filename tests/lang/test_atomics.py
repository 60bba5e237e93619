"""Atomic operations, ordered loads and stores: on the emulator, each assembled by ptxas too."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import BFloat16, CompileError, Float16, Float32, Float64, Int8, Int32, Int64, Uint32, Uint64
from tilewright.base import settings
from tilewright.cute import arch

N = 64
NUMPY = {
    Int32: np.dtype(np.int32), Uint32: np.dtype(np.uint32), Int64: np.dtype(np.int64), Uint64: np.dtype(np.uint64),
    Float16: np.dtype(np.float16), BFloat16: np.dtype(ml_dtypes.bfloat16), Float32: np.dtype(np.float32),
    Float64: np.dtype(np.float64),
}  # fmt: skip


def run(body, memory, old=None, *, chip="sm_90a", assemble=True):
    """`body(memory, old, thread)` in a block of 64 threads; gives the old values and the PTX."""

    @cute.kernel
    def kernel(memory: cute.Tensor, old: cute.Tensor):
        body(memory, old, arch.thread_idx()[0])

    @cute.jit
    def host(memory: cute.Tensor, old: cute.Tensor):
        kernel(memory, old).launch(grid=1, block=N)

    old = np.zeros(N, memory.dtype) if old is None else old
    with settings.scope(arch=chip):
        executor = cute.compile(host, memory, old)
    executor(memory, old)
    if assemble:
        assert executor.__cubin__
    return old, executor.__ptx__


def values_of(dtype):
    if dtype.is_float:
        return (np.arange(N) % 3).astype(NUMPY[dtype])
    random = np.random.default_rng(3)
    return random.integers(dtype.min, dtype.max, N, dtype=NUMPY[dtype], endpoint=True)


FOLDS = {
    "add": (arch.atomic_add, lambda a, b: a + b),
    "and": (arch.atomic_and, lambda a, b: a & b),
    "or": (arch.atomic_or, lambda a, b: a | b),
    "xor": (arch.atomic_xor, lambda a, b: a ^ b),
    "min": (arch.atomic_min, min),
    "max": (arch.atomic_max, max),
}
INTEGERS = [Int32, Uint32, Int64, Uint64]
CASES = [(name, dtype) for name in FOLDS for dtype in INTEGERS]
CASES += [("add", dtype) for dtype in (Float16, BFloat16, Float32, Float64)]


def folded(name, values, dtype):
    fold, total = FOLDS[name][1], values[0].item()
    for value in values[1:]:
        total = fold(total, value.item())
        if not dtype.is_float:
            total = int(dtype(total))
    return total


@pytest.mark.parametrize("shared", [False, True], ids=["global", "shared"])
@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_threads_fold_into_one_number(name, dtype, shared):
    """Any order of the threads gives the same: small whole numbers, or wrapping ones."""
    atomic = FOLDS[name][0]

    @cute.jit
    def body(memory: cute.Tensor, old: cute.Tensor, i: Int32):
        total = memory
        if cutlass.const_expr(shared):
            total = cutlass.utils.SmemAllocator().allocate_tensor(dtype, 1)
            if i == 0:
                total[0] = memory[0]
            arch.sync_threads()
        old[i] = atomic(total.iterator, old[i])
        arch.sync_threads()
        if i == 0:
            memory[0] = total[0]

    values = values_of(dtype)
    values[0] = 3
    memory = values[:1].copy()
    _, ptx = run(body, memory, values.copy())
    # The number starts as `values[0]`, which thread 0 folds once more.
    wanted = folded(name, np.concatenate([values[:1], values]), dtype)
    assert memory[0].item() == wanted
    assert f".{name}." in ptx and (".shared" if shared else ".global") in ptx


@pytest.mark.parametrize("sem", [None, "relaxed", "acquire", "release", "acq_rel"])
@pytest.mark.parametrize("scope", [None, "cta", "cluster", "gpu", "sys"])
def test_order_and_scope_are_in_the_instruction(sem, scope):
    def body(memory, old, i):
        old[i] = arch.atomic_add(memory.iterator, 1, sem=sem, scope=scope)

    memory = np.zeros(1, np.int32)
    old, ptx = run(body, memory)
    assert sorted(old.tolist()) == list(range(N)) and memory[0] == N
    assert f"atom.{sem or 'relaxed'}.{scope or 'gpu'}.global.add.u32" in ptx


def test_without_a_use_of_the_old_value_it_is_a_reduction():
    def body(memory, old, i):
        arch.atomic_add(memory, 2, sem="release")
        arch.atomic_add(memory.iterator + 1, 2, sem="acquire")

    memory = np.zeros(2, np.int32)
    _, ptx = run(body, memory)
    assert memory.tolist() == [2 * N, 2 * N]
    assert "red.release.gpu.global.add.u32" in ptx and "atom.acquire.gpu.global.add.u32" in ptx


def test_counters_wrap_at_their_limit():
    def body(memory, old, i):
        old[i] = arch.atomic_inc(memory.iterator, 9)
        arch.atomic_dec(memory.iterator + 1, 6)

    memory = np.array([0, 6], np.uint32)
    old, _ = run(body, memory)
    assert sorted(old.tolist()) == sorted(k % 10 for k in range(N))
    assert memory.tolist() == [N % 10, (6 - N) % 7]


@pytest.mark.parametrize("dtype", [Int32, Uint64, Float32, Float64], ids=str)
def test_exchange_and_compare(dtype):
    def body(memory, old, i):
        old[i] = arch.atomic_exch(memory.iterator, dtype(i + 1))
        arch.atomic_cas(memory.iterator + 1, dtype(i), dtype(i + 1), sem="acq_rel", scope="cta")
        arch.atomic_cas(memory.iterator + 2, cmp=dtype(100), val=dtype(1))

    memory = np.array([0, 0, 5], NUMPY[dtype])
    old, ptx = run(body, memory)
    assert sorted([*old.tolist(), memory[0].item()]) == list(range(N + 1))
    assert memory[1] >= 1 and memory[2] == 5
    assert f"atom.acq_rel.cta.global.cas.b{dtype.width}" in ptx


@pytest.mark.parametrize("sign", [None, True, False])
@pytest.mark.parametrize("name", ["atomic_fmax", "atomic_fmin"])
def test_extremes_of_floats(name, sign):
    random = np.random.default_rng(1).standard_normal(N).astype(np.float32)
    values = random if sign is None else -np.abs(random) if sign else np.abs(random)

    def body(memory, old, i):
        old[i] = getattr(arch, name)(memory.iterator, old[i], sign_bit=sign)

    for start in (-np.inf, np.inf, 0.0, -0.25, 0.25):
        memory = np.array([start], np.float32)
        run(body, memory, values.copy(), assemble=False)
        wanted = max(start, values.max()) if name == "atomic_fmax" else min(start, values.min())
        assert memory[0] == wanted


def test_pairs_and_vectors():
    def body(memory, old, i):
        pair = cute.recast_tensor(memory, Float16)
        arch.atomic_add(pair.iterator, cute.full((2,), 0.5, Float16))
        ends = cute.recast_tensor(memory, BFloat16)
        arch.atomic_add(ends.iterator + 2, cute.full((2,), 2.0, BFloat16), sem="relaxed", scope="sys")
        arch.red(memory.iterator + 4, cute.full((4,), 1.5, Float32))
        arch.red(memory.iterator + 8, cute.full((2,), -1.0, Float32).ir_value(), sem="release", scope="gpu")

    memory = np.zeros(12, np.float32)
    _, ptx = run(body, memory)
    assert memory[:1].view(np.float16).tolist() == [32, 32]
    assert memory[1:2].view(ml_dtypes.bfloat16).astype(float).tolist() == [128, 128]
    assert memory[4:].tolist() == [96, 96, 96, 96, -64, -64, 0, 0]
    assert "red.release.gpu.global.add.v2.f32" in ptx


def test_red_by_name_of_type():
    def body(memory, old, i):
        arch.red(memory.iterator, i, op="add", dtype="s32", sem="release", scope="gpu")
        arch.red(memory.iterator + 1, i * 5, op="max", dtype="u32")
        arch.red(memory.iterator + 2, 1, op="or", dtype=Uint32)

    memory = np.zeros(3, np.int32)
    _, ptx = run(body, memory)
    assert memory.tolist() == [N * (N - 1) // 2, 5 * (N - 1), 1]
    assert "red.release.gpu.global.add.u32" in ptx and "atom." not in ptx


@pytest.mark.parametrize("sem", [None, "relaxed", "acquire", "volatile"])
@pytest.mark.parametrize("dtype", [Int8, Int32, Uint64, Float16, BFloat16, Float32, Float64, cutlass.Boolean], ids=str)
def test_ordered_loads_and_stores(dtype, sem):
    stored = {None: None, "relaxed": "relaxed", "acquire": "release", "volatile": "volatile"}[sem]

    def body(memory, old, i):
        number = arch.load((memory.iterator + i).llvm_ptr, dtype, sem=sem)
        arch.store(old.iterator + i, number, sem=stored)

    kind = {**NUMPY, Int8: np.dtype(np.int8), cutlass.Boolean: np.dtype(bool)}[dtype]
    memory = (np.arange(N) % 3 - 1).astype(kind)
    old, ptx = run(body, memory, np.zeros(N, kind), assemble=sem == "acquire")
    assert np.array_equal(old, memory)
    qualifier = "" if sem is None else f".{sem}" + ("" if sem == "volatile" else ".gpu")
    assert f"ld{qualifier}.global." in ptx


def test_cache_operators_and_vectors_of_words():
    def body(memory, old, i):
        for number, cop in enumerate(("ca", "cg", "cs", "lu", "cv")):
            old[i * 5 + number] = arch.load(memory.iterator + number, cop=cop)
        for number, cop in enumerate(("wb", "cg", "cs", "wt")):
            arch.store(memory.iterator + 8 + number, 7, cop=cop)
        arch.store(memory.iterator + 12, cute.full((4,), 3, Int32), cop="cs")
        arch.store((memory.iterator + 16).llvm_ptr, cute.full((2,), 4, Int32).ir_value())
        arch.store(cute.recast_tensor(memory, Float16).iterator + 40, cute.full((8,), 1.0, Float16))

    memory, old = np.arange(24, dtype=np.int32), np.zeros(5 * N, np.int32)
    run(body, memory, old)
    assert old.tolist() == list(range(5)) * N
    assert memory[8:20].tolist() == [7] * 4 + [3] * 4 + [4] * 2 + [18, 19]
    assert (memory[20:].view(np.float16) == 1).all()


def test_one_thread_hands_data_to_another_block():
    @cute.kernel
    def kernel(data: cute.Tensor, flag: cute.Tensor):
        if arch.block_idx()[0] == 0:
            data[0] = 42
            arch.store(flag.iterator, 1, sem="release", scope="gpu")
        else:
            seen = arch.load(flag.iterator, sem="acquire", scope="gpu")
            while seen == 0:
                seen = arch.load(flag.iterator, sem="acquire", scope="gpu")
            data[1] = data[0] + 1

    @cute.jit
    def host(data: cute.Tensor, flag: cute.Tensor):
        kernel(data, flag).launch(grid=2, block=1)

    data, flag = np.zeros(2, np.int32), np.zeros(1, np.int32)
    cute.compile(host, data, flag)(data, flag)
    assert data.tolist() == [42, 43]


REFUSED = {
    "has no sem 'strong'": lambda m, f: arch.atomic_add(m.iterator, 1, sem="strong"),
    "has no scope 'block'": lambda m, f: arch.atomic_add(m.iterator, 1, scope="block"),
    "expected a pointer, got Int32": lambda m, f: arch.atomic_add(m[0], 1),
    "atomic_add of a Float32 on memory of Int32": lambda m, f: arch.atomic_add(m.iterator, Float32(1)),
    "atomic_add of a Int32 on memory of Float32": lambda m, f: arch.atomic_add(f.iterator, m[0]),
    "atomic_add of a Int64 on memory of Int32": lambda m, f: arch.atomic_add(m.iterator, Int64(1)),
    "atomic_and of a Float32": lambda m, f: arch.atomic_and(f.iterator, 1.0),
    "atomic_inc of a Float32": lambda m, f: arch.atomic_inc(f.iterator, 1),
    "that no other thread sees": lambda m, f: arch.atomic_add(cute.make_rmem_tensor(1, Int32), 1),
    "arch.red has no op 'mul'": lambda m, f: arch.red(m.iterator, 1, op="mul"),
    "arch.red has no sem 'acquire'": lambda m, f: arch.red(m.iterator, 1, sem="acquire"),
    "arch.red max of a vector": lambda m, f: arch.red(f.iterator, cute.full((4,), 1.0, Float32), op="max"),
    "arch.load has no sem 'release'": lambda m, f: arch.load(m.iterator, sem="release"),
    "arch.load has no cop 'wb'": lambda m, f: arch.load(m.iterator, cop="wb"),
    "with a cop and a sem": lambda m, f: arch.store(m.iterator, 1, cop="cs", sem="release"),
    "with a scope but no order": lambda m, f: arch.load(m.iterator, scope="gpu"),
    "than 4, 8 or 16 bytes": lambda m, f: arch.store(m.iterator, cute.full((3,), 1, Int32)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    @cute.kernel
    def kernel(m: cute.Tensor, f: cute.Tensor):
        REFUSED[message](m, f)

    @cute.jit
    def host(m: cute.Tensor, f: cute.Tensor):
        kernel(m, f).launch(grid=1, block=1)

    with pytest.raises(CompileError, match=message) as caught:
        cute.compile(host, np.zeros(4, np.int32), np.zeros(4, np.float32))
    assert __file__ in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda m: arch.atomic_add(m.iterator, 1.0), "BFloat16"),
        (lambda m: arch.red(cute.recast_ptr(m.iterator, dtype=Float32), cute.full((4,), 1.0, Float32)), "red.v4.f32"),
        (lambda m: arch.atomic_add(cute.recast_ptr(m.iterator, dtype=Int32), 1, scope="cluster"), "cluster"),
    ],
    ids=["bf16", "vector", "cluster"],
)
def test_what_the_chip_lacks_is_refused(body, message):
    with pytest.raises(CompileError, match=message):
        run(lambda memory, old, i: body(memory), np.zeros(16, ml_dtypes.bfloat16), chip="sm_80")


def test_host_code_has_no_atomics():
    @cute.jit
    def host(m: cute.Tensor):
        arch.atomic_add(m.iterator, 1)

    with pytest.raises(CompileError, match="atomic_add is device code"):
        cute.compile(host, np.zeros(4, np.int32))


def test_bounds_of_atomics_are_checked():
    @cute.kernel
    def kernel(m: cute.Tensor):
        arch.atomic_add(m.iterator + arch.thread_idx()[0], 1)

    @cute.jit
    def host(m: cute.Tensor):
        kernel(m).launch(grid=1, block=8)

    m = np.zeros(7, np.int32)
    with pytest.raises(cutlass.EmulationError, match="access outside the memory of m"):
        cute.compile(host, m, options="--enable-assertions")(m)
