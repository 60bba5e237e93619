"""pipeline-loops: loads of later iterations ahead of time, where `cutlass.range(..., prefetch_stages=n)` asks for it.

before: `scf.for %i = %a to %b { %x = load(%i); use(%x) } {tilewright.prefetch_stages = 2}`
after:  loads of the first two iterations; a loop that loads for iteration `%i + 2` and uses what was loaded two
        iterations before, three iterations in one; a loop over what is left, which loads for iterations that come

What is moved are loads from global memory to registers, and asynchronous copies to a circular buffer in shared memory
(see `circular_buffers`) with the commits of their groups. A loop with copies is one loop, whose copies stand under the
condition that their iteration comes; each wait lets as many more groups be unfinished as were committed ahead.

Nothing is loaded that the loop would not have loaded. What would change the program's meaning is left as it was, and a
remark at the line of the loop says why: a load may not go ahead of a write to the same tensor; in a loop that waits for
other threads, of any write to it in the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tilewright.ir import build, mlir
from tilewright.ir.accessors import atom_of, constant_of, is_tensor, number_of, ptr_info, tensor_info
from tilewright.ir.context import located
from tilewright.ir.erasing import erase_unused
from tilewright.ir.walk import operations
from tilewright.layout import size
from tilewright.passes.effects import effects_of
from tilewright.passes.kernel_remarks import remark
from tilewright.passes.loads_ahead import LoadsAhead, complete, find_copies, find_loads
from tilewright.passes.loop_bodies import Body, clone, mapped
from tilewright.passes.loop_building import for_loop
from tilewright.passes.loop_counts import Counter
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.program import function_of
from tilewright.passes.stored_values import split_copy

if TYPE_CHECKING:
    from mlir import ir

WISH = "tilewright.prefetch_stages"
MOST_STAGES = 32
"""Most iterations that loads run ahead."""
MOST_OPERATIONS = 2048
"""Most operations of the iterations that are done in one."""


@register
class PipelineLoops(Pass):
    """See the module."""

    name = "pipeline-loops"

    def run(self, module: ir.Operation) -> None:
        loops = [op for op in operations(module, inner_first=True) if op.name == "scf.for" and WISH in op.attributes]
        if not loops:
            return
        build.forget_pure()
        for loop in loops:
            stages = number_of(loop, WISH)
            del loop.attributes[WISH]
            if stages <= 0:
                continue
            _pipeline(loop, stages)
        build.forget_pure()


def _pipeline(loop: ir.Operation, stages: int) -> None:
    """Pipeline a loop, or say why it is left as it was."""
    function = function_of(loop)
    if function is None or function.name != "gpu.func":
        remark(loop, f"prefetch_stages={stages} has no effect: it is for loops of kernels")
        return
    reason = _cannot(loop, stages)
    if reason:
        remark(loop, f"prefetch_stages={stages} has no effect: {reason}")
        return
    _split_copies(loop)
    ahead = LoadsAhead(Body(loop), stages)
    inside, kernel = effects_of(*ahead.body.operations), effects_of(function)
    reasons = [why for why in (find_loads(ahead, inside, kernel), find_copies(ahead, inside, kernel)) if why]
    if not ahead.moved:
        reason = reasons[0] if reasons else "it loads nothing from global memory"
        remark(loop, f"prefetch_stages={stages} has no effect: {reason}")
        return
    for reason in reasons:
        remark(loop, f"prefetch_stages={stages} has an effect on a part of the loads: {reason}")
    complete(ahead)
    _emit(ahead)


def _cannot(loop: ir.Operation, stages: int) -> str:
    """Why no load of a loop can go ahead; "" where some may."""
    if stages > MOST_STAGES:
        return f"at most {MOST_STAGES} iterations are loaded ahead"
    if constant_of(loop.operands[2]) is None:
        return "the step of the loop is known only at run time"
    unknown = effects_of(*Body(loop).operations).unknown
    return f"{unknown[0][1]} in its body may write memory or wait for other threads" if unknown else ""


def _split_copies(loop: ir.Operation) -> None:
    """Copies from global to shared memory through registers, as a load and a store."""
    for op in [op.operation for op in loop.regions[0].blocks[0].operations]:
        if op.name != "cute.copy" or not is_tensor(op.operands[0]) or atom_of(op).name != "universal":
            continue
        spaces = [ptr_info(tensor.type).space for tensor in list(op.operands)[:2]]
        location = op.location
        if spaces == ["gmem", "smem"] and _is_static(op):
            with mlir.ir.InsertionPoint(op), located(lambda location=location: location):  # type: ignore[misc]
                split = split_copy(op)
                split.store(split.value)


def _is_static(copy: ir.Operation) -> bool:
    return any(isinstance(size(tensor_info(tensor).layout), int) for tensor in list(copy.operands)[:2])


def _emit(ahead: LoadsAhead) -> None:
    """Put the pipelined loop in the place of the loop."""
    body, location = ahead.body, ahead.body.loop.location
    with mlir.ir.InsertionPoint(body.loop), located(lambda: location):
        counter = Counter(body)
        state, loaded = [body.initial[number] for number in ahead.carried], []
        if ahead.barrier is not None:
            _under(counter.comes(0), lambda: _cloned(ahead.barrier), [])
        for stage in range(ahead.stages):
            values, state = _load(ahead, counter.later(body.lower, stage), state, counter.comes(stage))
            loaded += values
            _commit(ahead)
        results, middle, times = [*body.initial, *loaded, *state], body.lower, ahead.stages + 1
        if not ahead.copies and counter.step == 1 and len(body.operations) * times <= MOST_OPERATIONS:
            middle = counter.whole_turns(ahead.stages, times)
            results = _loop(ahead, counter, (body.lower, middle), results, times)
        results = _loop(ahead, counter, (middle, body.upper), results)
    for old, new in zip(body.loop.results, results, strict=False):
        old.replace_all_uses_with(new)
    function = function_of(body.loop)
    body.loop.erase()
    erase_unused(function)


def _loop(
    ahead: LoadsAhead,
    counter: Counter,
    bounds: tuple[ir.Value, ir.Value],
    carried: list[ir.Value],
    times: int = 0,
) -> list[ir.Value]:
    """A loop that begins with these values; what it ends with. It does `times` iterations in one, all of which load
    ahead; one by one where it is 0, and loads for the iterations that come.

    One more iteration than are loaded ahead leaves every value in the register that it was loaded to. One by one each
    moves on to the next register, which waits until it has arrived.
    """
    body, count = ahead.body, len(ahead.values)
    if bounds[0] == bounds[1]:
        return carried

    def inside(index: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
        own, loaded = values[: len(body.initial)], values[len(body.initial) :]
        loaded, state = loaded[: count * ahead.stages], loaded[count * ahead.stages :]
        for turn in range(max(times, 1)):
            now = counter.later(index, turn)
            comes = times > 0 or counter.comes_after(now, ahead.stages)
            fresh, state = _load(ahead, counter.later(index, turn + ahead.stages), state, comes)
            _commit(ahead)
            mapping = {body.index: now, **dict(zip(body.carried, own, strict=True))}
            mapping |= dict(zip(ahead.values, loaded[:count], strict=True))
            _rest(ahead, mapping)
            own, loaded = mapped(mapping, body.yielded), [*loaded[count:], *fresh]
        return [*own, *loaded, *state]

    kept = {key: body.loop.attributes[key] for key in _KEPT if key in body.loop.attributes}
    step = build.constant(times, body.index.type) if times else body.step
    return for_loop(body, (*bounds, step), carried, inside, kept)


_KEPT = ("unsignedCmp", "tilewright.unroll", "tilewright.unroll_full")


def _rest(ahead: LoadsAhead, mapping: dict[ir.Value, ir.Value]) -> None:
    """The body without what is done earlier; waits let as many more groups be unfinished as are committed ahead."""
    body = ahead.body
    for place, op in enumerate(body.operations):
        if place in ahead.moved:
            continue
        made = clone(op, mapping)
        later = sum(commit > place for commit in ahead.commits)
        more = len(ahead.commits) * ahead.stages + later
        for wait in [item for item in operations(made) if item.name == "cute.async_wait" and more]:
            wait.attributes["groups"] = build.i32(number_of(wait, "groups") + more)


def _load(
    ahead: LoadsAhead, index: ir.Value, state: list[ir.Value], condition: ir.Value | bool
) -> tuple[list[ir.Value], list[ir.Value]]:
    """What is done earlier of the iteration `index`, if it comes: what is loaded, and the carried values after."""
    kinds = [value.type for value in ahead.values]
    results = _under(condition, lambda: _loaded(ahead, index, state), [*kinds, *state])
    return results[: len(kinds)], results[len(kinds) :]


def _under(
    condition: ir.Value | bool, build_values: Callable[[], list[ir.Value]], otherwise: list[ir.Type | ir.Value]
) -> list[ir.Value]:
    """Values that are built under a condition; `otherwise` has what they are where it is false, a type for zero."""
    if condition is True:
        return build_values()
    if condition is False:
        return _zeros(otherwise)
    types_ = [item.type if isinstance(item, mlir.ir.Value) else item for item in otherwise]
    branch = build.emit("scf.if", types_, [condition], regions=2)
    with mlir.ir.InsertionPoint(branch.regions[0].blocks.append()):
        build.emit("scf.yield", (), build_values())
    if types_:
        with mlir.ir.InsertionPoint(branch.regions[1].blocks.append()):
            build.emit("scf.yield", (), _zeros(otherwise))
    return list(branch.results)


def _zeros(items: list[ir.Type | ir.Value]) -> list[ir.Value]:
    return [item if isinstance(item, mlir.ir.Value) else _zero(item) for item in items]


def _loaded(ahead: LoadsAhead, index: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
    body = ahead.body
    mapping = {body.index: index} | {
        body.carried[number]: value for number, value in zip(ahead.carried, state, strict=True)
    }
    for place in ahead.places:
        clone(body.operations[place], mapping)
    return mapped(mapping, [*ahead.values, *[body.yielded[number] for number in ahead.carried]])


def _commit(ahead: LoadsAhead) -> None:
    for place in ahead.commits:
        clone(ahead.body.operations[place], {})


def _cloned(op: ir.Operation) -> list[ir.Value]:
    return list(clone(op, {}).results)


def _zero(type_: ir.Type) -> ir.Value:
    is_vector = isinstance(type_, mlir.ir.VectorType)
    return build.splat(0, type_) if is_vector else build.constant(0, type_)
