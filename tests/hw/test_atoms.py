"""Tables of atoms: every map is a bijection, and agrees with the fragments as PTX states them."""

from itertools import product

import pytest

from tilewright.base.errors import LayoutError
from tilewright.hw.atoms import async_copy, matrix_copy, mma_narrow, mma_sync, tcgen05, wgmma
from tilewright.layout import Layout, bank_conflicts, is_bijective, size


@pytest.mark.parametrize("form", mma_sync.FORMS.values(), ids=lambda form: form.name)
def test_mma_sync_maps_are_bijections(form):
    m, n, k = form.shape
    for layout, elements in ((form.a, m * k), (form.b, n * k), (form.c, m * n)):
        assert is_bijective(layout) and size(layout) == elements
        assert size(layout, 0) == 32 and sorted(layout(i) for i in range(elements)) == list(range(elements))


def place(layout, lane, value, rows):
    index = layout(lane, value)
    return index % rows, index // rows


@pytest.mark.parametrize("lane", range(32))
def test_fragments_of_m16n8k16_as_ptx_states_them(lane):
    """ "Matrix Fragments for mma.m16n8k16 with floating point type": groupID and threadID_in_group."""
    form = mma_sync.FORMS[(16, 8, 16), "f16", "f16", "f32"]
    group, member = lane >> 2, lane % 4
    for i in range(8):
        row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
        column = member * 2 + (i & 1) if i < 4 else member * 2 + (i & 1) + 8
        assert place(form.a, lane, i, 16) == (row, column)
    for i in range(4):
        row = member * 2 + (i & 1) if i < 2 else member * 2 + (i & 1) + 8
        assert place(form.b, lane, i, 8) == (group, row)
        assert place(form.c, lane, i, 16) == (group if i < 2 else group + 8, member * 2 + (i & 1))


@pytest.mark.parametrize("lane", range(32))
def test_fragments_of_m16n8k32_as_ptx_states_them(lane):
    """ "Matrix Fragments for mma.m16n8k32": 8-bit types."""
    form = mma_sync.FORMS[(16, 8, 32), "s8", "s8", "s32"]
    group, member = lane >> 2, lane % 4
    for i in range(16):
        row = group if 0 <= i < 4 or 8 <= i < 12 else group + 8
        column = member * 4 + (i & 3) if i < 8 else member * 4 + (i & 3) + 16
        assert place(form.a, lane, i, 16) == (row, column)
    for i in range(8):
        row = member * 4 + (i & 3) if i < 4 else member * 4 + (i & 3) + 16
        assert place(form.b, lane, i, 8) == (group, row)


@pytest.mark.parametrize("lane", range(32))
def test_fragments_of_tf32_and_f64_as_ptx_states_them(lane):
    group, member = lane >> 2, lane % 4
    tf32 = mma_sync.FORMS[(16, 8, 8), "tf32", "tf32", "f32"]
    for i, (row, column) in enumerate(
        [(group, member), (group + 8, member), (group, member + 4), (group + 8, member + 4)]
    ):
        assert place(tf32.a, lane, i, 16) == (row, column)
    assert [place(tf32.b, lane, i, 8) for i in (0, 1)] == [(group, member), (group, member + 4)]
    f64 = mma_sync.FORMS[(8, 8, 4), "f64", "f64", "f64"]
    assert place(f64.a, lane, 0, 8) == (group, member) and place(f64.b, lane, 0, 8) == (group, member)
    assert [place(f64.c, lane, i, 8) for i in (0, 1)] == [(group, 2 * member), (group, 2 * member + 1)]


def test_narrow_maps_are_bijections():
    assert len({(f.shape, f.a_type, f.b_type, f.vector, f.chip) for f in mma_narrow.FORMS}) == len(mma_narrow.FORMS)
    for form in mma_narrow.FORMS:
        m, n, k = form.shape
        for layout, elements in ((form.a, m * k), (form.b, n * k), (form.c, m * n)):
            assert is_bijective(layout) and size(layout) == elements and size(layout, 0) == 32


