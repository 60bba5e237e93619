"""Compiles before and after forks: `python forking.py BEFORE AFTER`, each a way of `WAYS` or a pair joined by `+`."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute


@cute.kernel
def kernel(x: cute.Tensor, out: cute.Tensor, factor: cutlass.Constexpr):
    i = cute.arch.thread_idx()[0]
    out[i] = x[i] * factor


@cute.jit
def host(x: cute.Tensor, out: cute.Tensor, factor: cutlass.Constexpr):
    kernel(x, out, factor).launch(grid=1, block=8)


def arrays():
    return np.arange(8, dtype=np.float32), np.zeros(8, np.float32)


def direct(factor):
    x, out = arrays()
    host(x, out, factor)
    return float(out[7])


def compiled(factor):
    x, out = arrays()
    cute.compile(host, x, out, factor, target="emu")(x, out)
    return float(out[7])


def stages(factor):
    """By way of the assembler, which runs in a process of its own."""
    x, out = arrays()
    made = cute.compile(host, x, out, factor, target="emu")
    assert made.stages["cubin"].startswith(b"\x7fELF")
    return 7.0 * factor


KEPT = {}


def emulated(factor):
    """A function compiled before the fork where there was one."""
    x, out = arrays()
    made = KEPT.setdefault("made", cute.compile(host, x, out, 3, target="emu"))
    made(x, out)
    return float(out[7]) * factor / 3


def nothing(factor):
    return 7.0 * factor


def threaded(factor):
    """While another thread compiles one kernel after the other."""
    if "thread" not in KEPT:
        KEPT["thread"] = threading.Thread(target=compile_on, daemon=True)
        KEPT["thread"].start()
    return direct(factor)


def compile_on():
    for number in range(100, 200):
        compiled(number)


WAYS = {way.__name__: way for way in (direct, compiled, stages, emulated, nothing, threaded)}


def work(item):
    name, factor = item
    return WAYS[name](factor)


def main(before: str, after: str, method: str) -> None:
    for name in before.split("+"):
        assert work((name, 3)) == 21.0
    items = [(name, factor) for name in after.split("+") for factor in (5, 6)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(work, items).get(timeout=60)
        assert found == [7.0 * factor for _, factor in items], found
        for name in before.split("+"):  # the parent goes on, beside its children
            assert work((name, 9)) == 63.0
        assert pool.map_async(work, items).get(timeout=60) == found
    child = os.fork() if method == "fork" else 0
    if child:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    elif method == "fork":
        grandchild = os.fork()
        assert work(("direct", 11)) == 77.0
        if grandchild:
            assert os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 0
        os._exit(0)
    print("right")


if __name__ == "__main__":
    main(*sys.argv[1:4])
