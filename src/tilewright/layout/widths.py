"""How many bits an element type takes, from whatever names it."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.base.signature import MACHINE_TYPE

_DIGITS = "0123456789"


def bits_of(dtype: Any) -> int:
    """The bits of an element: an int is a count of bits; else a type with `width`, or a short name such as `bf16`.

    Raises:
        LayoutError: it is none of these.
    """
    width = dtype if isinstance(dtype, int) else getattr(dtype, "width", None)
    if isinstance(dtype, str):
        width = _bits_of_name(dtype)
    if not isinstance(width, int) or isinstance(width, bool) or width < 1:
        raise LayoutError(
            "not an element type", values={"dtype": dtype}, hint="give bits, a numeric type, or a name such as 'f16'"
        )
    return width


def _bits_of_name(name: str) -> int | None:
    """The first number in the name: `f8e4m3` has 8 bits; `bool` takes a byte, `tf32` 32 bits."""
    if name == "bool":
        return 8
    if name not in MACHINE_TYPE:
        return None
    digits = name.lstrip("abcdefghijklmnopqrstuvwxyz")
    end = next((place for place, char in enumerate(digits) if char not in _DIGITS), len(digits))
    return int(digits[:end])
