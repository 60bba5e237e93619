"""Evaluates what `tilewright layout` is given: a layout as CuTe prints it, or functions of the algebra applied to some.

    (4,8):(8,1)
    S<3,3,3> o 0 o (8,64):(64,1)
    composition((4,8):(8,1), 8:2)
    zipped_divide((64,50):(50,1), (32,None))
    make_layout((4,8), stride=(8,1))

Nothing else of Python is understood: no names, no operators.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from typing import Any

import tilewright.layout as algebra
from tilewright.base.errors import LayoutError

CALL = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*\((?P<arguments>.*)\)", re.DOTALL)
BEGUN_CALL = re.compile(r"[A-Za-z_]\w*\s*\(")
KEYWORD = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*=(?P<value>.*)", re.DOTALL)
NONE = ("None", "_")
OPEN, CLOSE = "(<", ")>"

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(algebra, name)
    for name in (
        "append", "blocked_product", "ceil_div", "coalesce", "complement", "composition", "congruent", "cosize",
        "crd2idx", "depth", "dice", "domain_offset", "downcast", "filter", "filter_zeros", "flat_divide",
        "flat_product", "flatten", "get", "group_modes", "idx2crd", "left_inverse", "local_tile", "logical_divide",
        "logical_product", "make_identity_layout", "make_layout", "make_layout_like", "make_layout_tv",
        "make_ordered_layout", "make_swizzle", "max_common_layout", "max_common_vector", "nullspace", "prepend",
        "product", "raked_product", "rank", "recast_layout", "right_inverse", "round_up", "select", "shape_div",
        "size", "slice_", "tile_to_shape", "tiled_divide", "tiled_product", "upcast", "weakly_congruent",
        "zipped_divide", "zipped_product",
    )
}  # fmt: skip
"""The functions that may be called, by their CuTe names."""


MOST_DEPTH = 64
"""The deepest nesting of brackets."""


def evaluate(text: str) -> Any:
    """The layout, tuple or number that `text` stands for. Raises LayoutError where it is not understood."""
    if max((depth for _, depth in nesting(text)), default=0) > MOST_DEPTH:
        raise LayoutError(f"brackets nest at most {MOST_DEPTH} deep", values={"text": f"{text[:60]}..."})
    return _evaluate(text)


def _evaluate(text: str) -> Any:
    text = text.strip()
    call = CALL.fullmatch(text)
    if call is not None and encloses(text[call.end("name") :].strip()):
        return _call(call["name"], call["arguments"])
    if text in NONE:
        return None
    if encloses(text):
        return tuple(_evaluate(item) for item in split(text[1:-1]))
    if BEGUN_CALL.match(text):
        reason = "its brackets do not match" if unbalanced(text) else "something stands behind it"
        raise LayoutError("not a call of a function: " + reason, values={"text": text},
                          hint="write function(layout, ...): zipped_divide((8,8):(8,1), (2,4))")  # fmt: skip
    return algebra.parse(text)


def unbalanced(text: str) -> bool:
    """Whether a bracket is not closed, or closed without being open."""
    depths = [depth for _, depth in nesting(text)]
    return depths[-1] != 0 or min(depths) < 0


def _call(name: str, arguments: str) -> Any:
    function = FUNCTIONS.get(name)
    if function is None:
        close = difflib.get_close_matches(name, FUNCTIONS, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"functions: {', '.join(FUNCTIONS)}"
        raise LayoutError(f"there is no layout function {name!r}", hint=hint)
    positional, keywords = [], {}
    for item in split(arguments):
        keyword = KEYWORD.fullmatch(item)
        if keyword is not None:
            keywords[keyword["name"]] = _evaluate(keyword["value"])
        else:
            positional.append(_evaluate(item))
    try:
        return function(*positional, **keywords)
    except TypeError as error:
        raise LayoutError(f"{name}: {error}", hint="arguments are layouts, tuples, numbers or None") from error


def encloses(text: str) -> bool:
    """Whether the first character is a bracket that the last one closes."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depths = [depth for _, depth in nesting(text)]
    return depths[-1] == 0 and all(depth > 0 for depth in depths[:-1])


def split(text: str) -> list[str]:
    """The parts between commas outside brackets; a comma after the last part is allowed."""
    parts = [""]
    for char, depth in nesting(text):
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    parts = [part.strip() for part in parts]
    return parts[:-1] if parts[-1] == "" else parts


def nesting(text: str) -> Iterator[tuple[str, int]]:
    """Each character with the depth of brackets after it."""
    depth = 0
    for char in text:
        depth += (char in OPEN) - (char in CLOSE)
        yield char, depth
