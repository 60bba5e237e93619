"""Fractions as scales, and tuples of copies."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import product

import pytest

from tilewright.base.errors import ArgumentError, LayoutError
from tilewright.layout import Layout, Ratio, ScaledBasis, crd2idx, repeat, repeat_as_tuple

NUMBERS = [number for number in range(-4, 5) if number]


@pytest.mark.parametrize(("numerator", "denominator"), list(product([0, *NUMBERS], NUMBERS)))
def test_ratios_are_fractions(numerator, denominator):
    ratio, exact = Ratio(numerator, denominator), Fraction(numerator, denominator)
    assert ratio.is_integral() is (exact.denominator == 1)
    assert (ratio.reduced().numerator, ratio.reduced().denominator) == (exact.numerator, exact.denominator)
    assert (ratio.to(float), ratio.to(int), ratio.to(Ratio)) == (float(exact), exact.__floor__(), ratio)
    assert ratio == ratio.reduced()
    assert hash(ratio) == hash(ratio.reduced())
    for other in NUMBERS:
        assert ratio * other == other * ratio == Ratio((exact * other).numerator, (exact * other).denominator)
        assert (ratio == other) is (exact == other)


def test_products_stay_as_they_are_written():
    assert str(Ratio(1, 2) * Ratio(3, 4)) == "3/8"
    assert str(Ratio(2, 3) * 6) == "12/3"
    assert pickle.loads(pickle.dumps(Ratio(2, 4))).denominator == 4


def test_a_ratio_scales_a_basis():
    half = ScaledBasis(Ratio(1, 2), 1)
    assert (str(half), str(3 * half), half.is_static()) == ("1/2@1", "3/2@1", True)
    assert half == ScaledBasis(Ratio(2, 4), 1)
    assert crd2idx((2, 3), Layout((4, 8), (ScaledBasis(2, 0), ScaledBasis(1, 1)))) == (4, 3)
    assert crd2idx(3, Layout(4, ScaledBasis(Ratio(1, 2), 0))) == (Ratio(3, 2),)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: Ratio(1.0, 2), ArgumentError, "a Ratio is of two ints"),
        (lambda: Ratio(1, 0), ArgumentError, "the denominator of a Ratio is 0"),
        (lambda: Ratio(1, 2).to(str), ArgumentError, "becomes a Ratio, float or int"),
        (lambda: ScaledBasis(1, "x"), ArgumentError, "the mode of a ScaledBasis"),
        (lambda: ScaledBasis(1, [0, 1.5]), ArgumentError, "the mode of a ScaledBasis"),
        (lambda: ScaledBasis(1, 0).to(int), LayoutError, "a ScaledBasis becomes a ScaledBasis"),
    ],
)
def test_wrong_ratios(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()


def test_repeat():
    assert (repeat(7, 3), repeat(7, 1), repeat((1, 2), 2)) == ((7, 7, 7), 7, ((1, 2), (1, 2)))
    assert (repeat_as_tuple(7, 1), repeat_as_tuple(7, 0)) == ((7,), ())
