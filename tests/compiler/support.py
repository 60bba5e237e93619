"""What the tests of the spine share: kernels, user ops, and checks on errors."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import TilewrightError
from tilewright.ir import mlir

THREADS = 64


@cute.kernel
def double_kernel(x: cute.Tensor, out: cute.Tensor):
    i = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    if i < cute.size(out):
        out[i] = x[i] + x[i]


@cute.jit
def double(x: cute.Tensor, out: cute.Tensor):
    double_kernel(x, out).launch(grid=(cute.ceil_div(cute.size(out), THREADS), 1, 1), block=(THREADS, 1, 1))


def floats(n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """An input and an output of float32."""
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


def launched(body: Callable[..., Any], *, block: Any = (32, 1, 1), grid: Any = (1, 1, 1), **launch: Any) -> Any:
    """A jit function that launches `body` as a kernel with one tensor."""
    kernel = cute.kernel(body)

    @cute.jit
    def launcher(out: cute.Tensor):
        kernel(out).launch(grid=grid, block=block, **launch)

    return launcher


def run(body: Callable[..., Any], out: np.ndarray, **launch: Any) -> np.ndarray:
    """Run `body` as a kernel on `out`, in place."""
    cute.compile(launched(body, **launch), out)(out)
    return out


@cutlass.dsl_user_op
def assembly(text: str, constraints: str, *operands: Any, loc=None, ip=None) -> Any:
    """Inline assembly with one Int32 result."""
    values = [operand.ir_value() for operand in operands]
    i32 = mlir.ir.IntegerType.get_signless(32)
    result = mlir.llvm.inline_asm(i32, values, text, constraints, has_side_effects=True, loc=loc, ip=ip)
    return cutlass.Int32(result)


def refused(action: Callable[[], Any], kind: type[TilewrightError], *words: str, hint: str = "") -> Any:
    """The error of `action`, of this kind, with all these words.

    It must name the line that the calling test marks `# here`, or that of `action` itself.
    """
    with pytest.raises(kind) as caught:
        action()
    error, text = caught.value, str(caught.value)
    frame = sys._getframe(1)
    lines, first = inspect.getsourcelines(frame.f_code)
    marked = [first + number for number, line in enumerate(lines) if "# here" in line]
    marked = marked or [action.__code__.co_firstlineno]
    assert error.location is not None, text
    assert error.location.file == frame.f_code.co_filename
    assert [error.location.line] == marked, text
    for word in words:
        assert word in text, text
    assert hint in (error.hint or ""), text
    for word in ("scf.", "arith.", "loc(", "Traceback"):
        assert word not in text, text
    return error
