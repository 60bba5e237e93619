"""Tiled copies and tiled MMAs as layouts: every thread's part against its definition, element by element."""

import itertools
import random

import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.base.errors import CompileError
from tilewright.cute.nvgpu import cpasync, warp
from tilewright.lang.atoms.partition import part_of
from tilewright.layout import Layout, flatten_to_tuple, right_inverse, size
from tilewright.layout.partition import mma_operand, retile, thread_values

COPY_CASES = [
    # threads, values, extents of the tensor
    (Layout((4, 8), (8, 1)), Layout((1, 4)), (8, 64)),
    (Layout((4, 8), (8, 1)), Layout((2, 4), (4, 1)), (16, 32)),
    (Layout((8, 4)), Layout((4, 1)), (64, 8)),
    (Layout((8, 4)), Layout((4, 2)), (32, 24)),
    (Layout((2, 16), (16, 1)), Layout((4, 1)), (8, 16)),
    (Layout((32,)), Layout((4,)), (256,)),
    (Layout((4, 4, 2), (1, 4, 16)), Layout((1, 2, 4), (0, 4, 1)), (8, 16, 8)),
]


def universal(dtype=cutlass.Float32, bits=0):
    return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype, num_bits_per_copy=bits)


def copy_part(tiled, thread, layout, side="src"):
    """The indices of `thread`, in order, of a tensor of that layout."""
    atom_side = getattr(tiled, f"layout_{side}_tv")
    cut = thread_values(layout, tiled.tile, tiled._transformed(atom_side))
    threads, values = cut
    return [cut((thread, value)) for value in range(size(values))] if size(threads) > thread else []


def mma_part(tiled, operand, thread, layout):
    cut = mma_operand(layout, *tiled._cut(operand))
    first, second = {"A": (1, 3), "B": (2, 3), "C": (1, 2)}[operand]
    vmnk = tiled.thr_layout_vmnk.get_flat_coord(thread)
    return [cut(((vmnk[0], (vmnk[first], vmnk[second])), value)) for value in range(size(cut[1]))]


def mma(dtype=cutlass.Float16, acc=cutlass.Float32, shape=(16, 8, 16), atoms=(2, 2, 1), permutation=None):
    return cute.make_tiled_mma(warp.MmaF16BF16Op(dtype, acc, shape), atoms, permutation_mnk=permutation)


