"""How many bits an element type takes, from whatever names it."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import LayoutError

_MOST_BITS = 1024


def bits_of(dtype: Any) -> int:
    """The bits of an element: an int is a count of bits; else a type with `width`, or a short name such as `bf16`.

    Raises:
        LayoutError: it is none of these.
    """
    width = dtype if isinstance(dtype, int) else getattr(dtype, "width", None)
    if isinstance(dtype, str):
        width = _bits_of_name(dtype)
    if not isinstance(width, int) or isinstance(width, bool) or not 1 <= width <= _MOST_BITS:
        raise LayoutError(
            "not an element type",
            values={"dtype": dtype},
            hint="give bits from 1 to 1024, a numeric type, or a name such as 'f16'",
        )
    return width


def _bits_of_name(name: str) -> int | None:
    """The number after the letters: `f8e4m3` has 8 bits, `bf16` 16; `bool` takes a byte, `tf32` 32 bits."""
    if name == "bool":
        return 8
    kind = name.rstrip("0123456789abcdefghijklmnopqrstuvwxyz")
    letters = len(name) - len(name.lstrip("abcdefghijklmnopqrstuvwxyz"))
    end = letters
    while end < len(name) and name[end].isdigit():
        end += 1
    return int(name[letters:end]) if not kind and name[:letters] in _KINDS and 0 < end - letters < 5 else None


_KINDS = ("i", "u", "f", "bf", "tf")
