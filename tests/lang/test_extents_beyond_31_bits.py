"""Numbers derived from extents that arrive at run time, beyond 2^31: against the same functions on Python's integers.

No big memory is touched: addresses are compared; tensors are views of one byte, or of mapped memory that stays empty.
"""

import mmap

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Float4E2M1FN, Float32, Int8, Int32, Int64, Uint8, Uint32
from tilewright.base.errors import LaunchError
from tilewright.cute.runtime import from_dlpack, make_fake_tensor, make_ptr
from tilewright.layout import DynamicInt

TOP = 2**31 - 1
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
M, N = 50_000, 60_001

FROM_SCALARS = {  # name: (function of m and n, their values)
    "compact": (lambda m, n: cute.make_layout((m, n, 4)), (M, N)),
    "compact, static first": (lambda m, n: cute.make_layout((3, m, n, 2)), (M, N)),
    "compact, nested": (lambda m, n: cute.make_layout(((m, 2), (n, 3))), (M, N)),
    "one static extent": (lambda m, n: cute.make_layout((50_000, n, 4)), (M, N)),
    "a great static extent": (lambda m, n: cute.make_layout((m, 2**31 - 1, n)), (M, N)),
    "ordered": (lambda m, n: cute.make_ordered_layout((4, m, n), order=(2, 1, 0)), (M, N)),
    "ordered, nested": (lambda m, n: cute.make_ordered_layout((m, (n, 8)), order=(1, (0, 2))), (M, N)),
    "like": (lambda m, n: cute.make_layout_like(cute.make_layout((m, n, 4), stride=(4, Int64(m) * 4, 1))), (M, N)),
    "size of a layout": (lambda m, n: cute.size(cute.make_layout((m, n))), (M, N)),
    "size of a shape": (lambda m, n: cute.size((m, (n, 2))), (M, N)),
    "size of a mode": (lambda m, n: cute.size(cute.make_layout((4, (m, n))), mode=[1]), (M, N)),
    "cosize": (lambda m, n: cute.cosize(cute.make_layout((m, n), stride=(n, 1))), (M, N)),
    "cosize with gaps": (lambda m, n: cute.cosize(cute.make_layout((4, m), stride=(n, 3))), (TOP, TOP)),
    "product": (lambda m, n: cute.product(((m, 2), n)), (M, N)),
    "product_each": (lambda m, n: cute.product_each(((m, n), (n, 3))), (M, N)),
    "product_like": (lambda m, n: cute.product_like(((m, n), 5), (1, 1)), (M, N)),
    "bytes": (lambda m, n: cute.size_in_bytes(Float32, cute.make_layout(m)), (TOP, 1)),
    "bytes of fours of bits": (lambda m, n: cute.size_in_bytes(Float4E2M1FN, cute.make_layout((m, n))), (M, N)),
    "ceil_div by a power of two": (lambda m, n: cute.ceil_div(m, 128), (TOP, 1)),
    "ceil_div by another": (lambda m, n: cute.ceil_div(m, 96), (TOP, 1)),
    "ceil_div of zero": (lambda m, n: cute.ceil_div(m, 96), (0, 1)),
    "ceil_div of a tuple": (lambda m, n: cute.ceil_div((m, n), (100, 7)), (TOP, TOP - 3)),
    "ceil_div by a number of run time": (lambda m, n: cute.ceil_div(m, n), (TOP, TOP - 1)),
    "ceil_div of a static number": (lambda m, n: cute.ceil_div(4096, n), (1, TOP)),
    "ceil_div of an unsigned number": (lambda m, n: cute.ceil_div(Uint32(m) * 2, 96), (TOP, 1)),
    "ceil_div by a layout's parts": (lambda m, n: cute.ceil_div(m, (4, 2)[0]), (TOP - 1, 1)),
    "round_up": (lambda m, n: cute.round_up(m, 128), (TOP, 1)),
    "round_up by run time": (lambda m, n: cute.round_up(m, n), (TOP, TOP - 1)),
    "round_up of a tuple": (lambda m, n: cute.round_up((m, n), (96, 7)), (TOP, TOP - 5)),
    "tile counts": (lambda m, n: cute.zipped_divide(cute.make_layout((m, n, 4)), (128, 64)).shape, (M, N)),
    "all tiles": (lambda m, n: cute.size(cute.zipped_divide(cute.make_layout((m, n)), (128, 64))), (M, N)),
    "tiled_divide": (lambda m, n: cute.tiled_divide(cute.make_layout((m, n, 4)), (16, 8)), (M - M % 16, N - N % 8)),
    "flat_divide": (lambda m, n: cute.flat_divide(cute.make_layout((m, n, 4)), (16, 8)), (M - M % 16, N - N % 8)),
    "logical_product": (lambda m, n: cute.logical_product(cute.make_layout((m, n)), cute.make_layout((3, 2))), (M, N)),
    "coalesce": (lambda m, n: cute.coalesce(cute.make_layout((m, n, 4)))(Int64(m) * n * 3), (M, N)),
    "coordinate to index": (lambda m, n: cute.crd2idx((7, 49_000), (m, n)), (M, N)),
    "coordinate of run time": (lambda m, n: cute.make_layout((m, n))((m - 1, n - 1)), (M, N)),
    "row of a static layout": (lambda m, n: cute.make_layout((2**29 + 1, 4), stride=(4, 1))((m, 0)), (2**29, 1)),
    "row of a static layout with gaps": (lambda m, n: cute.make_layout(m, stride=2**20)(n), (M, M - 1)),
    "index to coordinate": (lambda m, n: cute.idx2crd(Int64(m) * n - 1, (m, n)), (M, N)),
    "round trip": (lambda m, n: cute.crd2idx(cute.idx2crd(Int64(m) * n - 1, (m, n)), (m, n)), (M, N)),
    "identity": (lambda m, n: cute.domain_offset((m, n), cute.make_identity_tensor((m, n)))[0, 0], (TOP, TOP)),
    "tile of an identity": (
        lambda m, n: cute.local_tile(cute.make_identity_tensor((m,)), (96,), (cute.ceil_div(m, 96) - 1,))[95],
        (TOP, 1),
    ),
    "slice": (lambda m, n: cute.slice_(cute.make_layout((m, n, 4)), (None, 0, None)), (M, N)),
    "recast": (lambda m, n: cute.recast_layout(8, 32, cute.make_layout((m, n), stride=(1, m))), (M, N)),
    "composed": (
        lambda m, n: cute.composition(cute.make_layout((m, n, 4)), cute.make_layout((m, n)))((m - 1, n - 1)),
        (M, N),
    ),
}


