"""Selections between floats: the sign of a zero is that of Python, and `min` and `max` are used where they give it."""

from __future__ import annotations

import operator

import ml_dtypes
import numpy as np
import pytest

import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright.ir.llvm import emit_ptx

COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
SIGNED = [-0.0, 0.0, 1.0, -1.0, np.nan, 2.5, -np.inf, np.inf]
TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f64": np.float64}


@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("sign", COMPARISONS)
def test_zeros_have_the_sign_that_python_chooses(sign, dtype):
    compare = COMPARISONS[sign]
    forms = []
    for constant in (0.0, -0.0, 1.0):
        forms.append((constant, lambda x, c: (compare(x, c), x, c)))
        forms.append((constant, lambda x, c: (compare(x, c), c, x)))
        forms.append((constant, lambda x, c: (compare(c, x), x, c)))

    def body(x: cute.Tensor, vectors: cute.Tensor, scalars: cute.Tensor):
        v = x.load()
        for row, (constant, form) in enumerate(forms):
            kind = x.element_type
            condition, a, b = form(v, cute.full_like(v, constant))
            vectors[row, None].store(cute.where(condition, a, b))
            for i in range(len(SIGNED)):
                condition, a, b = form(x[i], kind(constant))
                scalars[row, i] = a if condition else b

    x = np.array(SIGNED, dtype)
    empty = np.zeros((len(forms), len(SIGNED)), dtype)
    _, vectors, scalars = on_device(body, x, empty, empty.copy(), block=1)
    for row, (constant, form) in enumerate(forms):
        choices = [form(item, constant) for item in SIGNED]
        expected = [a if condition else b for condition, a, b in choices]
        for found in (vectors[row], scalars[row]):
            assert list(map(repr, map(float, found))) == list(map(repr, map(float, expected))), (sign, constant, row)


def selection(kind: str, predicate: str, constant: str, arms: str = "%x, {c}", flags: str = "") -> str:
    """A function that compares a number, or a pair, with a constant and chooses one of them."""
    number = kind.removeprefix("<2 x ").removesuffix(">")
    zero = f"<{number} {constant}, {number} {constant}>" if kind.startswith("<") else constant
    first, second = (f"{kind} {arm}" for arm in arms.format(c=zero).split(", ", 1))
    bit = "<2 x i1>" if kind.startswith("<") else "i1"
    return f"""define {kind} @chosen({kind} %x) {{
      %better = fcmp {predicate} {kind} %x, {zero}
      %best = select {flags} {bit} %better, {first}, {second}
      ret {kind} %best
    }}"""


@pytest.mark.parametrize(
    ("kind", "predicate", "constant", "flags", "instruction"),
    [
        ("float", "ogt", "0.0", "", "max.f32"),
        ("float", "ogt", "-0.0", "", "selp.f32"),
        ("float", "olt", "0.0", "", "selp.f32"),
        ("float", "olt", "-0.0", "", "min.f32"),
        ("float", "olt", "0.0", "nsz", "min.f32"),
        ("float", "olt", "1.0", "", "min.f32"),
        ("double", "ogt", "0.0", "", "selp.f64"),
        ("<2 x half>", "ogt", "0.0", "", "max.f16x2"),
        ("<2 x half>", "olt", "0.0", "", "selp"),
        ("<2 x half>", "olt", "1.0", "", "min.f16x2"),
        ("<2 x bfloat>", "ogt", "0.0", "", "max.bf16x2"),
    ],
)
def test_min_and_max_are_used_where_they_give_the_same_zeros(kind, predicate, constant, flags, instruction):
    ptx = emit_ptx(selection(kind, predicate, constant, flags=flags), chip="sm_90a", ptx_version="8.0")
    assert instruction in ptx
    assert ("selp" in ptx) is (instruction.startswith("selp"))


def test_a_number_that_was_an_integer_has_no_negative_zero():
    text = """define float @chosen(float %x, i32 %n) {
      %y = sitofp i32 %n to float
      %better = fcmp {predicate} float %x, %y
      %best = select nnan i1 %better, float %x, float %y
      ret float %best
    }"""
    for predicate, kept in (("ogt", True), ("olt", False)):
        ptx = emit_ptx(text.replace("{predicate}", predicate), chip="sm_90a", ptx_version="8.0")
        assert ("selp" not in ptx) is kept