@pytest.mark.parametrize("lane", range(32))
def test_fragments_of_4_bit_and_1_bit_types_as_ptx_states_them(lane):
    """ "Matrix Fragments for mma.m16n8k64" and "mma.m16n8k256", "mma.m8n8k32"."""
    forms = {(f.shape, f.a_type): f for f in mma_narrow.FORMS if f.a_type == f.b_type and not f.vector}
    group, member = lane >> 2, lane % 4
    s4 = forms[(16, 8, 64), "s4"]
    for i in range(32):
        row = group if 0 <= i < 8 or 16 <= i < 24 else group + 8
        assert place(s4.a, lane, i, 16) == (row, member * 8 + (i & 7) + (32 if i >= 16 else 0))
    for i in range(16):
        assert place(s4.b, lane, i, 8) == (group, member * 8 + (i & 7) + (32 if i >= 8 else 0))
    b1 = forms[(16, 8, 256), "b1"]
    for i in range(128):
        row = group if i < 32 or 64 <= i < 96 else group + 8
        assert place(b1.a, lane, i, 16) == (row, member * 32 + (i & 31) + (128 if i >= 64 else 0))
    small = forms[(8, 8, 32), "s4"]
    assert [place(small.a, lane, i, 8) for i in range(8)] == [(group, member * 8 + i) for i in range(8)]
    assert [place(small.c, lane, i, 8) for i in range(2)] == [(group, member * 2 + i) for i in range(2)]


