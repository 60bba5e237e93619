"""With `thread_clock`, clock64 counts what each thread has executed."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.emulate import run_ptx

PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry count(.param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  .reg .b64 %d<7>;
  ld.param.u64 %d1, [out];
  mov.u32 %r1, %tid.x;
  mov.u64 %d2, %clock64;
  mov.u32 %r2, 0;
LOOP:
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  add.u32 %r2, %r2, 1;
  bra.uni LOOP;
DONE:
  bar.sync 0;
  mov.u64 %d3, %clock64;
  sub.u64 %d4, %d3, %d2;
  mul.wide.u32 %d5, %r1, 8;
  add.u64 %d6, %d1, %d5;
  st.global.u64 [%d6], %d4;
  ret;
}
"""


@pytest.mark.parametrize("seed", [0, 3])
def test_each_thread_counts_its_own_instructions(seed):
    out = np.zeros(70, np.uint64)
    run_ptx(PTX, "count", 1, 70, [out], thread_clock=True, seed=seed)
    # The clock itself, mov, four for each turn of the loop, two for the last look, the barrier.
    assert out.tolist() == [2 + 4 * turns + 2 + 1 for turns in range(70)]


def test_otherwise_the_clock_is_that_of_the_launch():
    out = np.zeros(70, np.uint64)
    run_ptx(PTX, "count", 1, 70, [out])
    assert len(set(out.tolist())) == 1
