"""Pass Name: tile-dfg
Purpose: Find who produces and who consumes each circular buffer, and give it an id, a size and a place in L1.

Input Expectations:
- Operations on circular buffers, as tensorize leaves them

Output Guarantees:
- tt.tile_dfg: nodes (tensors, circular buffers, roles) and edges (from, to) of the flow of tiles
- Each tt.alloc_cb has id (the reader's 0 to 15, others 16 to 31), pages, page_size; tt.cb_assignment lists them
- Buffers between roles hold two blocks, so that one is filled while the other is used
- All of them fit into L1

Example:
    Before: cb_a = tt.alloc_cb(format='bf16', tiles=2, name='a', kind='input')
    After:  cb_a = tt.alloc_cb(format='bf16', tiles=2, name='a', kind='input', id=0, pages=4, page_size=2048)

Testing:
    pytest tests/tenstorrent/test_tile_dfg.py
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.base.errors import PassError
from tilewright.hw.tensix import FORMATS, TILE
from tilewright.targets.tenstorrent.context import PassContext
from tilewright.targets.tenstorrent.passes._common import validate_cb_ids
from tilewright.targets.tenstorrent.passes.roles import transfers
from tilewright.targets.tenstorrent.passing import func_pass, known
from tilewright.targets.tenstorrent.tir.nodes import Call, LetStmt, PrimFunc, Stmt, Var
from tilewright.targets.tenstorrent.tir.visitors import IRMutator, called, calls, walk

FIRST_OUTPUT = 16
_CONSTANT = "constant"


class _Assign(IRMutator):
    """Writes ids and sizes into allocations."""

    def __init__(self, entries: dict[Var, dict[str, Any]]) -> None:
        self.entries = entries

    def visit_let(self, op: LetStmt) -> Stmt | None:
        found = called(op)
        if found is None or op.var not in self.entries:
            return super().visit_let(op)
        entry = self.entries[op.var]
        attrs = found.attrs.updated({key: entry[key] for key in ("id", "pages", "page_size")})
        return replace(op, value=replace(found, attrs=attrs))


@func_pass(opt_level=0)
def TileDfg(func: PrimFunc, mod: Any, ctx: PassContext) -> PrimFunc:
    """Assign the circular buffers."""
    flows = _flows(func)
    entries: dict[Var, dict[str, Any]] = {}
    free = {True: 0, False: FIRST_OUTPUT}
    for item in walk(func.body):
        found = called(item) if isinstance(item, LetStmt) else None
        if found is None or found.op.name != "tt.alloc_cb":
            continue
        flow = flows.get(item.var)
        if flow is None or not (flow["producer"] and flow["consumer"]):
            missing = "consumer" if flow and flow["producer"] else "producer"
            raise PassError(
                f"circular buffer {found.attrs['name']} has no {missing}",
                location=item.location,
                hint="every tile that is read is used, and every tile that is used is read",
            )
        by_reader = flow["producer"] == "reader"
        entries[item.var] = _entry(item.var, found, flow, free[by_reader])
        free[by_reader] += 1
    if free[True] > FIRST_OUTPUT:
        raise PassError(
            f"CB IDs exceed limit: {free[True]} circular buffers of the reader, there are {FIRST_OUTPUT}",
            location=func.location or _place(func),
            hint="load fewer tensors in one kernel",
        )
    _check_memory(func, ctx, entries)
    made = func.with_body(_Assign(entries).visit_body(func.body)).with_attr({
        "tt.cb_assignment": list(entries.values()),
        "tt.tile_dfg": _graph(func, entries),
    })  # fmt: skip
    validate_cb_ids(made)
    return made


def _place(func: PrimFunc) -> Any:
    return next((item.location for item in calls(func.body, "tt.read_to_cb")), None)


def _flows(func: PrimFunc) -> dict[Var, dict[str, str]]:
    """Producer and consumer of each circular buffer."""
    found: dict[Var, dict[str, str]] = {}
    for role, way, buffer, operation in transfers(func.body):
        flow = found.setdefault(buffer, {"producer": "", "consumer": ""})
        key = "producer" if way == "produces" else "consumer"
        if flow[key] not in ("", role):
            raise PassError(
                f"circular buffer {buffer} has two {key}s, {flow[key]} and {role}",
                location=operation.location,
                hint="give each its own circular buffer",
            )
        flow[key] = role
    return found


def _entry(var: Var, found: Call, flow: dict[str, str], number: int) -> dict[str, Any]:
    between = flow["producer"] != flow["consumer"] and found.attrs["kind"] != _CONSTANT
    element = found.attrs["format"]
    return {
        "id": number,
        "name": found.attrs["name"],
        "variable": var.name,
        "kind": found.attrs["kind"],
        "format": FORMATS[element][0],
        "pages": found.attrs["tiles"] * (2 if between else 1),
        "page_size": TILE * TILE * FORMATS[element][1],
        **flow,
    }


def _check_memory(func: PrimFunc, ctx: PassContext, entries: dict[Var, dict[str, Any]]) -> None:
    total = sum(entry["pages"] * entry["page_size"] for entry in entries.values())
    limit = ctx.core.l1_bytes - ctx.core.l1_reserved
    if total > limit:
        largest = max(entries, key=lambda var: entries[var]["pages"] * entries[var]["page_size"])
        place = next(
            (item.location for item in walk(func.body) if isinstance(item, LetStmt) and item.var is largest), None
        )
        raise PassError(
            f"the circular buffers of {func.name} take {total} bytes of L1, there are {limit}",
            location=place,
            values={entry["variable"]: entry["pages"] * entry["page_size"] for entry in entries.values()},
            hint="use smaller tiles",
        )


def _graph(func: PrimFunc, entries: dict[Var, dict[str, Any]]) -> dict[str, Any]:
    """Tensors, circular buffers and roles, and what flows from which to which."""
    edges = []
    for found in calls(func.body, "tt.read_to_cb", "tt.write_from_cb"):
        buffer, tensor = found.args[:2]
        name = entries[buffer]["variable"]  # type: ignore[index]
        edges.append([str(tensor), name] if found.op.name == "tt.read_to_cb" else [name, str(tensor)])
    for entry in entries.values():
        edges += [[entry["producer"], entry["variable"]], [entry["variable"], entry["consumer"]]]
    nodes = sorted({node for edge in edges for node in edge})
    return {"nodes": nodes, "edges": edges}


known(TileDfg)
