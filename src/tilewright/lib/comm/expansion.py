"""From the operations `cute.allreduce`, `broadcast` and `scan`, whose scope is chosen, to the code of the scopes."""

from __future__ import annotations

from typing import Any

from tilewright.ir.expansions import Collective, LaunchFacts
from tilewright.lang import trace
from tilewright.lang.control import aliases
from tilewright.lang.numbers.numeric import BY_NAME, Boolean, Numeric, Uint32, Uint64
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lib.comm import block, cluster, grid, warp
from tilewright.lib.comm.participants import WARP, linear_thread

_WORDS: dict[int, type[Numeric]] = {32: Uint32, 64: Uint64}
_WORKSPACE_ALIGN = 8


def expand(found: Collective, facts: LaunchFacts, module: Any) -> list[Any]:
    """Build the code at the insertion point; the MLIR values of the results, of the types of the values."""
    program = trace.Trace(
        module,
        facts.arch,
        side="device",
        grid=facts.grid or (),
        block=facts.block or (),
        cluster=facts.cluster or (0, 0, 0),
        cooperative=facts.cooperative,
    )
    classes = [BY_NAME[name] for name in found.types]
    with trace.program(program), aliases.body():
        numbers = [_unpacked(value, cls) for value, cls in zip(found.values, classes, strict=True)]
        results = _BUILDERS[found.kind](found, tuple(numbers))
        return [_packed(number, value) for number, value in zip(results, found.values, strict=True)]


def _unpacked(value: Any, cls: type[Numeric]) -> Numeric:
    """A number of `cls` from its value, or from an integer of 32 or 64 bits that holds its bits."""
    if value.type == cls.mlir_type:
        return cls.from_ir(value)
    word = _WORDS[value.type.width].from_ir(value)
    if cls is Boolean:
        return Boolean(word != 0)
    if not cls.is_float:
        return cls(word)
    return cls(block.BITS[cls.width](word).bitcast(cls))


def _packed(number: Numeric, like: Any) -> Any:
    """The value of a result as its operand was given."""
    if like.type == type(number).mlir_type:
        return number.ir_value()
    cls = type(number)
    bits = number.bitcast(block.BITS[cls.width]) if cls.is_float else number
    return _WORDS[like.type.width](bits).ir_value()


def _workspace(found: Collective) -> Any:
    if found.workspace is None:
        return None
    return Pointer(found.workspace, Uint32, _space(found.workspace), _WORKSPACE_ALIGN)


def _space(address: Any) -> AddressSpace:
    return AddressSpace.gmem if '"gmem"' in str(address.type) else AddressSpace.generic


def _in_block(found: Collective) -> dict[str, Any]:
    """The arguments that say which threads of a block meet, and where."""
    if not found.group:
        return {}
    return {"threads": found.group, "barrier_id": linear_thread() // found.group + 1}


def _allreduce(found: Collective, x: tuple[Numeric, ...]) -> Any:
    ops = tuple(found.ops)
    if found.scope == "warp":
        return warp.warp_allreduce(x, ops, width=found.group or WARP)
    if found.scope == "block":
        function = block.block_reduce if found.mode == "first" else block.block_allreduce
        return function(x, ops, **_in_block(found))
    if found.scope == "cluster":
        return cluster.cluster_allreduce(x, ops, mode=found.mode)
    return grid.grid_allreduce(x, ops, _workspace(found), found.blocks)


def _broadcast(found: Collective, x: tuple[Numeric, ...]) -> Any:
    if found.scope == "warp":
        return warp.warp_broadcast(x, found.source, width=found.group or WARP)
    if found.scope == "block":
        return block.block_broadcast(x, found.source, **_in_block(found))
    if found.scope == "cluster":
        return cluster.cluster_broadcast(x, found.source)
    return grid.grid_broadcast(x, _workspace(found), found.source, found.blocks)


def _scan(found: Collective, x: tuple[Numeric, ...]) -> Any:
    ops = tuple(found.ops)
    if found.scope == "warp":
        return warp.warp_scan(x, ops, found.exclusive, width=found.group or WARP)
    if found.scope == "block":
        return block.block_scan(x, ops, found.exclusive, **_in_block(found))
    return cluster.cluster_scan(x, ops, found.exclusive)


_BUILDERS = {"allreduce": _allreduce, "broadcast": _broadcast, "scan": _scan}