def check_deal(threads, values, tensor):
    """Every element belongs to the thread and value that the layouts name."""
    tiled = cute.make_tiled_copy_tv(universal(), threads, values)
    tile = [t * v for t, v in zip(threads.shape, values.shape, strict=True)]
    expected = {thread: [] for thread in range(size(threads))}
    for point in itertools.product(*map(range, tensor.shape)):
        inside = [p % t for p, t in zip(point, tile, strict=True)]
        thread = threads(tuple(p // v for p, v in zip(inside, values.shape, strict=True)))
        value = values(tuple(p % v for p, v in zip(inside, values.shape, strict=True)))
        rest = [p // t for p, t in zip(point, tile, strict=True)]
        expected[thread].append((tuple(reversed(rest)), value, tensor(point)))
    for thread, entries in expected.items():
        assert copy_part(tiled, thread, tensor) == [index for *_, index in sorted(entries)]


@pytest.mark.parametrize(("threads", "values", "extents"), COPY_CASES)
def test_a_tiled_copy_deals_each_element_to_the_thread_that_its_layouts_name(threads, values, extents):
    check_deal(threads, values, Layout(extents))


def shuffled(generator, shape):
    """A compact layout of the shape, modes in a random order."""
    order = list(range(len(shape)))
    generator.shuffle(order)
    strides, step = [0] * len(shape), 1
    for mode in order:
        strides[mode], step = step, step * shape[mode]
    return Layout(tuple(shape), tuple(strides))


def test_random_tiled_copies_deal_as_their_layouts_say():
    generator = random.Random(0)
    for _ in range(60):
        rank = generator.choice([1, 2, 2, 3])
        grid = [generator.choice([1, 2, 3, 4, 5, 8]) for _ in range(rank)]
        reach = [generator.choice([1, 2, 3, 4]) for _ in range(rank)]
        extents = [g * v * generator.choice([1, 2, 3]) for g, v in zip(grid, reach, strict=True)]
        check_deal(*(shuffled(generator, shape) for shape in (grid, reach, extents)))


def test_modes_of_a_part_are_instruction_values_rest_values_and_rests_of_the_tile():
    tiled = cute.make_tiled_copy_tv(universal(bits=128), Layout((4, 8), (8, 1)), Layout((2, 4), (4, 1)))
    part = part_of(Layout((16, 64, 3)), "partition", tiled.tile, tiled._transformed(tiled.layout_src_tv), 5)
    assert part.shape == ((4, 2), 2, 2, 3)
    assert tiled.size == 32 and tiled.tile == (8, 32) and tiled.tiler_mn == (Layout(8), Layout(32))
    assert tiled.layout_src_tv_tiled.shape[0] == tiled.layout_tv_tiled.shape[0]


@pytest.mark.parametrize("shape", [(16, 8, 8), (16, 8, 16)])
def test_ldmatrix_and_the_mma_agree_on_who_holds_what(shape):
    """Each lane's registers after ldmatrix are its fragment of A, by PTX's two independent descriptions."""
    tiled = mma(shape=shape, atoms=(1, 1, 1))
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4 if shape[2] == 16 else 2), cutlass.Float16)
    copy = cute.make_tiled_copy_A(atom, tiled)
    tile = Layout((shape[0], shape[2]))
    for lane in range(32):
        assert sorted(copy_part(copy, lane, tile, "dst")) == sorted(mma_part(tiled, "A", lane, tile))
        rows = {index % shape[0] for index in copy_part(copy, lane, tile, "src")}
        assert rows == {lane % 8 + 8 * (lane // 8 % 2)}


def ldmatrix(operand, tiled):
    """An ldmatrix that fits the values of the operand's tile."""
    count = size(getattr(tiled, f"tv_layout_{operand}_tiled")[1]) // 2
    return cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16) if count % 4 == 0 else None


MMA_CASES = [
    ((16, 8, 16), (1, 1, 1), None),
    ((16, 8, 16), (2, 2, 1), None),
    ((16, 8, 16), (2, 2, 1), (32, 32, 16)),
    ((16, 8, 16), (4, 1, 1), (64, 16, 16)),
    ((16, 8, 8), (1, 4, 1), (16, 64, 16)),
    ((16, 8, 16), (2, 2, 1), (32, Layout((8, 2, 2), (1, 16, 8)), 16)),
    ((16, 8, 16), (1, 2, 2), None),
    ((16, 8, 8), (2, 2, 1), (64, 64, 8)),
]


@pytest.mark.parametrize(("shape", "atoms", "permutation"), MMA_CASES)
def test_every_operand_element_is_held_by_as_many_threads_as_share_it(shape, atoms, permutation):
    tiled = mma(shape=shape, atoms=atoms, permutation=permutation)
    sharing = {"A": atoms[1], "B": atoms[0], "C": atoms[2]}
    for operand, (first, second) in {"A": (0, 2), "B": (1, 2), "C": (0, 1)}.items():
        extents = tuple(2 * tiled.tile_size(mode) for mode in (first, second))
        held = [0] * (extents[0] * extents[1])
        for thread in range(tiled.size):
            for index in mma_part(tiled, operand, thread, Layout(extents)):
                held[index] += 1
        assert set(held) == {sharing[operand]}


@pytest.mark.parametrize(("shape", "atoms", "permutation"), MMA_CASES)
def test_threads_multiply_rows_of_a_by_the_rows_of_b_that_their_sums_need(shape, atoms, permutation):
    """The products a thread's warp computes, as (m, n, k), are those of the elements of C it holds."""
    tiled = mma(shape=shape, atoms=atoms, permutation=permutation)
    m, n, k = (tiled.tile_size(mode) for mode in range(3))
    rows, columns, sums = {}, {}, {}
    for thread in range(tiled.size):
        warp_of = thread // 32
        rows.setdefault(warp_of, set()).update(i % m for i in mma_part(tiled, "A", thread, Layout((m, k))))
        columns.setdefault(warp_of, set()).update(i % n for i in mma_part(tiled, "B", thread, Layout((n, k))))
        sums.setdefault(warp_of, set()).update(divmod(i, m) for i in mma_part(tiled, "C", thread, Layout((m, n))))
    for number, pairs in sums.items():
        assert pairs == set(itertools.product(columns[number], rows[number]))


@pytest.mark.parametrize("operand", ["A", "B", "C"])
@pytest.mark.parametrize(("shape", "atoms", "permutation"), MMA_CASES)
def test_retiled_fragments_and_partitioned_tensors_name_the_same_elements(operand, shape, atoms, permutation):
    tiled = mma(shape=shape, atoms=atoms, permutation=permutation)
    make = getattr(cute, f"make_tiled_copy_{operand}")
    for atom in (universal(cutlass.Float16), universal(cutlass.Float16, 32), ldmatrix(operand, tiled)):
        if atom is None:
            continue
        copy = make(atom, tiled)
        extents = tuple(2 * int(size(mode)) for mode in copy.tiler_mn)
        for thread in (0, 1, 37 % tiled.size, tiled.size - 1):
            part = mma_part(tiled, operand, thread, Layout(extents))
            shape_ = getattr(tiled, f"partition_shape_{operand}")(extents)
            retiled = retile(Layout(shape_), *copy._retiling(Layout(shape_)))
            seen = [part[retiled(number)] for number in range(size(retiled))]
            assert seen == copy_part(copy, thread, Layout(extents), "dst")


FED_BY_LDMATRIX = [
    (operand, *case)
    for operand in "ABC"
    for case in MMA_CASES
    if ldmatrix(operand, mma(shape=case[0], atoms=case[1], permutation=case[2])) is not None
]


@pytest.mark.parametrize(("operand", "shape", "atoms", "permutation"), FED_BY_LDMATRIX)
def test_lanes_name_the_rows_whose_elements_ldmatrix_hands_out(operand, shape, atoms, permutation):
    """Lane l names row l % 8 of matrix l // 8; its element c goes to lane 4 (l % 8) + c // 2."""
    tiled = mma(shape=shape, atoms=atoms, permutation=permutation)
    atom = ldmatrix(operand, tiled)
    copy = getattr(cute, f"make_tiled_copy_{operand}")(atom, tiled)
    tile = Layout(tuple(int(size(mode)) for mode in copy.tiler_mn))
    held = [copy_part(copy, thread, tile, "dst") for thread in range(copy.size)]
    for thread in range(copy.size):
        first, lane = thread - thread % 32, thread % 32
        for place, index in enumerate(copy_part(copy, thread, tile, "src")):
            number, c = divmod(place, 8)
            owner = first + lane % 8 * 4 + c // 2
            assert index == held[owner][number * 8 + lane // 8 * 2 + c % 2]


def test_a_fragment_keeps_the_values_of_an_instruction_together():
    tiled = mma(permutation=(32, 32, 16))
    for operand in "ABC":
        shape = getattr(tiled, f"partition_shape_{operand}")((64, 64))
        assert size(shape[0]) == tiled.values(operand) == (8 if operand == "A" else 4)


def test_thread_value_layouts_of_the_tile_are_those_of_the_parts():
    tiled = mma(permutation=(32, 32, 16))
    for operand, extents in (("A", (32, 16)), ("B", (32, 16)), ("C", (32, 32))):
        layout = getattr(tiled, f"tv_layout_{operand}_tiled")
        for thread in range(tiled.size):
            whole = [layout((thread, value)) for value in range(size(layout[1]))]
            assert whole == mma_part(tiled, operand, thread, Layout(extents))


def test_a_cotiled_copy_follows_addresses():
    data = Layout((16, 8), (8, 1))
    atom_tv = Layout((32, 4), (4, 1))  # thread t moves addresses 4t to 4t+3
    copy = cute.make_cotiled_copy(universal(bits=128), atom_tv, data)
    for thread in range(32):
        assert [data(i) for i in copy_part(copy, thread, Layout((16, 8)))] == list(range(4 * thread, 4 * thread + 4))


def test_copies_made_from_copies_deal_as_they_do():
    wide = cute.make_tiled_copy_tv(universal(bits=128), Layout((4, 8), (8, 1)), Layout((2, 4), (4, 1)))
    for make in (cute.make_tiled_copy_S, cute.make_tiled_copy_D):
        narrow = make(universal(bits=32), wide)
        for thread in (0, 5, 31):
            assert copy_part(narrow, thread, Layout((8, 32))) == copy_part(wide, thread, Layout((8, 32)))


def test_a_copy_of_one_instruction_of_the_sums_covers_just_those():
    tiled = mma(permutation=(32, 32, 16))
    copy = cute.make_tiled_copy_C_atom(universal(cutlass.Float16, 32), tiled)
    assert size(copy.layout_tv_tiled[1]) == 2
    extents = tuple(int(size(mode)) for mode in copy.tiler_mn)
    taken = sorted(i for thread in range(128) for i in copy_part(copy, thread, Layout((32, 32)))[:2])
    assert extents[0] * extents[1] == len(taken) == 256


def test_atoms_are_values():
    assert universal(bits=128) == universal(bits=128) != universal(bits=64)
    assert mma() == mma() != mma(atoms=(4, 1, 1))
    assert len({mma(), mma(), mma(shape=(16, 8, 8))}) == 2
    assert flatten_to_tuple(mma().thr_layout_vmnk.shape) == (32, 2, 2, 1)
    assert "Shape MNK:   (16, 8, 16)" in str(mma()) and "Tiler MN" in str(
        cute.make_tiled_copy_tv(universal(), Layout(32), Layout(4))
    )
    assert size(right_inverse(mma().thr_layout_vmnk)) == 128


REFUSED = [
    (lambda: universal(bits=24), "a copy of 24 bits of Float32"),
    (lambda: cute.make_copy_atom(3, cutlass.Float32), "3 is no copy operation"),
    (lambda: cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, width=3), "no option 'width'"),
    (lambda: cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float16, num_bits_per_copy=16), "cp.async of 16 bits"),
    (
        lambda: cute.make_copy_atom(
            cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), cutlass.Float16, num_bits_per_copy=64
        ),
        "it copies 128 bits",
    ),
    (lambda: cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.STREAMING), "cache mode STREAMING"),
    (lambda: warp.LdMatrix8x8x16bOp(False, 3), "of 3 matrices"),
    (lambda: warp.LdMatrix8x16x8bOp(True, 4), "no transposed form"),
    (lambda: cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), cutlass.Float32), "elements of 16 bits"),
    (lambda: warp.MmaF16BF16Op(cutlass.Float32, cutlass.Float32, (16, 8, 16)), "MmaF16BF16Op of Float32"),
    (lambda: warp.MmaF16BF16Op(cutlass.BFloat16, cutlass.Float16, (16, 8, 16)), "for these inputs"),
    (lambda: warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 16, 16)), "no mma.sync of Float16"),
    (lambda: cute.nvgpu.MmaUniversalOp(cutlass.Int8), "MmaUniversalOp of Int8"),
    (lambda: cute.make_tiled_mma(cute.nvgpu.CopyUniversalOp()), "is no MMA operation"),
    (lambda: cute.make_mma_atom(1), "is no MMA operation"),
    (lambda: mma(atoms=(1, 1)), "three modes"),
    (lambda: mma(permutation=(24, 32, 16)), "no multiple of the atoms side by side"),
    (
        lambda: cute.make_tiled_copy_tv(universal(bits=128), Layout(32), Layout(2)),
        "2 values, of which one instruction takes 4",
    ),
    (
        lambda: cute.make_tiled_copy_tv(
            cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16), Layout(16), Layout(8)
        ),
        "16 threads, of which one instruction takes 32",
    ),
    (lambda: cute.make_cotiled_copy(universal(), Layout((32, 4), (4, 1)), Layout((4, 8), (8, 1))), "outside the data"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_no_instruction_does_is_refused(make, message):
    with pytest.raises(CompileError) as caught:
        make()
    assert message in str(caught.value)
