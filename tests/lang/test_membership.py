"""`in`, `not in` and `==` of runtime values with containers of Python: as Python has it, on device and host."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import tilewright.cute as cute
from tests.lang.kernels import on_device, on_host
from tilewright.base.errors import CompileError


class Between:
    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = low, high

    def __contains__(self, value: Any) -> Any:
        return (self.low <= value) & (value < self.high)


EXPRESSIONS = [
    "x in {0: 1, 2: 3}", "x not in {0: 1, 2: 3}", "x in {0: 1, 2: 3}.keys()", "x in {0: 1, 2: i}.values()",
    "x in {3, i}", "x in frozenset({1, 5})", "x in (1, i, 5)", "x not in [i]", "3 in (x, i)", "x in ()",
    "x in deque([1, 4])", "x in (k for k in (1, 2, 3))", "x in iter([i])", "x in Between(2, 5)",
    "x in range(5)", "x in range(2, 7, 2)", "x in range(7, -3, -3)", "x in range(0)", "x not in range(-5, 0, 4)",
    "x in range(2, -3, -1)", "0 <= x in range(4)", "x > 0 and x in range(1, 9, 3)",
    "(x, i) in ((0, 0), (3, 3))", "(x, i) == (3, 3)", "(x, i) != (0, 0)", "(x, (i, 1)) == (2, (2, 1))",
    "(x,) == (x, i)", "(x, i) not in [(1, 1), [2, 2]]",
]  # fmt: skip
INPUTS = [0, 1, 2, 3, 4, 5, 6, 7, -1, -5]


@pytest.mark.parametrize("place", [on_device, on_host], ids=["device", "host"])
@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.int64, np.float32])
def test_membership_is_pythons(place, dtype, tmp_path):
    lines = [f"    out[i, {n}] = 1 if {text} else 0" for n, text in enumerate(EXPRESSIONS)]
    head = ["def body(x, i, out):", "    x = x[i]"]
    file = tmp_path / "membership.py"
    file.write_text("\n".join([*head, *lines, ""]))
    names: dict[str, Any] = {"deque": collections.deque, "Between": Between}
    exec(compile(file.read_text(), str(file), "exec"), names)
    body = cute.jit(names["body"])

    def device(x: cute.Tensor, out: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        body(x, i, out)

    def host(x: cute.Tensor, out: cute.Tensor):
        for i in range(cute.size(x, mode=[0])):
            body(x, i, out)

    x, out = np.array(INPUTS, dtype), np.full((len(INPUTS), len(EXPRESSIONS)), 7, np.int32)
    place(device if place is on_device else host, x, out, **({"block": len(INPUTS)} if place is on_device else {}))
    for i, value in enumerate(x.tolist()):
        for n, text in enumerate(EXPRESSIONS):
            assert out[i, n] == eval(text, {**names, "x": value, "i": i}), (text, value, i)


def test_ranges_do_not_overflow():
    def body(x: cute.Tensor, out: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        out[i] = (1 if x[i] in range(0, 2**31 - 1, 2) else 0) + (2 if x[i] in range(-(2**31), 2**31 - 1, 3) else 0)

    values = [0, 1, 2**31 - 2, 2**31 - 1, -(2**31), -(2**31) + 3]
    wanted = [(v in range(0, 2**31 - 1, 2)) + 2 * (v in range(-(2**31), 2**31 - 1, 3)) for v in values]
    out = on_device(body, np.array(values, np.int32), np.zeros(6, np.int32), block=6)[1]
    assert out.tolist() == wanted


KEYS = {
    "read": lambda d, x: d.get(x, 7),
    "write": lambda d, x: d.__setitem__(x, 7),
    "set": lambda d, x: len({x, 1}),
}


@pytest.mark.parametrize("use", KEYS)
def test_a_runtime_number_is_no_key(use):
    def body(x: cute.Tensor):
        x[0] = KEYS[use]({1: 2}, x[0]) or 0

    with pytest.raises(CompileError, match="an Int32 known only at run time is used as a key") as caught:
        on_device(body, np.array([1], np.int32), block=1)
    assert "hint: keys of dictionaries" in str(caught.value)


def test_numbers_of_compile_time_are_keys_as_pythons_are():
    assert {3: "a"}[cute.Int32(3)] == "a" and cute.Int32(3) in {3} and len({cute.Int32(1), 1, cute.Int8(1)}) == 1


HINTS = {
    "round(x[0] / 3)": "`cute.math` has functions of runtime values",
    "x[1][2]": "it is one number and has no items",
    "len(x[0])": "it is one number and has no items",
    "(x[0] > 0) + 'a'": "numbers compute with numbers",
    "{}[3]": "give the dictionary the key before it is read",
    "sorted([x[0], x[1]])[0]": "`sorted`, filters of comprehensions",
}


@pytest.mark.parametrize("text", HINTS)
def test_mistakes_with_numbers_have_a_hint(text, tmp_path):
    file = tmp_path / "mistake.py"
    file.write_text(f"def body(x):\n    x[0] = {text}\n")
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(CompileError) as caught:
        on_device(names["body"], np.zeros(2, np.int32), block=1)
    assert HINTS[text] in str(caught.value) and caught.value.location.line == 2
    assert caught.value.location.file == str(file)


class Bound:
    @cute.kernel
    def kernel(self, x: cute.Tensor):
        x[0] = 1

    @cute.jit
    def launch(self, x: cute.Tensor, block):
        self.kernel(x).launch(grid=1, block=block)


def test_a_kernel_of_an_object_is_not_compiled_by_itself():
    with pytest.raises(CompileError, match="kernel is a kernel") as caught:
        cute.compile(Bound().kernel, np.zeros(1, np.int32))
    assert "kernels are launched from a @cute.jit function" in str(caught.value)


@pytest.mark.parametrize("block", ["x", (1, 1, 1, 1), 1.5, ()])
def test_extents_that_are_none(block):
    with pytest.raises(CompileError, match="block takes one to three integers") as caught:
        Bound().launch(np.zeros(1, np.int32), block)
    assert "hint: block=(x, y, z)" in str(caught.value) and "self.kernel(x).launch" in str(caught.value)
