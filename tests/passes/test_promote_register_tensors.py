"""Register tensors become values: results compared with NumPy, and facts of the program's text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.ir.locations import source_location
from tilewright.passes.promote_register_tensors import PromoteRegisterTensors

THREADS = 32


def launched(kernel):
    """A host function that launches `kernel(x, out, n)` on one warp."""

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
        kernel(x, out, n).launch(grid=1, block=THREADS)

    return run


def ran(kernel, x, out, n=0, **options):
    """The executor after a run on the emulator, which checks every access."""
    executor = cute.compile(launched(kernel), x, out, n, target="emu", **options)
    executor(x, out, n)
    return executor


def promoted(executor):
    """Stage `cute` of a program without register memory."""
    text = executor.stages["cute"]
    assert '"cute.alloc"' not in text and '"rmem"' not in text
    assert not re.search(r"llvm\.alloca %\w+ x i8 ", executor.stages["nvvm"])  # printing has others
    return text


def carried(text, kind="scf.for"):
    """How many values each loop (or branch) of the text hands on."""
    found = []
    for line in text.splitlines():
        if f"{kind} " in line:
            results = re.search(r"-> \((.*?)\)", line)
            found.append(len(results.group(1).split(",")) if results else 0)
    return found


def data(rows=4, seed=0):
    return np.random.default_rng(seed).integers(-8, 9, (rows, THREADS)).astype(np.float32)


@cute.kernel
def two_sums(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    sums = cute.make_rmem_tensor(4, cutlass.Float32)
    sums.fill(1.0)
    for turn in range(n):
        sums[0] = sums[0] + x[0, thread]
        if turn > 1:
            sums[2] = sums[2] + x[1, thread] * sums[3]
    for row in cutlass.range_constexpr(4):
        out[row, thread] = sums[row]


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loop_hands_on_the_elements_that_it_writes(n):
    x, out = data(), np.zeros((4, THREADS), np.float32)
    text = promoted(ran(two_sums, x, out, n))
    expected = np.ones((4, THREADS), np.float32)
    expected[0] += n * x[0]
    expected[2] += max(n - 2, 0) * x[1]
    np.testing.assert_array_equal(out, expected)
    assert carried(text) == [2] and carried(text, "scf.if") == [1]


@cute.kernel
def scratch_in_a_loop(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    scratch = cute.make_rmem_tensor(4, cutlass.Float32)
    total = cute.make_rmem_tensor(1, cutlass.Float32)
    total[0] = 0.0
    for _turn in range(n):
        for row in cutlass.range_constexpr(4):
            scratch[row] = x[row, thread]
        total[0] = total[0] + scratch[1] - scratch[3]
    out[0, thread] = total[0]


def test_what_each_turn_writes_before_it_reads_is_not_handed_on():
    x, out = data(), np.zeros((4, THREADS), np.float32)
    text = promoted(ran(scratch_in_a_loop, x, out, 3))
    np.testing.assert_array_equal(out[0], 3 * (x[1] - x[3]))
    assert carried(text) == [1]


@cute.kernel
def nested(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    r = cute.make_rmem_tensor((2, 2), cutlass.Float32)
    r.fill(0.0)
    for i in range(n):
        for j in range(i):
            if j % 2 == 0:
                r[0, 1] = r[0, 1] + x[0, thread]
            else:
                if i == 3:
                    r[1, 0] = r[0, 1]
        r[1, 1] = r[1, 1] + r[1, 0]
    turn = cutlass.Int32(0)
    while turn < n:
        turn += 1
        r[0, 0] = r[0, 0] + r[1, 1]
        if turn == 2:
            r[1, 1] = x[1, thread]
    out[0, thread] = r[0, 0]
    out[1, thread] = r[1, 0]
    out[2, thread] = r[0, 1]
    out[3, thread] = r[1, 1]


@pytest.mark.parametrize("n", [0, 2, 5])
@pytest.mark.parametrize("level", [0, 3])
def test_nested_loops_and_branches(n, level):
    x, out = data(), np.zeros((4, THREADS), np.float32)
    promoted(ran(nested, x, out, n, options=f"--opt-level {level}"))
    a, b, c, d = (np.zeros(THREADS) for _ in range(4))  # r[0, 0], r[1, 0], r[0, 1], r[1, 1]
    for i in range(n):
        for j in range(i):
            if j % 2 == 0:
                c = c + x[0]
            elif i == 3:
                b = c
        d = d + b
    for turn in range(1, n + 1):
        a = a + d
        d = x[1] if turn == 2 else d
    np.testing.assert_array_equal(out, np.stack([a, b, c, d]))


@cute.kernel
def views(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    r = cute.make_rmem_tensor((2, 4), cutlass.Float32)
    for row in cutlass.range_constexpr(2):
        for column in cutlass.range_constexpr(4):
            r[row, column] = x[row + 2 * column, thread]
    transposed = cute.make_tensor(r.iterator, cute.make_layout((4, 2), stride=(2, 1)))
    column = r[None, 2]
    column[0] = column[0] + transposed[1, 1]  # r[0, 2] += r[1, 1]
    transposed[None, 1].store(transposed[None, 0].load() * 2.0)  # r[1, :] = 2 r[0, :]
    doubled = r.load() + r.load()
    for index in cutlass.range_constexpr(8):
        out[index, thread] = doubled[index]


def test_views_of_one_allocation_name_the_same_elements():
    x, out = data(8), np.zeros((8, THREADS), np.float32)
    promoted(ran(views, x, out))
    r = x.reshape(4, 2, THREADS).transpose(1, 0, 2).copy()
    r[0, 2] += r[1, 1]
    r[1] = 2 * r[0]
    np.testing.assert_array_equal(out, (2 * r).transpose(1, 0, 2).reshape(8, THREADS))


@cute.kernel
def parts(x: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    column = cute.local_tile(x, (9, 1), (0, thread))[None, 0]
    r = cute.make_rmem_tensor(9, cutlass.Float32)
    for first, count in n:
        target = cute.make_tensor(r.iterator + first, cute.make_layout(count))
        source = cute.make_tensor(
            column.iterator + first * cute.size(x, mode=[1]), cute.make_layout(count, stride=THREADS)
        )
        if cutlass.const_expr(count == 1):
            r[first] = source[0]
        else:
            cute.autovec_copy(source, target)
    cute.local_tile(out, (9, 1), (0, thread))[None, 0].store(r.load())


@pytest.mark.parametrize(
    "runs",
    [((0, 4), (4, 4), (8, 1)), ((0, 4), (4, 2), (6, 3)), ((0, 1), (1, 8)), ((5, 4), (0, 5)), ((0, 3), (3, 1), (4, 5))],
)
def test_a_vector_of_parts_of_different_lengths(runs):
    x, out = data(9), np.zeros((9, THREADS), np.float32)

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor):
        parts(x, out, runs).launch(grid=1, block=THREADS)

    executor = cute.compile(run, x, out, target="emu")
    executor(x, out)
    promoted(executor)
    np.testing.assert_array_equal(out, x)


class Pair:
    """Two fragments in an object."""

    def __init__(self):
        self.left = cute.make_rmem_tensor(2, cutlass.Int32)
        self.right = cute.make_rmem_tensor_like(self.left)


def add_to(tensor, value):
    tensor[1] = tensor[1] + value


@cute.kernel
def helpers(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    pair = Pair()
    pair.left.fill(1)
    pair.right.store(pair.left.load() * 3)
    for turn in range(n):
        add_to(pair.left, turn)
        cute.autovec_copy(pair.left, pair.right)
        add_to(pair.right, thread)
    out[0, thread] = pair.left[1].to(cutlass.Float32)
    out[1, thread] = pair.right[1].to(cutlass.Float32)
    out[2, thread] = pair.right[0].to(cutlass.Float32)


@pytest.mark.parametrize("n", [0, 4])
def test_fragments_of_objects_and_helpers(n):
    x, out = data(), np.zeros((4, THREADS), np.float32)
    promoted(ran(helpers, x, out, n))
    left = 1 + n * (n - 1) // 2
    np.testing.assert_array_equal(out[0], np.full(THREADS, left))
    np.testing.assert_array_equal(out[1], left + np.arange(THREADS) if n else np.full(THREADS, 3))
    np.testing.assert_array_equal(out[2], np.full(THREADS, 1 if n else 3))


@cute.kernel
def guarded(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    values = cute.make_rmem_tensor((1, 4), cutlass.Float32)
    flags = cute.make_rmem_tensor((1, 4), cutlass.Boolean)
    values.fill(-1.0)
    for row in cutlass.range_constexpr(4):
        flags[0, row] = row * 8 + n > thread
    source = cute.make_tensor(x.iterator + thread, cute.make_layout((1, 4), stride=(1, THREADS)))
    target = cute.make_tensor(out.iterator + thread, cute.make_layout((1, 4), stride=(1, THREADS)))
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
    cute.copy(atom, source, values, pred=flags)
    moved = cute.make_rmem_tensor_like(values)
    moved.fill(7.0)
    for row in cutlass.range_constexpr(4):
        flags[0, row] = thread % 4 == row
    cute.copy(atom, values, moved, pred=flags)
    cute.copy(atom, moved, target)


@pytest.mark.parametrize("options", ["", "--enable-assertions"])
def test_copies_under_predicates_keep_the_rest(options):
    x, out = data(), np.zeros((4, THREADS), np.float32)
    text = promoted(ran(guarded, x, out, 3, options=options))
    assert '"cute.copy_value"' in text
    thread, row = np.arange(THREADS), np.arange(4)[:, None]
    loaded = np.where(row * 8 + 3 > thread, x, -1)
    np.testing.assert_array_equal(out, np.where(thread % 4 == row, loaded, 7))


@cute.kernel
def picked_at_run_time(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    kept = cute.make_rmem_tensor(4, cutlass.Float32)
    value = cute.make_rmem_tensor(4, cutlass.Float32)
    for row in cutlass.range_constexpr(4):
        kept[row] = x[row, thread]
        value[row] = x[row, thread] + 1.0
    out[0, thread] = kept[n] + value[1]
    cute.autovec_copy(kept, value)
    out[1, thread] = value[2]


def test_an_allocation_picked_at_run_time_stays_memory():
    x, out = data(), np.zeros((4, THREADS), np.float32)
    executor = ran(picked_at_run_time, x, out, 3)
    np.testing.assert_array_equal(out[:2], [x[3] + x[1] + 1, x[2]])
    assert executor.stages["cute"].count('"cute.alloc"') == 1


@cute.kernel
def escaping(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    r = cute.make_rmem_tensor(2, cutlass.Float32)
    r[0] = x[0, thread]
    r[1] = x[1, thread]
    bits = cute.make_tensor(cute.recast_ptr(r.iterator, dtype=cutlass.Int32), cute.make_layout(2))
    out[0, thread] = (bits[1] & 0x7FFFFFFF).to(cutlass.Float32)


def test_bits_under_another_type_are_read_from_memory():
    x, out = data(), np.zeros((4, THREADS), np.float32)
    executor = ran(escaping, x, out)
    np.testing.assert_array_equal(out[0], np.abs(x[1]).view(np.int32).astype(np.float32))
    assert executor.stages["cute"].count('"cute.alloc"') == 1


@cute.kernel
def loops_of_constants(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    r = cute.make_rmem_tensor((2, 4), cutlass.Float32)
    for row in range(2):
        for column in range(4):
            r[row, column] = x[row + 2 * column, thread]
    total = cutlass.Float32(0)
    for column in range(1, 4, 2):
        total = total + r[1, column] * column
    out[0, thread] = total


def test_loops_of_constants_that_pick_registers_are_unrolled():
    x, out = data(8), np.zeros((4, THREADS), np.float32)
    text = promoted(ran(loops_of_constants, x, out))
    assert "scf.for" not in text
    np.testing.assert_array_equal(out[0], x[3] + 3 * x[7])


@cute.kernel
def half_written(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    r = cute.make_rmem_tensor(3, cutlass.Float32)
    r[0] = x[0, thread]
    if n > 1:
        r[1] = x[1, thread]
    out[0, thread] = r[0] + r[1] + r[2]


def test_reads_that_no_write_comes_before_are_known():
    item = PromoteRegisterTensors()
    x, out = data(), np.zeros((4, THREADS), np.float32)
    run = launched(half_written)
    cute.compile(run, x, out, 0, target="emu", passes=[cutlass.before("promote-register-tensors", item)])
    assert [(read.index, source_location(read.read).line) for read in item.unwritten] == [(2, line_of("r[2]"))]
    assert source_location(item.unwritten[0].allocation).line == line_of("make_rmem_tensor(3,")


def line_of(text):
    """The line of this file that a text first stands in."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@cute.kernel
