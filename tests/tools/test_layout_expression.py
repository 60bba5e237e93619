"""Expressions of `tilewright layout`."""

import pytest

from tilewright.base.errors import LayoutError
from tilewright.layout import Layout, composition, zipped_divide
from tilewright.tools.layout_expression import FUNCTIONS, evaluate


@pytest.mark.parametrize(
    "text", ["(4,8):(8,1)", "8:1", "((2,2),3):((1,4),8)", "S<3,3,3> o 0 o (8,64):(64,1)", "S<2,3,3>"]
)
def test_a_layout_is_itself(text):
    assert str(evaluate(text)) == text


@pytest.mark.parametrize(("text", "value"), [("7", 7), ("(4,(2,3))", (4, (2, 3))), ("(32,None,_)", (32, None, None))])
def test_tuples(text, value):
    assert evaluate(text) == value


def test_functions():
    assert evaluate("composition((4,8):(8,1), 8:2)") == composition(Layout((4, 8), (8, 1)), Layout(8, 2))
    divided = evaluate("zipped_divide((64,50):(50,1), (32,None))")
    assert divided == zipped_divide(Layout((64, 50), (50, 1)), (32, None))
    assert evaluate("size( coalesce((2,3):(1,2)) )") == 6
    assert str(evaluate("make_layout((4,8), stride=(8,1))")) == "(4,8):(8,1)"
    assert evaluate("logical_divide((16,16):(16,1), (4:1, 8:2))") == evaluate(
        "logical_divide((16,16):(16,1),(4:1,8:2),)"
    )


def test_functions_nest():
    assert str(evaluate("coalesce(composition((6,2):(8,2), (4,3):(3,1)))")) == str(
        evaluate("coalesce(((2,2),3):((24,2),8))")
    )


def test_every_listed_function_exists():
    assert all(callable(function) for function in FUNCTIONS.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("compositon(8:1, 4:1)", "did you mean composition?"),
        ("__import__(8:1)", "there is no layout function '__import__'"),
        ("composition(8:1)", "composition: "),
        ("(4,8):(8", "not a layout"),
        ("", "not a layout"),
        ("(4,6,8):(2,3,5) + 1", "not a layout"),
        ("composition((4,6,8):(2,3,5), 6:3)", "4"),
    ],
)
def test_errors(text, message):
    with pytest.raises(LayoutError) as error:
        evaluate(text)
    assert message in str(error.value)
