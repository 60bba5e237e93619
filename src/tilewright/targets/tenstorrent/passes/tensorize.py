"""Pass Name: tensorize
Purpose: Turn what is computed with the user's tiles into operations on tiles of 32 x 32 in circular buffers and DST.

Input Expectations:
- Loads and stores are tt.read_to_cb and tt.write_from_cb; everything between has values of tile types

Output Guarantees:
- No value of a tile type is left: operands are in circular buffers, results in DST, from where tt.pack takes them
- A sum that a loop carries stays in DST
- tt.consume says where the compute kernel begins to need what a circular buffer holds
- What the machine does not do is an error at the user's line

Example:
    Before: v2 = arith.addf(v0, v1)
            tt.write_from_cb(cb_c, c, i, j, v2)
    After:  tt.fpu.add(cb_a, cb_b, 0, 0, 0, bcast='none')
            tt.pack(0, cb_c)
            tt.write_from_cb(cb_c, c, i, j)

Testing:
    pytest tests/tenstorrent/test_tensorize.py
"""

from __future__ import annotations

from typing import Any

from tilewright.targets.tenstorrent.passes._common import prune
from tilewright.targets.tenstorrent.passes.tile_values.planner import Planner
from tilewright.targets.tenstorrent.passing import func_pass, known
from tilewright.targets.tenstorrent.tir.nodes import PrimFunc


@func_pass(opt_level=0)
def Tensorize(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
    """Compute by the tile engines."""
    return func.with_body(prune(Planner(func).body()))


known(Tensorize)
