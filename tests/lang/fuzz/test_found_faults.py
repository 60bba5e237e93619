"""What random programs found, each with its kind."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.fuzz.harness import code_of
from tests.lang.fuzz.model import ALL_TYPES

INT64_AMOUNTS = [1, 63, 64, 1 << 31, 1 << 32, (1 << 40) + 3]


@cute.jit
def over(fn: cutlass.Constexpr, a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    _each(fn, a, b, out).launch(grid=(1, 1, 1), block=(cute.size(out), 1, 1))


@cute.kernel
def _each(fn: cutlass.Constexpr, a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    out[i] = fn(a[i], b[i])


def computed(fn, a, b, dtype=None):
    """`fn` over two arrays, on the device."""
    out = np.zeros(len(a), dtype or a.dtype)
    cute.compile(over, fn, a, b, out)(a, b, out)
    return out.tolist()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_shifts_of_64_bits_see_all_bits_of_the_amount(dtype):
    amounts = np.array(INT64_AMOUNTS, dtype)
    numbers = np.full(len(amounts), 3, dtype)
    expected = [(3 << min(amount, 64)) & ((1 << 64) - 1) for amount in INT64_AMOUNTS]
    left = computed(lambda x, y: x << y, numbers, amounts)
    assert [item & ((1 << 64) - 1) for item in left] == expected
    assert computed(lambda x, y: x >> y, numbers, amounts) == [3 >> amount for amount in INT64_AMOUNTS]


@pytest.mark.parametrize("amount", [8, 255, 256, 257, 1 << 16, 1 << 20])
def test_the_amount_of_a_shift_may_exceed_what_is_shifted(amount):
    numbers, amounts = np.array([5, -5], np.int8), np.full(2, amount, np.int32)
    assert computed(lambda x, y: x << y, numbers, amounts) == [0, 0]
    assert computed(lambda x, y: x >> y, numbers, amounts) == [0, -1]
    assert computed(lambda x, _: x >> amount, numbers, amounts) == [0, -1]
    assert (cutlass.Int8(-5) >> amount).value == -1


def test_vectors_shift_as_numbers_do():
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        v = x.load()
        row = v >> 256
        assert row.dtype is cutlass.Int8
        assert (v << cutlass.Int32(1)).dtype is cutlass.Int8
        out.store(row)

    @cute.jit
    def launch(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    x, out = np.array([5, -5, 127, -128], np.int8), np.zeros(4, np.int8)
    arguments = cute.runtime.from_dlpack(x), cute.runtime.from_dlpack(out)
    cute.compile(launch, *arguments)(*arguments)
    assert out.tolist() == [0, -1, 0, -1]


def test_a_shift_by_a_negative_constant_is_refused():
    with pytest.raises(cutlass.TilewrightError, match="a shift by -1"):
        cutlass.Int32(1) << -1


def test_remainders_of_floats_have_the_sign_of_the_divisor():
    a, b = np.array([6.0, -6.0, -7.0, 7.0, 0.0], np.float32), np.array([-3.0, 3.0, 3.0, -3.0, -2.0], np.float32)
    found = computed(lambda x, y: x % y, a, b)
    expected = [x % y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert [(x, math.copysign(1, x)) for x in found] == [(x, math.copysign(1, x)) for x in expected]


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.1), (-7.0, 0.5), (7.5, -2.0), (-0.0, 3.0)])
def test_constants_divide_as_runtime_numbers_do(a, b):
    one, two = np.array([a]), np.array([b])
    for fn in (lambda x, y: x // y, lambda x, y: x % y):
        constant = fn(cutlass.Float64(a), cutlass.Float64(b)).value
        found = computed(fn, one, two)[0]
        assert (found, math.copysign(1, found)) == (constant, math.copysign(1, constant))


@pytest.mark.parametrize(
    ("base", "exponent", "result"),
    [
        (cutlass.Int32(3), 10**9, pow(3, 10**9, 1 << 32) - (1 << 32 if pow(3, 10**9, 1 << 32) >> 31 else 0)),
        (cutlass.Int32(-1), -3, -1),
        (cutlass.Int32(2), -1, 0),
        (cutlass.Float64(1e200), 2.0, math.inf),
        (cutlass.Float64(-1e200), 3.0, -math.inf),
        (cutlass.Float32(0.0), -1.0, math.inf),
    ],
)
def test_powers_of_constants(base, exponent, result):
    assert (base**exponent).value == result


def test_a_root_of_a_negative_constant_is_nan():
    assert math.isnan((cutlass.Float32(-8.0) ** 0.5).value)


LOGIC = """
@cute.jit
def negated(x, y):
    some = x > 0 or cutlass.Boolean(True)
    all_ = x > 0 and cutlass.Boolean(False)
    result = cutlass.Int32(0)
    if ~some:
        result += 1
    if ~all_:
        result += 2
    if ~(not cutlass.Boolean(True)):
        result += 4
    if ~(0 < x < cutlass.Int32(-5)):
        result += 8
    return result
