"""Timed regions of kernels, as operations of the program. What records them is the target's part."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang import trace
from tilewright.lang.locations import user_location


class Region:
    """`with cute.profile("load"):` in a kernel: each warp's time in the block is recorded under the name.

    In host code the block times the kernels that are launched in it, each as a whole.
    """

    def __init__(self, name: str) -> None:
        if not name or not name.isprintable():
            raise CompileError(
                "a timed region needs a name of printable characters",
                location=user_location(),
                values={"name": repr(name)},
                hint='with cute.profile("load"): ...',
            )
        self.name = name
        self._outer = False

    def __enter__(self) -> Region:
        program = trace.current()
        if program.side == "device":
            _emit("begin", self.name)
        else:
            self._outer, program.profiled = program.profiled, True
        return self

    def __exit__(self, *error: Any) -> None:
        program = trace.current()
        if program.side == "device":
            _emit("end", self.name)
        else:
            program.profiled = self._outer


def mark_kernel() -> None:
    """Time the kernel that is being traced as a whole."""
    _emit("kernel", "")


def _emit(kind: str, region: str) -> None:
    build.cute("profile", (), (), kind=build.string(kind), region=build.string(region))
