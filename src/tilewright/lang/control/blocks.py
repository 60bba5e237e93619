"""Building `scf` operations whose results are known only after their bodies were traced.

A body is traced into the block of a provisional operation. When it is known what the region hands on, the final
operation is made and takes the operations over. Block arguments that the final operation does not need may still be
held by Python objects, so provisional loops are kept, outside the program, until the compilation ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, mlir
from tilewright.ir.context import current
from tilewright.lang.control import aliases

if TYPE_CHECKING:
    from mlir import ir


class inside:
    """Build a body at the end of `block`."""

    def __init__(self, block: ir.Block) -> None:
        self.point = mlir.ir.InsertionPoint(block)
        self.body = aliases.body()

    def __enter__(self) -> None:
        self.point.__enter__()
        self.body.__enter__()

    def __exit__(self, *error: Any) -> None:
        try:
            self.body.__exit__(*error)
        finally:
            self.point.__exit__(*error)


def new_if(condition: ir.Value, has_else: bool) -> ir.Operation:
    """An `scf.if` without results or terminators."""
    op = build.emit("scf.if", (), (condition,), regions=2)
    op.regions[0].blocks.append()
    if has_else:
        op.regions[1].blocks.append()
    return op


def finish_if(op: ir.Operation, values: Sequence[Sequence[ir.Value]]) -> list[ir.Value]:
    """End the arms of `op`, which yield `values` (then, else), and give the results of the `if`."""
    arms = [region.blocks[0] for region in op.regions if len(region.blocks)]
    for block, yielded in zip(arms, values, strict=False):
        with inside(block):
            build.emit("scf.yield", (), yielded)
    if not values[0]:
        return []
    final = build.emit("scf.if", [value.type for value in values[0]], (op.operands[0],), regions=2)
    for block, region in zip(arms, final.regions, strict=True):
        block.append_to(region)
    op.erase()
    return list(final.results)


def add_else(op: ir.Operation) -> ir.Block:
    """The else block of `op`, made when missing."""
    blocks = op.regions[1].blocks
    return blocks[0] if len(blocks) else blocks.append()


def new_for(
    bounds: Sequence[ir.Value], initial: Sequence[ir.Value], attributes: Mapping[str, ir.Attribute]
) -> ir.Operation:
    """An `scf.for` over bounds (lower, upper, step) without terminator."""
    types = [value.type for value in initial]
    op = build.emit("scf.for", types, [*bounds, *initial], attributes, regions=1)
    op.regions[0].blocks.append(bounds[0].type, *types, arg_locs=[op.location] * (1 + len(types)))
    return op


def finish_for(
    op: ir.Operation,
    yielded: Sequence[ir.Value],
    keep: Sequence[bool],
    new_initial: Sequence[ir.Value],
    new_yielded: Sequence[ir.Value],
) -> list[ir.Value]:
    """End the body of `op` and give the values after the loop; those not kept never changed.

    `new_yielded` are values first made in the body: their results follow the others, and nobody reads `new_initial`.
    """
    # MLIR fixes the results of an operation when it makes it: a loop that carries other values is another operation.
    bounds, initial = list(op.operands)[:3], list(op.operands)[3:]
    block = op.regions[0].blocks[0]
    if all(keep) and not new_yielded:
        with inside(block):
            build.emit("scf.yield", (), yielded)
        return list(op.results)
    attributes = {name: op.attributes[name] for name in op.attributes}
    final = new_for(bounds, [*_kept(initial, keep), *new_initial], attributes)
    body = final.regions[0].blocks[0]
    # The induction variable is the first argument and always stays.
    moved = _take_over(block, body, [True, *keep], [bounds[0], *initial], [*yielded, *new_yielded])
    with inside(body):
        build.emit("scf.yield", (), [*_kept(moved[: len(keep)], keep), *moved[len(keep) :]])
    _retire(op)
    return _merged(initial, final, keep)


def new_while(initial: Sequence[ir.Value], extra: Sequence[ir.Type] = ()) -> ir.Operation:
    """An `scf.while` without terminators; both regions carry `initial`, the second one also `extra`."""
    types = [value.type for value in initial]
    op = build.emit("scf.while", [*types, *extra], initial, regions=2)
    op.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    types += extra
    op.regions[1].blocks.append(*types, arg_locs=[op.location] * len(types))
    return op


def finish_while(
    op: ir.Operation,
    condition: ir.Value,
    passed: Sequence[ir.Value],
    yielded: Sequence[ir.Value],
    keep: Sequence[bool],
    extra: Sequence[ir.Value],
) -> list[ir.Value]:
    """End both regions of `op`: the test passes `passed` and `extra` on, the body `yielded`."""
    initial = list(op.operands)
    before, after = (region.blocks[0] for region in op.regions)
    if all(keep) and not extra:
        _end_while(before, after, condition, passed, yielded)
        return list(op.results)
    final = new_while(_kept(initial, keep), [value.type for value in extra])
    new_before, new_after = (region.blocks[0] for region in final.regions)
    # A value that stays the same in both regions has its initial value in both; `extra` is first made by the test, so
    # only the second region has arguments for it.
    condition, *passed = _take_over(before, new_before, keep, initial, [condition, *passed, *extra])
    yielded = _take_over(after, new_after, [*keep, *[True] * len(extra)], [*initial, *extra], yielded)
    passed = [*_kept(passed[: len(keep)], keep), *passed[len(keep) :]]
    _end_while(new_before, new_after, condition, passed, _kept(yielded, keep))
    _retire(op)
    return _merged(initial, final, keep)


def _end_while(
    before: ir.Block, after: ir.Block, condition: ir.Value, passed: Sequence[ir.Value], yielded: Sequence[ir.Value]
) -> None:
    with inside(before):
        build.emit("scf.condition", (), [condition, *passed])
    with inside(after):
        build.emit("scf.yield", (), yielded)


def _kept(values: Sequence[ir.Value], keep: Sequence[bool]) -> list[ir.Value]:
    return [value for value, kept in zip(values, keep, strict=True) if kept]


def _merged(initial: Sequence[ir.Value], final: ir.Operation, keep: Sequence[bool]) -> list[ir.Value]:
    results = iter(final.results)
    return [*(next(results) if kept else value for value, kept in zip(initial, keep, strict=True)), *results]


def _take_over(
    source: ir.Block,
    target: ir.Block,
    keep: Sequence[bool],
    initial: Sequence[ir.Value],
    values: Sequence[ir.Value],
) -> list[ir.Value]:
    """Move the operations; kept arguments become those of `target`, the others their initial values.

    Gives what became of `values`, which the moved operations may not use.
    """
    arguments = iter(target.arguments)
    new: dict[ir.Value, ir.Value] = {}
    for argument, kept, value in zip(source.arguments, keep, initial, strict=True):
        new[argument] = next(arguments) if kept else value
        argument.replace_all_uses_with(new[argument])
    for operation in list(source.operations):
        target.append(operation)
    # Some of `values` may be arguments themselves, which are no operands: no use of them was replaced.
    return [new.get(value, value) for value in values]


def _retire(op: ir.Operation) -> None:
    """Take an emptied operation out of the program and keep it, without operands of the program, till the end."""
    # Erased at once, it would free block arguments that numbers of the user's may still hold: reading one would crash.
    holder = mlir.ir.Operation.create("scf.execute_region", regions=1, loc=op.location)
    types = [operand.type for operand in op.operands]
    block = holder.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    holder.detach_from_parent()
    # Its operands would count as uses, and keep dead code of the program alive.
    for index, argument in enumerate(block.arguments):
        op.operands[index] = argument
    block.append(op)
    current().pure.setdefault("retired", []).append((holder, op))


@contextmanager
def provisional(op: ir.Operation) -> Iterator[None]:
    """Take `op` out of the program when tracing its bodies fails: nothing half made stays behind."""
    try:
        yield
    except GeneratorExit:  # an interrupt kept the block from its end, and the compilation has ended
        raise
    except BaseException:
        _abandon(op)
        raise


def _abandon(op: ir.Operation) -> None:
    if not op.attached:
        return
    for region in op.regions:
        for block in region.blocks:
            for operation in reversed(list(block.operations)):  # users before what they use
                operation.operation.erase()
    build.forget_pure()  # some of the operations kept for reuse are among the erased
    _retire(op)


@contextmanager
def scratch() -> Iterator[ir.Block]:
    """A block outside the program's order, to try out code; end with `splice` or `discard`."""
    op = build.emit("scf.execute_region", (), (), regions=1)
    block = op.regions[0].blocks.append()
    with inside(block):
        yield block


def splice(block: ir.Block) -> None:
    """Put the tried code into the program."""
    owner = block.owner
    for operation in list(block.operations):
        operation.move_before(owner)
    _forget(block)  # what was made in `block` is found by its block, which is about to go
    owner.operation.erase()


def discard(block: ir.Block) -> None:
    """Forget the tried code."""
    owner = block.owner
    _forget(block)
    owner.operation.erase()


def _forget(block: ir.Block) -> None:
    """Operations made in `block` must not be found again as common ones."""
    # Blocks inside `block` go with it, and their addresses may come back as other blocks: forget everything.
    pure = current().pure
    for key in [key for key in pure if isinstance(key, tuple)]:
        del pure[key]
