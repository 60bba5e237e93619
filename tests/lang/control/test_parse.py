"""Parsing while another thread, or a finalizer, parses too."""

import ast
import gc

import pytest

from tilewright.lang.rewrite.parse import parse

TEXT = "\n".join(f"def f{number}(x):\n    return [x + {number}, (x, {{x: -x}})]" for number in range(50))


class Cycle:
    """Garbage that only the collector finds: its finalizer runs wherever a collection starts."""

    def __init__(self, action):
        self.me = self
        self.action = action

    def __del__(self):
        self.action()


def parse_with_a_finalizer(action, monkeypatch):
    """`parse(TEXT)` while `action` runs in the middle of the construction of the tree."""
    original = ast.parse
    thresholds = gc.get_threshold()

    def first(text, file):
        monkeypatch.setattr(ast, "parse", original)
        gc.collect()
        gc.disable()
        Cycle(action)
        gc.set_threshold(200)
        gc.enable()
        return original(text, file)

    monkeypatch.setattr(ast, "parse", first)
    try:
        return parse(TEXT)
    finally:
        gc.set_threshold(*thresholds)


@pytest.mark.parametrize("parser", [parse, ast.parse])
def test_a_finalizer_may_parse(parser, monkeypatch):
    ran = []
    tree = parse_with_a_finalizer(lambda: ran.append(parser("x = [1]")), monkeypatch)
    assert len(ran) == 1
    assert ast.unparse(tree) == ast.unparse(ast.parse(TEXT))


def test_wrong_source_is_a_syntax_error():
    with pytest.raises(SyntaxError) as raised:
        parse("x = (", "somewhere.py")
    assert raised.value.filename == "somewhere.py"


def test_other_errors_of_the_parser_are_kept(monkeypatch):
    def broken(text, file):
        raise SystemError("something else")

    monkeypatch.setattr(ast, "parse", broken)
    with pytest.raises(SystemError, match="something else"):
        parse("x")