"""


def test_logic_of_runtime_values_is_boolean_even_where_it_is_constant():
    names = {"cute": cute, "cutlass": cutlass}
    exec(code_of(LOGIC, "<logic>"), names)
    a = np.array([1, -1], np.int32)
    assert computed(names["negated"], a, a) == [14, 14]


def test_wide_stores_to_registers_count_as_written():
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        row = cute.make_rmem_tensor(8, cutlass.Int8)
        row.fill(cutlass.Int8(x[i]))
        row[(~x[i]) % 8] = cutlass.Int8(9)
        out[i] = cutlass.Int32(row[x[i] % 8])

    @cute.jit
    def launch(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=(1, 1, 1), block=(8, 1, 1))

    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    cute.compile(launch, x, out)(x, out)
    assert out.tolist() == list(range(8))


SIGNED = [-0.0, 0.0, 1.0, -1.0, math.nan]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_selections_keep_the_sign_of_a_zero(dtype):
    kind = {2: cutlass.Float16, 4: cutlass.Float32, 8: cutlass.Float64}[np.dtype(dtype).itemsize]
    x = np.array(SIGNED, dtype)

    @cute.jit
    def least(a, b):
        return min(kind(0.0), kind(99.0), a)

    @cute.jit
    def greatest(a, b):
        return max(kind(-0.0), a)

    @cute.jit
    def of_an_integer(a, b):
        return min(kind(cutlass.Int32(b)), a)

    @cute.jit
    def chosen(a, b):
        return a if a > 0.0 else kind(0.0)

    choices = {
        least: lambda a: min(0.0, a),
        greatest: lambda a: max(-0.0, a),
        of_an_integer: lambda a: min(0.0, a),
        chosen: lambda a: a if a > 0.0 else 0.0,
    }
    for fn, plain in choices.items():
        found = computed(fn, x, np.zeros_like(x))
        expected = [plain(item) for item in SIGNED]
        assert [repr(item) for item in found] == [repr(item) for item in expected], fn


GREAT = [0, 1, (1 << 127) - 1, 1 << 127, (1 << 128) - 1, 1 << 64, (1 << 64) - 1, (1 << 77) + (1 << 53), 12345 << 90]
AMOUNTS = [0, 1, 63, 64, 65, 127, 128, 1000, 7]


@pytest.mark.parametrize("name", ["Int128", "Uint128"])
@pytest.mark.parametrize("target", ["emu", "host"])
def test_integers_of_128_bits_shift_and_become_floats(name, target):
    kind, floats = getattr(cutlass, name), (cutlass.Float64, cutlass.Float32, cutlass.Float16, cutlass.BFloat16)

    @cute.jit
    def each(i, low: cute.Tensor, high: cute.Tensor, n: cute.Tensor, ints: cute.Tensor, out: cute.Tensor):
        number = (kind(high[i]) << 64) | kind(low[i])
        for k in cutlass.range_constexpr(4):
            out[i, k] = floats[k](number)
        left, right = number << n[i], number >> n[i]
        ints[i, 0], ints[i, 1] = cutlass.Uint64(left), cutlass.Uint64(left >> 64)
        ints[i, 2], ints[i, 3] = cutlass.Uint64(right), cutlass.Uint64(right >> 64)

    @cute.kernel
    def kernel(low: cute.Tensor, high: cute.Tensor, n: cute.Tensor, ints: cute.Tensor, out: cute.Tensor):
        each(cute.arch.thread_idx()[0], low, high, n, ints, out)

    @cute.jit
    def launch(low: cute.Tensor, high: cute.Tensor, n: cute.Tensor, ints: cute.Tensor, out: cute.Tensor):
        if cutlass.const_expr(target == "host"):
            for i in range(len(GREAT)):
                each(i, low, high, n, ints, out)
        else:
            kernel(low, high, n, ints, out).launch(grid=(1, 1, 1), block=(len(GREAT), 1, 1))

    low, high = ([number >> shift & ((1 << 64) - 1) for number in GREAT] for shift in (0, 64))
    arrays = np.array(low, np.uint64), np.array(high, np.uint64), np.array(AMOUNTS, np.int32)
    ints, out = np.zeros((len(GREAT), 4), np.uint64), np.zeros((len(GREAT), 4))
    cute.compile(launch, *arrays, ints, out)(*arrays, ints, out)
    type_ = ALL_TYPES[name]
    for i, (number, amount) in enumerate(zip(GREAT, AMOUNTS, strict=True)):
        value = type_(number)
        exact = [ALL_TYPES[item](value).value for item in ("Float64", "Float32", "Float16", "BFloat16")]
        assert out[i].tolist() == exact, number
        moved = [
            (item.value >> shift) & ((1 << 64) - 1) for item in (value << amount, value >> amount) for shift in (0, 64)
        ]
        assert ints[i].tolist() == moved, (number, amount)


@pytest.mark.parametrize("name", ["Float8E4M3FN", "Float8E5M2"])
def test_tfloat32_becomes_narrow(name):
    a = np.array([1.1, -300.0, 70000.0, 0.0], np.float32)
    kind = getattr(cutlass, name)
    found = computed(lambda x, _: cutlass.Float32(kind(cutlass.TFloat32(x))), a, a)
    assert found == [ALL_TYPES[name](ALL_TYPES["TFloat32"](float(item))).value for item in a]


def test_integers_of_128_bits_divide_with_all_their_bits():
    a, b = np.array([101, -98, 400, -107], np.int64), np.array([-25, 25, -25, -25], np.int64)
    wide = cutlass.Int128
    assert computed(lambda x, y: cutlass.Int64((wide(x) // wide(y)) >> 64), a, b) == [-1, -1, -1, 0]
    assert computed(lambda x, _: cutlass.Int64((wide(x) // -25) >> 64), a, b) == [-1, 0, -1, 0]
    assert computed(lambda x, y: cutlass.Int64(wide(x) % wide(y)), a, b) == [-24, 2, 0, -7]


@pytest.mark.parametrize("target", ["emu", "host"])
def test_great_integers_become_infinite_as_float16(target):
    @cute.jit
    def each(i, x: cute.Tensor, out: cute.Tensor):
        out[i, 0] = cutlass.Float16(x[i] * cutlass.Int32(-(1 << 31)))
        out[i, 1] = cutlass.Float16(cutlass.Int64(x[i]) << 40)
        out[i, 2] = cutlass.Float16(cutlass.Uint32(x[i]) << 16)
        out[i, 3] = cutlass.Float16(x[i] * 2)

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        each(cute.arch.thread_idx()[0], x, out)

    @cute.jit
    def launch(x: cute.Tensor, out: cute.Tensor):
        if cutlass.const_expr(target == "host"):
            for i in range(3):
                each(i, x, out)
        else:
            kernel(x, out).launch(grid=(1, 1, 1), block=(3, 1, 1))

    x, out = np.array([0, 1, 2047], np.int32), np.zeros((3, 4))
    cute.compile(launch, x, out)(x, out)
    inf = math.inf
    assert out.tolist() == [[0, 0, 0, 0], [-inf, inf, inf, 2], [-inf, inf, inf, 4094]]


BOX = """
class Box:
    def __init__(self, number):
        self.number = number