def writes_number(out: cute.Tensor, number: cutlass.Int32):
    out[cute.arch.thread_idx()[0]] = number


@cute.jit
def on_the_host(out: cute.Tensor, n: cutlass.Int32):
    r = cute.make_rmem_tensor(2, cutlass.Int32)
    r.fill(2)
    for turn in range(n):
        r[0] = r[0] * r[1] + turn
    writes_number(out, r[0]).launch(grid=1, block=THREADS)


def test_host_functions():
    out = np.zeros(THREADS, np.int32)
    executor = cute.compile(on_the_host, out, 5, target="emu")
    executor(out, 5)
    expected = 2
    for turn in range(5):
        expected = 2 * expected + turn
    assert (out == expected).all()
    assert carried(promoted(executor)) == [1] and "alloca i8" not in executor.host_llvm


def program(seed):
    """A random kernel over six registers, as Python source: it means the same to NumPy, one thread after the other."""
    generator = np.random.default_rng(seed)
    lines: list[str] = []

    def body(depth, indent, names):
        for _ in range(int(generator.integers(2, 5))):
            kind = generator.choice(["set", "add", "if", "for", "swap"], p=[0.3, 0.3, 0.16, 0.14, 0.1])
            a, b, c = (int(item) for item in generator.integers(0, 6, 3))
            pad = "    " * indent
            if kind == "set":
                lines.append(f"{pad}r[{a}] = r[{b}] - {c}")
            elif kind == "add":
                name = names[int(generator.integers(len(names)))]
                lines.append(f"{pad}r[{a}] = r[{b}] + r[{c}] * ({name} % 3)")
            elif kind == "swap":
                lines.append(f"{pad}old = r[{a}]\n{pad}r[{a}] = r[{b}]\n{pad}r[{b}] = old")
            elif depth < 3 and kind == "if":
                lines.append(f"{pad}if ({names[-1]} + {a}) % 2 == 0:")
                body(depth + 1, indent + 1, names)
                if generator.random() < 0.5:
                    lines.append(f"{pad}else:")
                    body(depth + 1, indent + 1, names)
            elif depth < 2 and kind == "for":
                lines.append(f"{pad}for i{depth} in range((n + {a}) % 4):")
                body(depth + 1, indent + 1, [*names, f"i{depth}"])

    body(0, 1, ["n", "thread"])
    return "\n".join(lines) or "    pass"


