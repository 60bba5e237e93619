"""Pass Name: verify-protocol
Purpose: Prove that the three kernels of a core keep the protocol: always on, and the last pass.

Input Expectations:
- The finished kernels

Output Guarantees:
- For every circular buffer, pushes and pops balance, nothing waits for more than it can ever get, and no page is used,
  pushed or packed that nothing wrote
- A read barrier stands between a read and its push, a write barrier between a write and its pop
- DST goes through acquire, commit, wait, release in that order, and holds what is computed into it
- The engines are configured for what they do
- The kernels do not deadlock: they run as processes that exchange pages, with the user's loops cut at 3 rounds and the
  core's at 2 blocks. Turns cannot change the outcome, see `simulator.schedule`, so one run decides

Example:
    Before: a reader without tt.noc.read_barrier
    After:  PassError: the reader of gemm_kernel pushes pages of cb_a before the data has arrived

Testing:
    pytest tests/tenstorrent/test_verify_protocol.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.base.errors import PassError
from tilewright.hw.tensix import TILE
from tilewright.targets.tenstorrent.context import PassContext
from tilewright.targets.tenstorrent.passes._common import validate_cb_ids
from tilewright.targets.tenstorrent.passes.roles import ROLES
from tilewright.targets.tenstorrent.passing import known, module_pass
from tilewright.targets.tenstorrent.simulator.core import Core
from tilewright.targets.tenstorrent.simulator.faults import Fault
from tilewright.targets.tenstorrent.simulator.program import Program
from tilewright.targets.tenstorrent.simulator.schedule import run_core
from tilewright.targets.tenstorrent.tir.nodes import IRModule, PrimFunc

TRIPS, BLOCKS = 3, 2


@module_pass(opt_level=0)
def VerifyProtocol(mod: IRModule, ctx: PassContext) -> IRModule:
    """Refuse kernels that break a rule."""
    for name, kernels in by_kernel(mod).items():
        _check_roles(name, kernels)
        for kernel in kernels:
            validate_cb_ids(kernel)
        _run(name, kernels, ctx)
    return mod


def by_kernel(mod: IRModule) -> dict[str, list[PrimFunc]]:
    """The kernels of each program of a core."""
    found: dict[str, list[PrimFunc]] = {}
    for item in mod.prim_funcs:
        if "tt.kernel" in item.attrs:
            found.setdefault(str(item.attrs["tt.kernel"]), []).append(item)
    return found


def _check_roles(name: str, kernels: Sequence[PrimFunc]) -> None:
    roles = [item.attrs.get("tt.kernel_role") for item in kernels]
    if sorted(map(str, roles)) != sorted(ROLES):
        raise PassError(
            f"{name} has kernels for {', '.join(map(str, roles)) or 'no role'}", hint=f"a core runs {', '.join(ROLES)}"
        )


def tensor_pages(kernel: PrimFunc) -> dict[str, int]:
    """The tiles of each tensor in memory."""
    return {
        item.name: math.prod(item.attrs["tt.padded_shape"]) // TILE**2
        for item in kernel.buffer_map.values()
        if "tt.padded_shape" in item.attrs
    }


def _run(name: str, kernels: Sequence[PrimFunc], ctx: PassContext) -> None:
    first = kernels[0]
    most = max(part["count"] for part in first.attrs["tt.work_partition"]["cores"])
    arguments: dict[str, Any] = dict.fromkeys((item.name for item in first.params), 1)
    arguments |= {"start_id": 0, "count": min(most, BLOCKS)}
    core = Core(first.attrs["tt.cb_assignment"], tensor_pages(first), ctx.dst_capacity)
    try:
        run_core(core, [Program(item, TRIPS) for item in kernels], arguments)
    except Fault as fault:
        raise protocol_error(name, fault) from fault


def protocol_error(name: str, fault: Fault) -> PassError:
    """A fault as an error of the compilation."""
    subject = f"the {fault.role} of {name} {fault.message}" if fault.role else f"{name}: {fault.message}"
    return PassError(subject, location=fault.location, values=fault.values, hint=fault.hint or None)


known(VerifyProtocol)