@cute.jit
def grown(x, y):
    box = Box(x)
    for _ in range(3):
        box.number = box.number * 2
    if y > 0:
        box.number += y
    return box.number
"""


def test_classes_of_code_without_a_module_carry_their_members():
    names = {"cute": cute, "cutlass": cutlass}
    exec(code_of(BOX, "<box>"), names)
    assert names["Box"].__module__ == "builtins"
    a, b = np.array([1, -1], np.int32), np.array([5, -5], np.int32)
    assert computed(names["grown"], a, b) == [13, -8]


# --- errors ----------------------------------------------------------------------------------------------------------


def refusal(body):
    """The error of a kernel whose third line is `body`."""
    text = (
        "@cute.kernel\ndef kernel(x, out):\n    "
        + body
        + "\n\n\n@cute.jit\ndef launch(x: cute.Tensor, out: cute.Tensor):"
    )
    text += "\n    kernel(x, out).launch(grid=(1, 1, 1), block=(1, 1, 1))\n"
    name, names = f"<{body}>", {"cute": cute, "cutlass": cutlass}
    exec(code_of(text, name), names)
    array = np.zeros(4, np.int32)
    tensor = cute.runtime.from_dlpack(array)
    with pytest.raises(Exception) as caught:
        cute.compile(names["launch"], tensor, tensor)
    return name, caught.value


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("out[0] = y[0]", NameError, "NameError: name 'y' is not defined"),
        ("out[0] = x.shpae", AttributeError, "AttributeError: 'Tensor' object has no attribute 'shpae'"),
        ("out[0] = cute.arch.lane_idx(1, 2)", TypeError, "TypeError: lane_idx() takes 0 positional arguments"),
        ("out[0] = x[0] + 'a'", TypeError, "TypeError: unsupported operand type(s) for +: 'Int32' and 'str'"),
        ("out[0] = (1, 2)[2]", IndexError, "IndexError: tuple index out of range"),
        ("out[0] = {}['a']", KeyError, "KeyError: 'a'"),
        ("out[0] = 1 // 0", ZeroDivisionError, "ZeroDivisionError: integer division"),
        ("x.load().reduce(cute.ReductionOp.SUM, 0)", AttributeError, "AttributeError: SUM"),
    ],
)
def test_errors_of_python_are_errors_of_ours_too(body, kind, message):
    name, error = refusal(body)
    assert isinstance(error, cutlass.CompileError)
    assert isinstance(error, kind)
    assert str(error).startswith(message)
    assert (error.location.file, error.location.line) == (name, 3)


@pytest.mark.parametrize(
    ("body", "kind"), [("raise KeyError('mine')", KeyError), ("assert False, 'mine'", AssertionError)]
)
def test_what_the_user_raises_comes_through(body, kind):
    _, error = refusal(body)
    assert type(error) is kind
    assert "mine" in str(error)


@pytest.mark.parametrize("body", ["out[0] = x[-1]", "out[4] = 0", "out[0] = x[0, 1]", "x[cutlass.Int32(9)] = 1"])
def test_a_known_index_must_be_inside(body):
    name, error = refusal(body)
    assert isinstance(error, cutlass.CompileError)
    assert str(error).startswith(("an index is outside the tensor", "2 indices for a tensor of rank 1"))
    assert (error.location.file, error.location.line) == (name, 3)


def test_iteration_over_tensors_ends():
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        total = cutlass.Int32(0)
        for item in x:
            total += item
        for item in x.load():
            total += item
        out[0] = total

    @cute.jit
    def launch(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    x, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    arguments = cute.runtime.from_dlpack(x), cute.runtime.from_dlpack(out)
    cute.compile(launch, *arguments)(*arguments)
    assert out[0] == 12
    with pytest.raises(cutlass.CompileError, match="iteration of a tensor whose size is known only at run time"):
        cute.compile(launch, x, out)


ROW = "v = cute.make_rmem_tensor(4, cutlass.Int32); v.fill(1); "


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x[0].to(3)", "expected a number type, got 3"),
        ("x[0].bitcast('i32')", "expected a number type, got 'i32'"),
        ("cute.make_rmem_tensor(4, None)", "expected a number type, got None"),
        ("cute.make_rmem_tensor(4, cutlass.Numeric)", "expected a number type, got <class"),
        ("cutlass.utils.SmemAllocator().allocate_tensor(3, 4)", "expected a number type, got 3"),
        ("cute.full(4, 1, 3)", "expected a number type, got 3"),
        (ROW + "v.load().to(3)", "expected a number type, got 3"),
        (ROW + "v.load().reduce('plus', 0)", "reduce takes a ReductionOp, not 'plus'"),
        (ROW + "v.load()[1.5]", "a TensorSSA is indexed by integers, not by 1.5"),
        (ROW + "v.load() // 0", "division by zero"),
        (ROW + "cute.where(1, v.load(), 2)", "where takes a TensorSSA as its condition, not int"),
        ("out[0] = x[0] // 0", "division by zero"),
        ("out[0] = x[0] % cutlass.Int8(0)", "division by zero"),
    ],
)
def test_a_wrong_argument_is_named(body, message):
    name, error = refusal(body)
    assert isinstance(error, cutlass.CompileError)
    assert str(error).startswith(message)
    assert (error.location.file, error.location.line) == (name, 3)


OUTSIDE = """
@cute.kernel
def kernel(x, out):
    i, _, _ = cute.arch.thread_idx()
    if i < 4:
        out[i + 1000] = x[i]


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    kernel(x, out).launch(grid=(1, 1, 1), block=(4, 1, 1))
"""


def test_equal_code_of_two_files_keeps_its_file():
    x, out = np.zeros(4, np.int32), np.zeros(4, np.int32)
    for file in ("<first copy>", "<second copy>"):
        names = {"cute": cute, "cutlass": cutlass}
        exec(code_of(OUTSIDE, file), names)
        with pytest.raises(cutlass.TilewrightError, match="Out-of-bounds") as caught:
            cute.compile(names["launch"], x, out)(x, out)
        assert file in str(caught.value)
        assert (caught.value.location.file, caught.value.location.line) == (file, 6)
