"""Ends compilations and calls at many instants by the exception of a signal's handler.

`python interrupting.py FIRST COUNT MICROSECONDS KIND`

Prints how many were ended, and raises where one came out as something else, or where the process cannot compile after.
"""

from __future__ import annotations

import signal
import sys

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute


class Stop(BaseException):
    """What the signal's handler raises."""


class Late(Exception):
    """The same as an error."""


KINDS = {"keyboard": KeyboardInterrupt, "base": Stop, "error": Late}


@cute.kernel
def kernel(x: cute.Tensor, out: cute.Tensor, factor: cutlass.Constexpr):
    i = cute.arch.thread_idx()[0]
    shared = cutlass.Float32(0)
    for j in cutlass.range(4):
        if j % 2 == 0:
            shared = shared + x[i] * factor
        else:
            shared = shared - x[j]
    if i < cute.size(out):
        out[i] = shared


@cute.jit
def direct(x: cute.Tensor, out: cute.Tensor, factor: cutlass.Constexpr):
    if cutlass.const_expr(factor > 0):
        kernel(x, out, factor).launch(grid=1, block=32)


def compiled(x, out, factor):
    cute.compile(direct, x, out, factor)(x, out)


def check(call, factor):
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    call(x, out, factor)
    assert (out == 2 * factor * x - 4).all(), out


def main(first: int, count: int, step: int, kind: str) -> None:
    def handler(signum, frame):
        raise KINDS[kind]

    signal.signal(signal.SIGALRM, handler)
    ended, kept = 0, []
    for number in range(first, first + count):
        call = (direct, compiled)[number % 2]
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, max(number * step, 1) / 1e6)
                check(call, number + 1)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KINDS[kind] as error:
            ended += 1
            kept = [*kept[-3:], error]  # with what its traceback holds
        if number % 8 == 0:
            check(direct, number + 1)
    check(direct, 3)
    check(compiled, 3)
    print(ended, "of", count, "ended")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), sys.argv[4])