def run_program(seed, folder, n):
    """What a random program computes, and what NumPy does."""
    source = program(seed)
    head = "import tilewright as cutlass\nfrom tilewright import cute\n\n@cute.kernel\n"
    head += (
        "def kernel(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):\n    thread, _, _ = cute.arch.thread_idx()\n"
    )
    head += "    r = cute.make_rmem_tensor(6, cutlass.Int32)\n"
    head += "".join(f"    r[{row}] = x[{row}, thread]\n" for row in range(6))
    tail = "".join(f"    out[{row}, thread] = r[{row}]\n" for row in range(6))
    path = folder / f"program_{seed}.py"
    path.write_text(f"{head}{source}\n{tail}")
    module = {"__name__": f"program_{seed}", "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), module)
    x = np.random.default_rng(seed).integers(-9, 10, (6, THREADS)).astype(np.int32)
    out = np.zeros_like(x)
    promoted(ran(module["kernel"], x, out, n))
    scope: dict = {}
    exec(f"def model(r, n, thread):\n{source}\n", scope)
    expected = x.copy()
    for thread in range(THREADS):
        registers = [int(item) for item in x[:, thread]]
        scope["model"](registers, n, thread)
        expected[:, thread] = [(item + (1 << 31)) % (1 << 32) - (1 << 31) for item in registers]
    return out, expected, source


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed, tmp_path):
    out, expected, source = run_program(seed, tmp_path, seed % 5)
    np.testing.assert_array_equal(out, expected, err_msg=source)
