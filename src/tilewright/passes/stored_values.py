"""Values on their way into memory: `change_stored` rewrites what a store, fill or copy writes.

A copy of a vector has its value as an operand. One between memories has none, so it is split: `split_copy` reads a
vector, and copies the vector that the rule made of it on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.base.errors import PassError
from tilewright.ir import atom_text, build, types
from tilewright.ir.accessors import atom_of, is_tensor, operands_of, tensor_info
from tilewright.ir.locations import source_location
from tilewright.layout import size

if TYPE_CHECKING:
    from mlir import ir

STORES = ("cute.store", "cute.store_tensor", "cute.fill", "cute.copy")
"""The operations whose stored values `change_stored` rewrites."""


def target_of(op: ir.Operation) -> ir.Value:
    """The tensor that a store, fill, copy or gemm writes."""
    operands = operands_of(op)
    return operands[next(name for name in ("dst", "d", "tensor") if name in operands)]


def change_stored(op: ir.Operation, change: Callable[[ir.Value], ir.Value]) -> bool:
    """Write `change(value)` instead of what `op` writes, one of `STORES`: a number, or a vector of all elements in
    colexicographic order. Gives True, as a rule does that has changed something.

    Raises:
        PassError: a copy is of a kind that has no value on its way, see `split_copy`.
    """
    if op.name == "cute.copy" and is_tensor(op.operands[0]):
        split = split_copy(op)
        split.store(change(split.value))
        return True
    value = op.operands[0]
    changed = change(value)
    if changed.type != value.type:
        raise PassError(
            f"the value that {op.name} writes is changed to another type",
            location=source_location(op.location),
            values={"was": value.type, "is": changed.type},
        )
    op.operands[0] = changed
    return True


@dataclass
class SplitCopy:
    """A copy in two halves: `value` is what is read, a vector; `store(vector)` writes, and erases the copy."""

    op: ir.Operation
    value: ir.Value

    def store(self, vector: ir.Value) -> None:
        """Write `vector` where the copy wrote, under its predicate."""
        if vector.type != self.value.type:
            raise PassError(
                "the vector of a split copy is changed to another type",
                location=source_location(self.op.location),
                values={"was": self.value.type, "is": vector.type},
            )
        operands = operands_of(self.op)
        target = operands["dst"]
        # Instructions that fill registers have filled those of the vector.
        in_registers = tensor_info(target).space == "rmem"
        atom = build.string(atom_text.write("universal")) if in_registers else self.op.attributes["atom"]
        build.cute("copy", (), ((vector,), (target,), operands["pred"]), atom=atom)
        self.op.erase()


def split_copy(op: ir.Operation) -> SplitCopy:
    """Read what `op` copies before it, with its atom and predicate: the first half of a split.

    A copy of a vector is its second half already.

    Raises:
        PassError: both sides are in memory and the copy is asynchronous or moves matrices between threads, or its size
            is known only at run time.
    """
    operands = operands_of(op)
    source, preds = operands["src"], operands["pred"]
    if not is_tensor(source):
        return SplitCopy(op, source)
    from_, to = tensor_info(source), tensor_info(operands["dst"])
    if "rmem" not in (from_.space, to.space) and atom_of(op).name != "universal":
        raise PassError(
            f"a copy by {atom_of(op).name} from {from_.space} to {to.space} has no value on its way",
            location=source_location(op.location),
            hint="only copies by loads and stores are split; ask atom_of(op).name",
        )
    count = next((int(size(found.layout)) for found in (to, from_) if isinstance(size(found.layout), int)), None)
    if count is None:
        raise PassError(
            "a copy of a size that is known only at run time is not split",
            location=source_location(op.location),
            values={"source": from_.layout, "destination": to.layout},
        )
    if from_.space == "rmem":
        vector = types.parse(f"vector<{count}x{from_.element}>")
        return SplitCopy(op, build.cute("load_tensor", (vector,), ((source,),)).results[0])
    vector = types.parse(f"vector<{count}x{to.element}>")
    old = [build.splat(0, vector)] if preds else []  # what is not copied has a value too
    read = build.cute("copy_value", (vector,), ((source,), preds, old), atom=op.attributes["atom"])
    return SplitCopy(op, read.results[0])
