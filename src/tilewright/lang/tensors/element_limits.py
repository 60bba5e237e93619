"""How many elements one thread holds and moves at a time: what is unrolled must end."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.layout import Layout, size

MOST_ELEMENTS = 1 << 16
"""Of a value in registers, and of a copy: each is an instruction or a part of one."""

MOST_ITERATIONS = 1 << 20
"""Of a loop that is unrolled while tracing."""

MOST_BYTES = 512 << 10
"""Of a tensor of one thread: its local memory (CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability")."""


def check_unrolled(count: int, what: str, shown: Any) -> None:
    """Refuse to write out more than `MOST_ELEMENTS` elements.

    Raises:
        CompileError: there are more.
    """
    if count > MOST_ELEMENTS:
        raise CompileError(
            f"{what} of {count} elements by one thread",
            location=user_location(),
            values={"tensor": shown, "at most": MOST_ELEMENTS},
            hint="give each thread its part: cute.local_tile, cute.local_partition or a tiled copy divide a tensor",
        )


def value_shape(shape: Any) -> tuple[Any, ...]:
    """The shape of a TensorSSA: extents known while tracing, at least one element.

    Raises:
        LayoutError: an extent is no integer.
        CompileError: one is known only at run time, or there are no elements, or too many.
    """
    modes = Layout(shape if isinstance(shape, tuple | list) else (shape,)).shape
    count = size(modes)
    if not isinstance(count, int):
        raise CompileError(
            "a value whose shape is known only at run time",
            location=user_location(),
            values={"shape": modes},
            hint="registers have no run-time extents: take a static tile, and leave out elements by predicates",
        )
    if count == 0:
        raise CompileError(
            "a value of no elements",
            location=user_location(),
            values={"shape": modes},
            hint="guard it by a compile-time `if const_expr(...)`",
        )
    check_unrolled(count, "a value", modes)
    return tuple(modes)