def test_scale_factors_cover_their_rows():
    for form in mma_narrow.FORMS:
        if not form.vector:
            continue
        m, n, k = form.shape
        assert k % form.vector == 0
        rows = {lane: place(form.scale_a, lane, 0, m)[0] for lane in range(32)}
        assert rows == {lane: lane // 4 + 8 * (lane % 2) for lane in range(32)} and set(rows.values()) == set(range(m))
        columns = {lane: place(form.scale_b, lane, 0, n)[0] for lane in range(32)}
        assert columns == {lane: lane // 4 for lane in range(32)}
        assert [place(form.scale_a, 5, i, m)[1] for i in range(k)] == list(range(k))


@pytest.mark.parametrize("count", matrix_copy.MATRICES)
@pytest.mark.parametrize("transpose", [False, True])
def test_ldmatrix(count, transpose):
    registers = matrix_copy.registers(count, transpose)
    assert is_bijective(registers) and size(registers) == count * 1024
    for lane, matrix, half in product(range(32), range(count), range(2)):
        row, column = lane // 4, 2 * (lane % 4) + half
        if transpose:
            row, column = column, row
        for bit in range(16):
            assert registers(lane, matrix * 32 + half * 16 + bit) == matrix * 1024 + row * 128 + column * 16 + bit
    rows = matrix_copy.row_addresses(count)
    for lane in range(32):
        assert [rows(lane, bit) for bit in (0, 127)] == [lane % (8 * count) * 128, lane % (8 * count) * 128 + 127]


@pytest.mark.parametrize("a_type", wgmma.TYPES)
def test_wgmma_maps_are_bijections(a_type):
    for n in (8, 16, 24, 64, 128, 256):
        m, _, k = wgmma.shape(a_type, n)
        bits = wgmma.TYPES[a_type]
        assert k * bits == 256
        d = wgmma.operand_d(n)
        assert is_bijective(d) and size(d) == m * n and size(d, 0) == 128
        if bits > 1:
            a = wgmma.operand_a(bits)
            assert is_bijective(a) and size(a) == m * k and size(a, 0) == 128


@pytest.mark.parametrize("thread", range(128))
def test_wgmma_fragments_as_ptx_states_them(thread):
    warp, group, member = thread // 32, thread % 32 // 4, thread % 4
    d = wgmma.operand_d(64)
    for i in range(32):
        row = 16 * warp + group + 8 * (i // 2 % 2)
        assert place(d, thread, i, 64) == (row, 8 * (i // 4) + 2 * member + i % 2)
    for bits, e in ((16, 2), (8, 4), (32, 1)):
        a = wgmma.operand_a(bits)
        for i in range(4 * e):
            register, inside = divmod(i, e)
            row = 16 * warp + group + 8 * (register % 2)
            assert place(a, thread, i, 64) == (row, 4 * e * (register // 2) + e * member + inside)


def test_wgmma_refuses_other_shapes():
    with pytest.raises(LayoutError, match="no N = 12"):
        wgmma.shape("f16", 12)
    with pytest.raises(LayoutError, match="no N = 40 for s8"):
        wgmma.shape("s8", 40)
    with pytest.raises(LayoutError, match="no type"):
        wgmma.shape("f32", 8)


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("mode", wgmma.SWIZZLE_BYTES)
@pytest.mark.parametrize("k_major", [True, False])
def test_swizzled_tiles(bits, mode, k_major):
    """Each 16-byte chunk goes to the chunk whose number, within 128 bytes, is XORed with that of the 128-byte line."""
    atom = wgmma.smem_atom(bits, mode, k_major=k_major)
    row_bytes = mode or 16
    assert is_bijective(atom) and size(atom) * bits == 8 * row_bytes * 8
    swizzle = wgmma.byte_swizzle(mode)
    for r, c in product(range(8), range(8 * row_bytes // bits)):
        address = r * row_bytes + c * bits // 8
        line = address // 128 % (1 << swizzle.bits)
        expect = address ^ (line << 4)
        got = atom(r, c) if k_major else atom(c, r)
        assert got * bits // 8 == expect


def test_the_widest_swizzle_reads_rows_of_ldmatrix_without_conflicts():
    atom = wgmma.smem_atom(16, 128, k_major=True)
    for chunk in range(8):
        rows = [atom(r, 8 * chunk) for r in range(8)]
        banks = {offset * 2 // 16 % 8 for offset in rows}
        assert len(banks) == 8
    assert bank_conflicts(Layout((8, 8), (64, 1)), "f16").degree == 8


def test_modes_of_swizzle_are_checked():
    with pytest.raises(LayoutError, match="no swizzling mode"):
        wgmma.byte_swizzle(16)
    with pytest.raises(LayoutError, match="12-bit"):
        wgmma.smem_atom(12, 128, k_major=True)


@pytest.mark.parametrize("shape", tcgen05.REPEATS)
def test_tensor_memory_loads(shape):
    lanes = int(shape.split("x")[0])
    columns = int(shape.split("x")[1][:-1]) // 32
    for repeat in tcgen05.REPEATS[shape]:
        layout = tcgen05.registers(shape, repeat)
        assert is_bijective(layout) and size(layout) == lanes * columns * repeat and size(layout, 0) == 32
    layout = tcgen05.registers(shape, 4)
    for thread, r in product(range(32), range(size(layout, 1))):
        group, member = thread // 4, thread % 4
        expect = {
            "32x32b": (thread, r),
            "16x64b": (group + 8 * (thread % 2), 2 * r + thread // 2 % 2),
            "16x128b": (group + 8 * (r % 2), 4 * (r // 2) + member),
            "16x256b": (group + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * member + r % 2),
        }[shape]
        assert place(layout, thread, r, lanes) == expect


def test_tcgen05_shapes():
    assert tcgen05.check_shape("f16", 128, 256, 1) == 16
    assert tcgen05.check_shape("tf32", 256, 16, 2) == 8
    for kind, m, n, ctas in [("f16", 64, 4, 1), ("f16", 256, 64, 1), ("f16", 256, 24, 2), ("i8", 64, 40, 1)]:
        with pytest.raises(LayoutError, match="has no shape") as refused:
            tcgen05.check_shape(kind, m, n, ctas)
        assert "M is one of" in str(refused.value)
    with pytest.raises(LayoutError, match="no such kind"):
        tcgen05.check_shape("f64", 64, 8, 1)
    with pytest.raises(LayoutError, match=r"no tcgen05.ld.16x256b.x64"):
        tcgen05.registers("16x256b", 64)


@pytest.mark.parametrize(
    ("box", "bits", "swizzle", "rule"),
    [((64, 64), 16, 128, None), ((256, 256, 1, 1, 1), 8, 0, None), ((64, 257), 16, 0, "1 to 256"),
     ((0, 8), 16, 0, "1 to 256"), ((4, 8), 16, 0, "multiple of 16 bytes"), ((128, 8), 16, 128, "at most 128 bytes"),
     ((32, 8), 16, 32, "at most 32 bytes"), ((8,) * 6, 16, 0, "1 to 5 modes"), ((), 16, 0, "1 to 5 modes")],
)  # fmt: skip
def test_boxes_of_tensor_maps(box, bits, swizzle, rule):
    if rule is None:
        return async_copy.check_box(box, bits, swizzle)
    with pytest.raises(LayoutError, match=rule):
        async_copy.check_box(box, bits, swizzle)


def test_strides_of_tensor_maps():
    async_copy.check_strides([64, 4096], 16)
    for stride in (4, 1 << 40, -8):
        with pytest.raises(LayoutError, match="multiples of 16 bytes"):
            async_copy.check_strides([stride], 16)
    assert async_copy.CP_ASYNC_BYTES == {"ca": (4, 8, 16), "cg": (16,)}
