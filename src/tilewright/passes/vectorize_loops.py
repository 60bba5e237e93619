"""vectorize-loops: iterations side by side as vector operations, where `cutlass.range(..., vectorize=True)` asks.

before: `scf.for %i = 0 to %n { store(f(load %x[%i]), %y[%i]) } {tilewright.vectorize}`
after:  a loop over groups of 4 iterations (16 bytes of the widest element in memory), which loads, computes and stores
        vectors of 4; the loop itself over what is left

Arithmetic on what was loaded works on vectors. Accesses to global and shared memory are vectors too where the index of
a contiguous mode is the index of the loop; all others are done one after the other, and so is what depends on a value
that the loop carries, in the order of the iterations. Where iterations may depend on each other through memory, or wait
for other threads, the loop is left as it was and a remark says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import build, mlir
from tilewright.ir.accessors import constant_of, ptr_info
from tilewright.ir.context import located
from tilewright.ir.erasing import erase_unused
from tilewright.ir.walk import operations
from tilewright.passes.accessed_elements import accesses_of
from tilewright.passes.effects import effects_of, name_of
from tilewright.passes.iterations import conflict
from tilewright.passes.kernel_remarks import remark
from tilewright.passes.lanes import Lanes, bits_of
from tilewright.passes.loop_bodies import Body
from tilewright.passes.loop_building import binary, for_loop
from tilewright.passes.loop_counts import trip_count, trips_of
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.program import function_of

if TYPE_CHECKING:
    from mlir import ir

WISH = "tilewright.vectorize"
VECTOR_BITS = 128


@register
class VectorizeLoops(Pass):
    """See the module."""

    name = "vectorize-loops"

    def run(self, module: ir.Operation) -> None:
        loops = [op for op in operations(module, inner_first=True) if op.name == "scf.for" and WISH in op.attributes]
        if not loops:
            return
        build.forget_pure()
        for loop in loops:
            del loop.attributes[WISH]
            function, body = function_of(loop), Body(loop)
            width = _width(body)
            reason = _cannot(body, width)
            if reason:
                remark(loop, f"vectorize=True has no effect: {reason}")
            else:
                _vectorize(body, width)
                erase_unused(function)
        build.forget_pure()


def _cannot(body: Body, width: int) -> str:
    """Why a loop is not vectorized; "" where it can be."""
    found = effects_of(*body.operations)
    if constant_of(body.step) != 1:
        return "it does not count by 1"
    if not (found.reads or found.writes):
        return "it reads and writes no tensor"
    if width < 2:
        return "it has fewer than two iterations"
    if found.unknown:
        return f"{found.unknown[0][1]} in its body may write memory or wait for other threads"
    if found.waits:
        return f"{found.waits[0].name} in its body waits for other threads"
    prints = next((op for item in body.operations for op in operations(item) if op.name in _ORDERED), None)
    if prints is not None:
        return f"{prints.name} in its body is done in order"
    tensor = conflict(accesses_of(*body.operations), [body.index])
    return f"iterations may depend on each other through {name_of(tensor)}" if tensor is not None else ""


_ORDERED = ("gpu.printf", "cute.async_commit", "cute.async_wait", "cute.alloc", "cute.shuffle", "cute.vote")


def _width(body: Body) -> int:
    """How many iterations are done side by side: a power of two, at most as many as there are."""
    found = effects_of(*body.operations)
    tensors = [*found.reads, *found.writes]
    shared = [tensor for tensor in tensors if ptr_info(tensor.type).space != "rmem"] or tensors
    width = VECTOR_BITS // max([bits_of(tensor) for tensor in shared], default=VECTOR_BITS)
    trips = trips_of(body)
    while trips is not None and width > max(trips, 1):
        width //= 2
    return width


def _vectorize(body: Body, width: int) -> None:
    """Put a loop over groups of iterations before the loop, which is left with the rest."""
    loop, location = body.loop, body.loop.location
    with mlir.ir.InsertionPoint(loop), located(lambda: location):
        zero, one = (build.constant(number, body.index.type) for number in (0, 1))
        groups, rest = _groups(body, width)

        def inside(group: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            return Lanes(body, group, width).run(carried)

        kept = {key: loop.attributes[key] for key in _KEPT if key in loop.attributes}
        unsigned = {"unsignedCmp": build.attribute("unit")}
        results = for_loop(body, (zero, groups, one), body.initial, inside, kept | unsigned)
    if rest is None:
        for old, new in zip(loop.results, results, strict=True):
            old.replace_all_uses_with(new)
        loop.erase()
        return
    for number, value in enumerate([rest, body.upper, body.step, *results]):
        loop.operands[number] = value


_KEPT = ("tilewright.unroll", "tilewright.unroll_full", "tilewright.prefetch_stages")


def _groups(body: Body, width: int) -> tuple[ir.Value, ir.Value | None]:
    """How many groups of iterations there are, and where the rest begins; None where there is no rest."""
    kind, known = body.index.type, trips_of(body)
    shift = build.constant(width.bit_length() - 1, kind)
    if known is not None:
        groups = build.constant(known // width, kind)
        if known % width == 0:
            return groups, None
    else:
        groups = binary("shrui", trip_count(body), shift)
    return groups, binary("addi", body.lower, binary("shli", groups, shift))
