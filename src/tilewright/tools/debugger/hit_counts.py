"""At which of its times a breakpoint counts: `3` the third, `>= 3` from then on, `% 3` each third."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Final

from tilewright.base.errors import ArgumentError

_FORM: Final = re.compile(r"\s*(==|>=|<=|>|<|=|%|)\s*(\d+)\s*")
_TESTS: Final[dict[str, Callable[[int, int], bool]]] = {
    "": operator.eq, "=": operator.eq, "==": operator.eq, ">=": operator.ge, "<=": operator.le, ">": operator.gt,
    "<": operator.lt, "%": lambda count, number: count % number == 0,
}  # fmt: skip


def counts(text: str, count: int) -> bool:
    """Whether a breakpoint counts when threads come by for the `count`th time.

    Raises:
        ArgumentError: the text says no such thing.
    """
    found = _FORM.fullmatch(text)
    if found is None or (found[1] == "%" and int(found[2]) == 0):
        raise ArgumentError(f"{text!r} is no hit count", hint="3 (the third time), >= 3, or % 3 (each third time)")
    return _TESTS[found[1]](count, int(found[2]))
