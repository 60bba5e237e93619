"""Products of a matrix of 16 bits and one of 8, which is converted on its way to the tensor cores.

On sm_90 A of a `wgmma` may come from registers: threads read its bytes from shared memory and convert them. So A is the
narrow matrix; where that is on the right, the transpose is computed, bᵀ · aᵀ. Elsewhere it is converted first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base import settings
from tilewright.kernels import gemm_sm90_calls, views
from tilewright.kernels.gemm import gemm, matrices_of, prepare
from tilewright.kernels.gemm_moves import with_k_inside
from tilewright.kernels.gemm_sm90_plans import Sm90Plan

NARROW, WIDE = ("int8", "float8_e4m3fn", "float8_e5m2"), ("float16", "bfloat16")
"""Element types of the one operand and of the other."""
_BYTE = 8
_calls: dict[Any, Any] = {}


def gemm_mixed(out: Any, a: Any, b: Any, plan: Sm90Plan | None = None, splits: bool = True) -> None:
    """out (..., M, N) = a (..., M, K) · b (..., K, N), of which one has elements of 8 bits; added in float32.

    `plan` overrides the choice; without `splits`, products along K are not shared by blocks (see `gemm.gemm`).
    """
    if views.dtype_of(a).width != _BYTE:
        out, a, b = out.swapaxes(-1, -2), b.swapaxes(-1, -2), a.swapaxes(-1, -2)
    if 0 in out.shape:
        return
    a = with_k_inside(a, -1)
    key = plan, splits, settings.get("arch"), *map(views.facts, (out, a, b))
    if key not in _calls:
        plans = [plan] if plan else plans_of(out, a, b, splits)
        views.keep(_calls, key, prepare(out, a, b, plans[0]) if plans else None)
    call = _calls[key]
    if call is not None:
        call.plain(out, a, b)
        return
    gemm(out, a.astype(b.dtype) if isinstance(a, np.ndarray) else a.to(b.dtype), b, splits=splits)


def plans_of(out: Any, a: Any, b: Any, splits: bool = True) -> list[Sm90Plan]:
    """The plans for a narrow `a`, the rule's choice first; none where it is converted first."""
    return gemm_sm90_calls.candidates(matrices_of((a, b, out), tuple(out.shape[:-2])), (a, b, out), splits)