def numbers(value):
    """All the numbers in a number, tuple or layout, in order."""
    if isinstance(value, cute.Layout):
        return numbers(value.shape) + numbers(value.stride)
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in numbers(item)]
    return [value]


def exact(make, m, n):
    """What `make` gives for Python's integers, which have no limit."""

    class Whole(int):
        """In place of Int64 and Uint32: exact."""

    scope = make.__globals__
    kept = scope["Int64"], scope["Uint32"]
    scope["Int64"] = scope["Uint32"] = Whole
    try:
        return [int(leaf) for leaf in numbers(make(m, n))]
    finally:
        scope["Int64"], scope["Uint32"] = kept


@pytest.fixture(scope="module", params=["host", "kernel"])
def derived(request):
    """What each function gives for numbers of run time, by name; one program computes all of them."""
    counts = {name: len(exact(make, *given)) for name, (make, given) in FROM_SCALARS.items()}
    total = sum(counts.values())

    @cute.jit
    def write(out: cute.Tensor, given: cute.Tensor):
        place = 0
        for index, (make, _) in enumerate(FROM_SCALARS.values()):
            for leaf in numbers(make(given[2 * index], given[2 * index + 1])):
                out[place] = Int64(leaf)
                place += 1

    @cute.kernel
    def kernel(out: cute.Tensor, given: cute.Tensor):
        write(out, given)

    @cute.jit
    def launch(out: cute.Tensor, given: cute.Tensor):
        kernel(out, given).launch(grid=1, block=1)

    out = np.full(total, -1, np.int64)
    (write if request.param == "host" else launch)(
        out, np.array([v for _, g in FROM_SCALARS.values() for v in g], np.int32)
    )
    found = iter(out.tolist())
    return {name: [next(found) for _ in range(count)] for name, count in counts.items()}


