"""Contraction: a product and the sum that takes it become one `fma`, with one rounding.

The option `fp_contract` allows it for device code (`on` is the default, as in CUDA C++), and `cute.fp_contract(False)`
forbids it for the operations made in a `with` block. What may be contracted carries `fastmath<contract>` from stage
`cute` on; LLVM decides. Host code computes as Python does, and never contracts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang import trace
from tilewright.lang.locations import user_location

if TYPE_CHECKING:
    from mlir import ir

NAME: Final = "fastmath"
_allowed: ContextVar[bool] = ContextVar("tilewright_fp_contract", default=True)


@contextmanager
def fp_contract(enabled: bool) -> Iterator[None]:
    """Allow or forbid contraction for the float operations that are traced inside the block.

    `fp_contract(True)` allows no more than the option of the compilation does.

    Raises:
        CompileError: `enabled` is not a bool.
    """
    if not isinstance(enabled, bool):
        raise CompileError(
            f"fp_contract takes True or False, not {enabled!r}",
            location=user_location(),
            hint="write `with cute.fp_contract(False):` around operations that must round one by one",
        )
    token = _allowed.set(enabled)
    try:
        yield
    finally:
        _allowed.reset(token)


def contraction() -> Mapping[str, ir.Attribute] | None:
    """The attributes of a sum, difference or product of floats that is made now."""
    if not _allowed.get() or not trace.tracing():
        return None
    program = trace.current()
    if program.side == "host" or not program.contract:
        return None
    return {NAME: build.attribute("#arith.fastmath<contract>")}
