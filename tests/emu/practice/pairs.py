"""Correct kernels with places that can be wrong.

`<<right||wrong||kinds||line||thread>>` in a kernel is such a place: the right text, the wrong one, the kinds of finding
that the wrong one may give, and at seed 0 a piece of the PTX line and of the thread named (both may be left out).
`{leader L}` sends all but thread 0 to L; `{wait W b p}` waits at label W for the phase p of the mbarrier at b.

Registers set at the start: t, w, l (thread, warp, lane), b, n (block, blocks), s (the array `s`), r59 (`s` + 4 t),
a, y, c (the arguments), d37, d36 (`a` + 4 t, `c` + 4 t).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tilewright.emulate import run_ptx

U32 = np.uint32
HOLE = re.compile(r"<<(.*?)>>", re.DOTALL)
LEADER = re.compile(r"\{leader (\w+)\}")
WAIT = re.compile(r"\{wait (\w+) (\S+) (\w+)\}")
SHARED = ".shared .align 1024 .b8 s[8192];"
HEAD = """.version 8.6
.target sm_90a
.address_size 64
GLOBALS
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)
{
  .reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<60>, %t, %w, %l, %b, %n, %s; .reg .b64 %d<40>, %a, %y, %c;
  .reg .f32 %f<40>;
  SHARED
  ld.param.u64 %a, [a]; ld.param.u64 %y, [b]; ld.param.u64 %c, [c];
  mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; and.b32 %l, %t, 31; mov.u32 %b, %ctaid.x; mov.u32 %n, %nctaid.x;
  mov.u32 %s, s; mad.lo.u32 %r59, %t, 4, %s;
  mul.wide.u32 %d38, %t, 4; add.u64 %d37, %a, %d38; add.u64 %d36, %c, %d38;
"""


class Slip(NamedTuple):
    """A broken kernel, and what must be found: one of `kinds`; at seed 0 with these words, and of this thread."""

    what: str
    text: str
    kinds: list[str]
    line: str
    thread: str


def arguments() -> list[Any]:
    """a = 0, 1, 2, ..., 64 zeros, 4,096 zeros."""
    return [np.arange(4096, dtype=U32), np.zeros(64, U32), np.zeros(4096, U32)]


def read_only() -> list[Any]:
    """The same, where `a` may not be written."""
    a, b, c = arguments()
    a.setflags(write=False)
    return [a, b, c]


@dataclass(frozen=True)
class Pair:
    """A kernel, its launch, and how `c` must begin after it."""

    name: str
    code: str
    grid: int = 1
    block: int | tuple[int, int] = 64
    cluster: int = 1
    smem: int = 0
    wanted: Any = None
    globals: str = ""
    shared: str = SHARED
    args: Callable[[], list[Any]] = arguments
    lockstep: bool = False

    def text(self, wrong: int = -1) -> str:
        """The kernel, right but for the place of this number."""
        numbers = iter(range(99))
        code = HOLE.sub(lambda m: m.group(1).split("||")[next(numbers) == wrong], self.code)
        code = LEADER.sub(r"setp.ne.u32 %p19, %t, 0; @%p19 bra \1;", code)
        code = WAIT.sub(r"\1: mbarrier.try_wait.parity.shared.b64 %p18, [\2], \3; @!%p18 bra \1;", code)
        head = HEAD.replace("GLOBALS", self.globals).replace("SHARED", self.shared)
        return f"{head}{code}\nEND: ret;\n}}\n"

    def slips(self) -> Iterator[Slip]:
        """The broken kernels, each with one place wrong."""
        for number, hole in enumerate(HOLE.finditer(self.code)):
            right, wrong, kinds, line, thread = (part.strip() for part in (*hole.group(1).split("||"), "", "")[:5])
            what = f"{self.name}: {right[:60]} -> {wrong[:60]}"
            yield Slip(what, self.text(number), kinds.split(","), line, thread)

    def run(self, text: str, seed: int) -> np.ndarray:
        """What is in `c` after a run."""
        args = self.args()
        run_ptx(text, "k", self.grid, self.block, args, self.cluster, self.smem, seed=seed, limit=2_000_000,
                lockstep=self.lockstep)  # fmt: skip
        return np.asarray(args[2])