@pytest.mark.parametrize("name", FROM_SCALARS)
def test_from_scalars_of_run_time(derived, name):
    make, given = FROM_SCALARS[name]
    assert derived[name] == exact(make, *given)


def test_ceil_div_keeps_the_sign():
    @cute.jit
    def f(m: Int32, out: cute.Tensor):
        out[0] = cute.ceil_div(m, 4)
        out[1] = cute.ceil_div(m, 3)

    for m in (-9, -8, -1, 0, 1, 8, -(2**31) + 1):
        out = np.zeros(2, np.int32)
        f(m, out)
        assert out.tolist() == [-(-m // 4), -(-m // 3)]


# Tensors as arguments: the call picks the form


def wide_view(dtype, shape, strides=None):
    """A tensor of the emulator's memory that says it is large; every element is the same byte or so."""
    one = np.zeros(1, dtype)
    return np.lib.stride_tricks.as_strided(one, shape, strides or (0,) * len(shape))


@pytest.fixture(scope="module")
def sparse():
    """3 GiB of mapped memory, of which only touched pages exist."""
    memory = mmap.mmap(-1, 3 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    return np.frombuffer(memory, np.int8)


def facts(x):
    """Numbers that programs derive from a tensor of two modes, by the layout algebra and by hand."""
    tiled = cute.zipped_divide(x, (128, 64))
    flat = cute.make_layout(x.shape)
    i, j = x.shape[0] - 1, x.shape[1] - 1
    yield from (x.shape[0], x.shape[1], cute.size(x), cute.size(x, mode=[1]), x.shape[0] * x.shape[1])
    yield from (cute.size(tiled), cute.size(tiled, mode=[1]), *cute.ceil_div(x.shape, (128, 64)))
    yield from (cute.round_up(x.shape[0], 96), cute.round_up(cute.size(x), 4096), cute.ceil_div(cute.size(x), 96))
    yield from (cute.cosize(flat), flat((i, j)), cute.crd2idx((i, j), x.shape), cute.size(flat))
    yield from (x.shape[0] * cute.ceil_div(x.shape[1], 64), cute.size((x.shape[0], (x.shape[1], 3))))
    ordered = cute.make_ordered_layout((x.shape[0], x.shape[1], 2), order=(1, 0, 2))
    yield from (ordered.stride[0], ordered.stride[2], cute.size(ordered))
    last = cute.local_tile(cute.make_identity_tensor(x.shape), (128, 64), (i // 128, j // 64))
    yield from last[0, 0]
    yield from last[127, 63]


def exact_facts(n, m):
    """The same by hand, in Python's integers."""

    def up(value, step):
        return -(-value // step)

    size, tiles = n * m, up(n, 128) * up(m, 64)
    corner = (n - 1) // 128 * 128, (m - 1) // 64 * 64
    return [
        n, m, size, m, size, tiles * 8192, tiles, up(n, 128), up(m, 64), up(n, 96) * 96, up(size, 4096) * 4096,
        up(size, 96), size, size - 1, size - 1, size, n * up(m, 64), size * 3, m, size, 2 * size,
        *corner, corner[0] + 127, corner[1] + 63,
    ]  # fmt: skip


@cute.kernel
def write_facts(x: cute.Tensor, out: cute.Tensor):
    for place, number in enumerate(facts(x)):
        out[place] = Int64(number)


@cute.jit
def in_kernel(x: cute.Tensor, out: cute.Tensor):
    write_facts(x, out).launch(grid=1, block=1)


@cute.jit
def on_host(x: cute.Tensor, out: cute.Tensor):
    for place, number in enumerate(facts(x)):
        out[place] = Int64(number)


COUNT = len(exact_facts(1, 1))
SHAPES = [(3, 5), (1, 1), (128, 64), (46_340, 46_318), (46_341, 46_341), (50_000, 60_001), (2**31 - 1, 1),
          (1, 2**31 - 1), (2**31 - 2**20, 1), (2**32 + 5, 3), (3, 2**33)]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
@pytest.mark.parametrize("run", [on_host, in_kernel])
def test_a_compiled_function_takes_every_size(run, dtype):
    out = np.zeros(COUNT, np.int64)
    compiled = cute.compile(run, wide_view(dtype, (3, 5)), out, checks=False)
    assert compiled.wide_form.executor is None
    forms = set()
    for n, m in SHAPES:
        out[:] = -1
        compiled(wide_view(dtype, (n, m)), out)
        assert out.tolist() == exact_facts(n, m), (n, m)
        forms.add(compiled.wide_form.executor)
    assert len(forms) == 2  # none until it was needed, then one that is kept
    before = compiled.wide_form.executor
    compiled(wide_view(dtype, (50_000, 60_001)), out)
    assert compiled.wide_form.executor is before


@pytest.mark.parametrize("shape", [(3, 5), (46_340, 46_318), (50_000, 60_001), (2**33, 3)])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: x,
        from_dlpack,
        lambda x: from_dlpack(x).mark_layout_dynamic(),
        lambda x: from_dlpack(x, use_32bit_stride=True).mark_layout_dynamic(),
    ],
    ids=["array", "static", "dynamic", "dynamic with strides of 32 bits"],
)
def test_direct_calls(wrap, shape):
    out = np.zeros(COUNT, np.int64)
    x = wide_view(np.int8, shape, (shape[1], 1) if shape[1] * shape[0] < 2**40 else None)
    on_host(wrap(x), out)
    assert out.tolist() == exact_facts(*shape)


@cute.jit
def one_size(x: cute.Tensor, out: cute.Tensor):
    out[0] = cute.size(x)


def test_fake_tensors(sparse):
    n, m = cute.sym_int(), cute.sym_int()
    fake = make_fake_tensor(Int8, (n, m), stride=(cute.sym_int64(), 1))
    out = np.zeros(COUNT, np.int64)
    compiled = cute.compile(in_kernel, fake, out, checks=False)
    for shape in ((3, 5), (50_000, 60_001)):
        compiled(sparse[: shape[0] * shape[1]].reshape(shape), out)
        assert out.tolist() == exact_facts(*shape)
    wide = [make_fake_tensor(dtype, (cute.sym_int64(),), stride=(1,)) for dtype in (Int8, Int64)]
    fixed = cute.compile(one_size, *wide, checks=False)
    assert fixed.wide_form is None  # all of it is of 64 bits


def test_tuples_of_tensors_and_stand_ins_for_their_memory():
    @cute.jit
    def f(pair: tuple, out: cute.Tensor):
        out[0] = cute.size(pair[0]) + cute.size(pair[1])

    out = np.zeros(1, np.int64)
    small = wide_view(np.int8, (2, 3))
    compiled = cute.compile(f, (small, small), out)
    for shape in ((4, 5), (50_000, 50_000)):
        compiled((small, wide_view(np.int8, shape)), out)
        assert out[0] == 6 + shape[0] * shape[1]


def ptx_of(executor):
    return "\n".join(kernel.stages["ptx"] for kernel in executor.kernels.values())


def test_the_32_bit_form_multiplies_in_32_bits():
    @cute.kernel
    def guarded(x: cute.Tensor, hit: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if b * 128 + t < cute.size(x):
            hit[0] = 1

    @cute.jit
    def run(x: cute.Tensor, hit: cute.Tensor):
        guarded(x, hit).launch(grid=1, block=32)

    hit = np.zeros(1, np.int32)
    compiled = cute.compile(run, wide_view(np.int8, (3, 5)), hit, checks=False)
    compiled(wide_view(np.int8, (50_000, 50_000)), hit)
    assert hit[0] == 1
    assert "mul.lo.s64" not in ptx_of(compiled)
    assert "setp.lt.s64" not in ptx_of(compiled)
    assert "mul.lo.s64" in ptx_of(compiled.wide_form.executor)


def test_memory_beyond_31_bits(sparse):
    """Elements at both ends, by index, slice, tile, partition and copy; the tensor's own memory stays small."""

    @cute.kernel
    def move(x: cute.Tensor, out: cute.Tensor):
        n, m = x.shape
        t, _, _ = cute.arch.thread_idx()
        if t == 0:
            x[n - 1, m - 1] = Int8(1)
            x[n - 1, None][m - 2] = Int8(2)
            tile = cute.local_tile(x, (1, 4), (n - 1, (m - 8) // 4))
            tile[0, 1] = Int8(3)
            part = cute.zipped_divide(x, (1, 4))[(0, None), (n - 2, (m - 8) // 4)]
            part.fill(Int8(4))
            moved = cute.domain_offset((n - 3, 0), x)
            moved[0, 5] = Int8(5)
            x[(n - 1) + n * (m - 16)] = Int8(6)
        mine = cute.local_partition(cute.local_tile(x, (1, 32), (n - 4, 0)), cute.make_layout((1, 32)), t)
        mine[0] = Int8(7)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Int8)
        source = cute.local_tile(x, (1, 16), (n - 4, 0))
        target = cute.local_tile(out, (1, 16), (0, 0))
        cute.arch.sync_threads()
        if t == 0:
            cute.copy(atom, source, target)

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor):
        move(x, out).launch(grid=1, block=32)

    n, m = 50_000, 50_016
    x = sparse[: n * m].reshape(n, m)
    out = np.zeros((1, 16), np.int8)
    compiled = cute.compile(run, np.zeros((8, 64), np.int8), out, checks=False)
    compiled(x, out)
    base = (m - 8) // 4 * 4
    assert x[n - 1, [m - 1, m - 2, base + 1, m - 16]].tolist() == [1, 2, 3, 6]
    assert x[n - 2, base : base + 4].tolist() == [4] * 4
    assert x[n - 3, 5] == 5
    assert x[n - 4, :32].tolist() == [7] * 32
    assert out.tolist() == [[7] * 16]
    assert not x[:4, :64].any()
    x[n - 4 :] = 0


def test_negative_strides_that_reach_far(sparse):
    @cute.jit
    def write(x: cute.Tensor):
        x[x.shape[0] - 1, 3] = Int8(9)

    x = sparse[: 40 * (1 << 26)].reshape(40, 1 << 26)[::-1, :8]
    compiled = cute.compile(write, np.zeros((4, 8), np.int8)[::-1], checks=False)
    compiled(x)
    assert x[39, 3] == 9
    assert compiled.wide_form.executor is not None
    x[39, 3] = 0


def test_packed_elements():
    """Addresses count bytes: of four bits, half the elements."""

    @cute.jit
    def f(p: cute.Pointer, m: Int32, n: Int32, out: cute.Tensor):
        x = cute.make_tensor(p, cute.make_layout((cute.assume(m, divby=2), n, 4)))
        for plane in cutlass.range_constexpr(4):
            out[plane] = cute.slice_(x, (0, None, plane)).iterator.toint() - p.toint()
        out[4] = cute.domain_offset((cute.assume(m, divby=2) - 2, n - 1, 3), x).iterator.toint() - p.toint()

    out = np.zeros(5, np.int64)
    buffer = np.zeros(64, np.uint8)
    f(make_ptr(Float4E2M1FN, buffer.ctypes.data, cute.AddressSpace.gmem), 50_000, 60_000, out)
    plane = 50_000 * 60_000
    assert out.tolist() == [k * plane // 2 for k in range(4)] + [(4 * plane - 2) // 2]


def test_offsets_of_static_coordinates_by_strides_of_run_time():
    @cute.kernel
    def planes(p: cute.Pointer, n: Int32, out: cute.Tensor):
        x = cute.make_tensor(p, cute.make_layout((4, 2), stride=(n, 1)))
        out[0] = x[3, None].iterator.toint() - p.toint()
        out[1] = cute.local_tile(x, (2, 2), (1, 0)).iterator.toint() - p.toint()
        out[2] = cute.flat_divide(x, (2, 1))[(None, None, 1, 1)].iterator.toint() - p.toint()

    @cute.jit
    def run(p: cute.Pointer, n: Int32, out: cute.Tensor):
        planes(p, n, out).launch(grid=1, block=1)

    out, n = np.zeros(3, np.int64), 2**31 - 1
    buffer = np.zeros(64, np.uint8)
    run(make_ptr(Uint8, buffer.ctypes.data, cute.AddressSpace.gmem), n, out)
    assert out.tolist() == [3 * n, 2 * n, 2 * n + 1]


def test_a_thread_value_partition_of_run_time():
    @cute.kernel
    def parts(p: cute.Pointer, m: Int32, n: Int32, out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        x = cute.make_tensor(p, cute.make_layout((m, n), stride=(n, 1)))
        tiler, layout = cute.make_layout_tv(
            cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((2, 4), stride=(4, 1))
        )
        tile = cute.zipped_divide(x, tiler)[(None, None), (m // 8 - 1, n // 32 - 1)]
        mine = cute.composition(tile, layout)[t, None]
        out[t] = mine.iterator.toint() - p.toint()

    @cute.jit
    def run(p: cute.Pointer, m: Int32, n: Int32, out: cute.Tensor):
        parts(p, m, n, out).launch(grid=1, block=32)

    out, m, n = np.zeros(32, np.int64), 65_536, 98_304
    buffer = np.zeros(64, np.uint8)
    run(make_ptr(Uint8, buffer.ctypes.data, cute.AddressSpace.gmem), m, n, out)
    assert out.tolist() == [(m - 8 + t // 8 * 2) * n + n - 32 + t % 8 * 4 for t in range(32)]


# Launches


def test_grids():
    @cute.kernel
    def seen(out: cute.Tensor):
        out[0] = cute.arch.grid_dim()[0]

    @cute.jit
    def run(m: Int32, n: Int32, out: cute.Tensor):
        seen(out).launch(grid=cute.ceil_div(cute.size((m, n)), 2**30), block=1)

    @cute.jit
    def too_many(m: Int32, n: Int32, out: cute.Tensor):
        seen(out).launch(grid=cute.size((m, n)), block=1)

    out = np.zeros(1, np.int32)
    run(M, N, out)
    assert out[0] == -(-M * N // 2**30)
    with pytest.raises(LaunchError, match="the grid of the launch does not fit 31 bits along x"):
        too_many(M, N, out)
    too_many(1, 3, out)
    assert out[0] == 3


def test_sizes_given_to_kernels_that_take_32_bits():
    @cute.kernel
    def seen(n: Int32, out: cute.Tensor):
        out[0] = n

    @cute.jit
    def run(m: Int32, n: Int32, out: cute.Tensor):
        seen(cute.size((m, n)), out).launch(grid=1, block=1)

    out = np.zeros(1, np.int32)
    run(3, 4, out)
    assert out[0] == 12
    with pytest.raises(LaunchError, match="argument n of a kernel does not fit Int32"):
        run(M, N, out)


def test_what_is_known_of_extents_holds_in_kernels_and_is_forgotten_in_loops():
    """A tensor that another takes the place of in a loop is known by neither's size."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, sizes: tuple, out: cute.Tensor):
        out[0] = Int64(cute.size(sizes))
        current = x
        for _ in cutlass.range(2):
            current = y
        out[1] = Int64(cute.size((current.shape[0], y.shape[0])))
        assert isinstance(cute.size(x), DynamicInt)

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
        kernel(x, y, (x.shape[0], x.shape[1]), out).launch(grid=1, block=1)

    out = np.zeros(2, np.int64)
    compiled = cute.compile(run, wide_view(np.int8, (3, 5)), wide_view(np.int8, (3, 5)), out, checks=False)
    compiled(wide_view(np.int8, (30_000, 60_000)), wide_view(np.int8, (60_000, 30_000)), out)
    assert out.tolist() == [1_800_000_000, 3_600_000_000]
    assert compiled.wide_form.executor is None


def test_an_error_of_the_64_bit_form_says_so():
    @cute.jit
    def narrow_only(x: cute.Tensor, out: cute.Tensor):
        n = Int32(0)
        if out[0] == 0:
            n = x.shape[0]
        out[0] = n

    out = np.zeros(1, np.int32)
    compiled = cute.compile(narrow_only, wide_view(np.int8, (3, 5)), out)
    compiled(wide_view(np.int8, (3, 5)), out)
    assert out[0] == 3
    with pytest.raises(cutlass.CompileError, match="the 64-bit form, which a tensor of this call needs"):
        compiled(wide_view(np.int8, (50_000, 50_000)), out)


def test_user_arithmetic_keeps_its_type():
    @cute.jit
    def f(m: Int32, n: Int32, out: cute.Tensor):
        product = m * n
        assert type(product) is Int32
        out[0] = product

    out = np.zeros(1, np.int64)
    f(50_000, 50_000, out)
    assert out[0] == 50_000 * 50_000 - 2**32
