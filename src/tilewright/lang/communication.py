"""Collectives as operations of the program: `allreduce` and its kind say what is wanted; the pass
`communication-optimization` chooses how it is done (docs/communication.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.base.collectives import SCOPES
from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang import trace
from tilewright.lang.arch import WARP_SIZE
from tilewright.lang.collective_values import ops_of, taken_apart
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric, Uint32
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor

_LANES = (1, 2, 4, 8, 16, 32)


def allreduce(
    x: Any, op: Any = "add", scope: str = "auto", group: int | None = None, workspace: Any = None, *,
    loc: object = None, ip: object = None,
) -> Any:  # fmt: skip
    """Fold `x` over the threads of the scope. All of them must call it, and all get the same bits.

    Args:
        x: a number, a vector, or a tuple of them.
        op: add, mul, min, max, and, or, xor; for a tuple also a tuple of operations.
        scope: warp, block, cluster or grid; auto is the smallest that holds all threads of the launch, or of a group.
        group: a number of threads: each group of so many consecutive threads has a result of its own.
        workspace: global memory for a scope that needs it, see `cute.grid_workspace`.

    Raises:
        CompileError: an argument is wrong. What does not go with the launch, or lies in divergent control flow, is a
            PassError later.
    """
    trace.device("a collective")
    numbers, rebuild = taken_apart(x)
    ops = ops_of(x, op, numbers)
    attributes = {"scope": _scope(scope), "group": build.i32(_group(group, scope)), "mode": build.string("auto")}
    place = _workspace(workspace)
    return rebuild(_by_type("allreduce", numbers, ops, place, attributes))


def allreduce_sum(
    x: Any, scope: str = "auto", group: int | None = None, workspace: Any = None, *, loc: object = None,
    ip: object = None,
) -> Any:  # fmt: skip
    """`allreduce(x, "add")`."""
    return allreduce(x, "add", scope, group, workspace)


def broadcast(
    x: Any, source: int = 0, scope: str = "auto", group: int | None = None, workspace: Any = None, *,
    loc: object = None, ip: object = None,
) -> Any:  # fmt: skip
    """The `x` of thread `source`, in all threads of the scope. Other arguments, and errors, are those of `allreduce`.

    `source` counts lanes of a warp or threads of a block, x fastest; over a cluster or grid it counts blocks, whose
    first threads send.
    """
    if not isinstance(source, int) or isinstance(source, bool) or source < 0:
        raise CompileError(
            "the source of a broadcast is known while compiling",
            location=user_location(),
            values={"source": source},
            hint="cute.warp_broadcast and block_broadcast take any number",
        )
    trace.device("a collective")
    numbers, rebuild = taken_apart(x)
    attributes = {"scope": _scope(scope), "group": build.i32(_group(group, scope)), "source": build.i32(source)}
    return rebuild(_by_type("broadcast", numbers, None, _workspace(workspace), attributes))


def scan(
    x: Any, op: Any = "add", exclusive: bool = False, scope: str = "auto", group: int | None = None, *,
    loc: object = None, ip: object = None,
) -> Any:  # fmt: skip
    """Fold `x` over the threads up to this one, or, if `exclusive`, up to the one before.

    The other arguments are those of `allreduce`. There is no scan over a grid.
    """
    trace.device("a collective")
    if scope == "grid":
        raise CompileError(
            "there is no scan over a grid",
            location=user_location(),
            hint="scan each block, scope='block', and their totals in a second kernel",
        )
    numbers, rebuild = taken_apart(x)
    attributes = {
        "scope": _scope(scope), "group": build.i32(_group(group, scope)), "exclusive": build.i32(int(bool(exclusive)))
    }  # fmt: skip
    return rebuild(_by_type("scan", numbers, ops_of(x, op, numbers), None, attributes))


def _by_type(
    name: str, numbers: Sequence[Numeric], ops: Sequence[str] | None, workspace: Any, attributes: dict[str, Any]
) -> list[Numeric]:
    """One operation for the values of each type (those of an operation have one); passes merge them."""
    results: list[Any] = [None] * len(numbers)
    kinds = list(dict.fromkeys(type(number).mlir_type for number in numbers))
    for kind in kinds:
        chosen = [place for place, number in enumerate(numbers) if type(number).mlir_type == kind]
        values = [numbers[place].ir_value() for place in chosen]
        own = dict(attributes, types=build.string(",".join(type(numbers[place]).facts.name for place in chosen)))
        if ops is not None:
            own["op"] = build.string(",".join(ops[place] for place in chosen))
        groups = [values] if name == "scan" else [values, [] if workspace is None else [workspace]]
        made = build.cute(name, [kind] * len(values), groups, **own)
        for place, result in zip(chosen, made.results, strict=True):
            results[place] = type(numbers[place]).from_ir(result)
    return results


def _scope(scope: Any) -> Any:
    if scope not in SCOPES:
        raise CompileError(
            f"there is no scope {scope!r}", location=user_location(3), hint=f"one of {', '.join(SCOPES)}"
        )
    return build.string(scope)


def _group(group: Any, scope: str) -> int:
    """The size of a group, 0 for all of the scope."""
    if group is None:
        return 0
    if not isinstance(group, int) or isinstance(group, bool) or group < 1:
        raise CompileError(
            "group is a number of threads, known while compiling",
            location=user_location(3),
            values={"group": group},
            hint="a positive int, or leave group out for all threads of the scope",
        )
    fits = {"auto": True, "warp": group in _LANES, "block": group % WARP_SIZE == 0}.get(scope, False)
    if not fits:
        raise CompileError(
            f"there are no groups of {group} threads of scope {scope}",
            location=user_location(3),
            hint="groups of a warp are 1, 2, 4, 8, 16 or 32 lanes, those of a block whole warps; a cluster and a grid"
            " have none",
        )
    return group


def _workspace(memory: Any) -> Any:
    """The address of the workspace, or None."""
    if memory is None:
        return None
    pointer = memory.iterator if isinstance(memory, Tensor) else memory
    if not isinstance(pointer, Pointer) or pointer.memspace not in (AddressSpace.gmem, AddressSpace.generic):
        raise CompileError(
            "workspace is a tensor or a pointer in global memory",
            location=user_location(3),
            values={"got": memory},
            hint="as many Int64 as cute.grid_workspace(blocks, values) says, zero before the first use",
        )
    return pointer.recast(Uint32).with_alignment(8).value
