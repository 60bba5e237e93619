"""Pass Name: compute-init
Purpose: Configure the engines of a compute kernel before what it does.

Input Expectations:
- Kernels with tt.kernel_role; those with role compute have tile operations, and no init yet

Output Guarantees:
- tt.engine.startup once, first
- Before each family of operations its init: tt.mm.init, tt.fpu.init, tt.reduce.init, tt.copy.init, tt.bcast.init for
  the matrix engine, tt.sfpu.init for the vector engine; outside of loops that do one thing
- tt.reduce.uninit before the packer does anything else, tt.reconfig where operands change their format,
  tt.pack.reconfig and tt.pack.relu where results do

Example:
    Before: for k in range(8): tt.mm.mma(cb_a, cb_b, 0, 0, 0)
    After:  tt.engine.startup(cb_a, cb_b, cb_c, order='reverse')
            tt.mm.init(cb_a, cb_b)
            for k in range(8): tt.mm.mma(cb_a, cb_b, 0, 0, 0)

Testing:
    pytest tests/tenstorrent/test_compute_init.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.targets.tenstorrent.passes._common import evaluate
from tilewright.targets.tenstorrent.passing import func_pass, known
from tilewright.targets.tenstorrent.tir.nodes import (
    Call,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    PrimFunc,
    Stmt,
    Var,
    seq,
    statements,
)
from tilewright.targets.tenstorrent.tir.visitors import called, calls, walk


@dataclass(frozen=True)
class Need:
    """A configuration of the matrix engine: the operation that makes it, its circular buffers and attributes."""

    init: str
    buffers: tuple[Var, ...]
    attrs: tuple[tuple[str, Any], ...] = ()

    def statement(self) -> Stmt:
        return evaluate(self.init, *self.buffers, **dict(self.attrs))


class _Engines:
    """Inserts the configuration of one compute kernel."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.formats = {
            item.var: found.attrs["format"]
            for item in walk(func.body)
            if isinstance(item, LetStmt) and (found := called(item)) is not None and found.op.name == "tt.alloc_cb"
        }
        packs = calls(func.body, "tt.pack")
        self.first_output = packs[0].args[1] if packs else None
        self.outputs = self._outputs(func.body)
        self.mixed = len({self.formats[item] for need in self.needs(func.body) for item in need.buffers}) > 1
        self.mixed_packs = len({self.formats[item.args[1]] for item in packs}) > 1  # type: ignore[index]
        self.relu = {bool(item.attrs.get("relu")) for item in packs}

    def body(self) -> Stmt:
        """The body with everything configured."""
        items = list(statements(self.func.body))
        first = next((at for at, item in enumerate(items) if not isinstance(item, LetStmt)), len(items))
        needs = self.needs(self.func.body)
        head = [self._startup(needs[0])] if needs else []
        if self.relu == {True}:
            head.append(evaluate("tt.pack.relu", on=True))
        rest = self._configured(items[first:], None)
        return seq([*items[:first], *head, *rest])

    def _startup(self, first: Need) -> Stmt:
        order = "reverse" if first.init == "tt.mm.init" else "regular"
        left, right = first.buffers[0], first.buffers[1 if len(first.buffers) > 1 else 0]
        return evaluate("tt.engine.startup", left, right, self.first_output, order=order)

    def needs(self, stmt: Stmt) -> list[Need]:
        """The different configurations of the matrix engine inside a statement, in order."""
        found = [need for item in calls(stmt) if (need := self.need(item)) is not None]
        return list(dict.fromkeys(found))

    def need(self, item: Call) -> Need | None:
        """The configuration that an operation needs."""
        a, *rest = item.args if item.args else (None,)
        match item.op.name:
            case "tt.mm.mma":
                return Need("tt.mm.init", (a, rest[0]))  # type: ignore[arg-type]
            case "tt.fpu.add" | "tt.fpu.sub" | "tt.fpu.mul":
                attrs = (("kind", item.op.name.rpartition(".")[2]), ("bcast", item.attrs["bcast"]))
                return Need("tt.fpu.init", (a, rest[0]), attrs)  # type: ignore[arg-type]
            case "tt.reduce":
                attrs = (("kind", item.attrs["kind"]), ("dim", item.attrs["dim"]))
                output = self.outputs.get(id(item), self.first_output)
                return Need("tt.reduce.init", (a, rest[0], output), attrs)  # type: ignore[arg-type]
            case "tt.copy":
                return Need("tt.copy.init", (a,))  # type: ignore[arg-type]
            case "tt.bcast":
                return Need("tt.bcast.init", (a,), (("dim", item.attrs["dim"]),))  # type: ignore[arg-type]
        return None

    def _outputs(self, body: Stmt) -> dict[int, Var]:
        """Where the result of each reduction is packed to: by the next pack."""
        found: dict[int, Var] = {}
        waiting: list[int] = []
        for item in calls(body, "tt.reduce", "tt.pack"):
            if item.op.name == "tt.reduce":
                waiting.append(id(item))
                continue
            target: Any = item.args[1]
            found |= dict.fromkeys(waiting, target)
            waiting = []
        return found

    def _configured(self, items: Sequence[Stmt], state: Need | None) -> list[Stmt]:
        """Statements with configuration between them; nothing is configured before the first."""
        made: list[Stmt] = []
        vector = ""
        for item in items:
            needs = self.needs(item)
            kinds = list(dict.fromkeys(_vector_kind(found) for found in calls(item) if _vector_kind(found)))
            if len(needs) == 1 and needs[0] != state:
                made += self._switch(state, needs[0])
                state = needs[0]
            if len(kinds) == 1 and len(needs) <= 1:
                made += [] if kinds[0] == vector else [evaluate("tt.sfpu.init", kind=kinds[0])]
                vector = kinds[0]
            if len(needs) > 1 or len(kinds) > 1:
                made += [*self._switch(state, None), self._inside(item)]
                state, vector = None, ""
                continue
            made += self._packed(item)
        return [*made, *self._switch(state, None)]

    def _inside(self, item: Stmt) -> Stmt:
        """A loop or branch with configuration inside."""

        def within(body: Stmt | None) -> Stmt:
            return seq(self._configured(statements(body), None))

        match item:
            case For():
                return replace(item, body=within(item.body))
            case IfThenElse():
                other = None if item.else_case is None else within(item.else_case)
                return replace(item, then_case=within(item.then_case), else_case=other)
        return item

    def _switch(self, state: Need | None, need: Need | None) -> list[Stmt]:
        made: list[Stmt] = []
        if state is not None and state.init == "tt.reduce.init":
            made.append(evaluate("tt.reduce.uninit", state.buffers[0]))
        if need is None:
            return made
        if self.mixed:
            left, right = need.buffers[0], need.buffers[1 if len(need.buffers) > 1 else 0]
            swapped = need.init == "tt.mm.init" or (need.init == "tt.reduce.init" and dict(need.attrs) == {
                "kind": "add", "dim": "row"})  # fmt: skip
            made.append(evaluate("tt.reconfig", *((right, left) if swapped else (left, right))))
        return [*made, need.statement()]

    def _packs_inside(self, item: Stmt) -> Stmt:
        """A statement that `_inside` has not gone through, with its packs configured."""
        if not (self.mixed_packs or self.relu == {True, False}) or not calls(item, "tt.pack"):
            return item

        def within(body: Stmt | None) -> Stmt:
            return seq([made for part in statements(body) for made in self._packed(part)])

        match item:
            case For():
                return replace(item, body=within(item.body))
            case IfThenElse():
                other = None if item.else_case is None else within(item.else_case)
                return replace(item, then_case=within(item.then_case), else_case=other)
        return item

    def _packed(self, item: Stmt) -> list[Stmt]:
        return self._around_pack(item) if isinstance(item, Evaluate) else [self._packs_inside(item)]

    def _around_pack(self, item: Stmt) -> list[Stmt]:
        found = called(item)
        if found is None or found.op.name != "tt.pack":
            return [item]
        before = [evaluate("tt.pack.reconfig", found.args[1])] if self.mixed_packs else []
        if self.relu == {True, False} and found.attrs.get("relu"):
            return [*before, evaluate("tt.pack.relu", on=True), item, evaluate("tt.pack.relu", on=False)]
        return [*before, item]


def _vector_kind(found: Call) -> str:
    """Which init of the vector engine an operation needs."""
    if found.op.name not in ("tt.sfpu.unary", "tt.sfpu.binary"):
        return ""
    suffix = "_binary" if found.op.name == "tt.sfpu.binary" else "_number" if "parameter" in found.attrs else ""
    return str(found.attrs["kind"]) + suffix


@func_pass(opt_level=0)
def ComputeInit(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
    """Configure the engines."""
    if func.attrs.get("tt.kernel_role") != "compute":
        return func
    return func.with_body(_Engines(func).body())


known(ComputeInit)
