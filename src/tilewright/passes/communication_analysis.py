"""communication-analysis: who takes part in each collective, and whether all of them come to it.

before: `cute.allreduce %x {scope = "auto", group = 0, ...}`
after:  the same with `tilewright.participants`; or an error

A collective in control flow that differs among its threads is an error that names the condition's line. With `type`
only collectives of one kind are marked, and improved later: allreduce, broadcast or scan. `findings` has a line each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tilewright.base.errors import PassError
from tilewright.ir import build
from tilewright.ir.accessors import number_of, text_of
from tilewright.passes.collectives import (
    NAMES,
    PARTICIPANTS,
    WARP,
    KernelFacts,
    around,
    collectives,
    kernel_facts,
    kind_of,
    place_of,
)
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.uniformity import Known, Uniformity

if TYPE_CHECKING:
    from mlir import ir


@register
class CommunicationAnalysis(Pass):
    """See the module."""

    name = "communication-analysis"
    options: ClassVar[dict[str, object]] = {"type": "", "chip": ""}

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.findings: list[str] = []

    def check(self, module: ir.Operation) -> None:
        wanted = str(self["type"])
        if wanted not in ("", "all", *NAMES):
            raise PassError(
                f"communication-analysis looks at no collectives of type {wanted!r}",
                hint=f"type is one of {', '.join(NAMES)}, or all",
            )

    def run(self, module: ir.Operation) -> None:
        self.findings = []
        wanted = str(self["type"])
        for found in kernel_facts(module, str(self["chip"])):
            known = Uniformity(found.kernel, found.facts.block)
            for op in collectives(found.kernel):
                check_convergent(op, found, known)
                if wanted in ("", "all", kind_of(op)):
                    self._look_at(op, found)

    def _look_at(self, op: ir.Operation, found: KernelFacts) -> None:
        count = participants(op, found)
        op.attributes[PARTICIPANTS] = build.i32(count)
        who = f"{count} threads" if count else "all threads of the grid"
        self.findings.append(f"{place_of(op)}: {NAMES[kind_of(op)]} over {who}")


def participants(op: ir.Operation, found: KernelFacts) -> int:
    """How many threads exchange values; 0 for a grid whose size comes at run time."""
    scope, group = text_of(op, "scope"), number_of(op, "group")
    if group:
        return group
    if scope == "warp":
        return min(WARP, found.threads)
    if scope == "block":
        return found.threads
    if scope == "cluster":
        return found.threads * found.cluster
    return found.threads * (found.blocks or 0)


def check_convergent(op: ir.Operation, found: KernelFacts, known: Uniformity) -> None:
    """Refuse a collective that some of its threads may not reach.

    Raises:
        PassError: with the line of the condition that differs among them.
    """
    count = participants(op, found)
    inner = op
    for outer in around(op):
        for condition, value in _conditions(outer, inner):
            seen = known.of(value)
            reason = _differs(seen, count, found)
            if reason:
                raise _divergent(op, outer, condition, reason)
        inner = outer


def _conditions(outer: ir.Operation, inner: ir.Operation) -> list[tuple[str, ir.Value]]:
    if outer.name == "scf.if":
        return [("condition", outer.operands[0])]
    if outer.name == "scf.for":
        return [("bound", value) for value in list(outer.operands)[:3]]
    if outer.name == "scf.while":
        test = list(outer.regions[0].blocks[0].operations)[-1].operation
        return [("condition", test.operands[0])]
    return []


def _differs(seen: Known, count: int, found: KernelFacts) -> str:
    """How a condition differs among `count` threads; "" where it is not known to."""
    within = min(count or found.threads, found.threads)
    if not seen.uniform(within):
        return "from thread to thread"
    blocks = -(-count // found.threads) if count else 0
    if blocks != 1 and seen.by_block:
        return "from block to block"
    if (not count or blocks > found.cluster) and seen.by_cluster:
        return "from cluster to cluster"
    return ""


def _divergent(op: ir.Operation, outer: ir.Operation, condition: str, reason: str) -> PassError:
    place = place_of(outer)
    name = NAMES[kind_of(op)]
    what = "loop" if outer.name != "scf.if" else "branch"
    return PassError(
        f"the {name} lies in a {what} whose {condition} differs {reason}: some would wait for ever for the others",
        location=place,
        values={
            name: place_of(op),
            "scope": text_of(op, "scope"),
            condition: "" if place is None else place.source().strip(),
        },
        hint="let all threads call it, with the identity (0 for add) where a thread has nothing, and put only the use"
        f" of the result into the {what}",
    )
