"""Values on their way into memory: `change_stored` rewrites what a store, fill or copy writes.

A copy between memories has no value, so it is split: `split_copy` copies into registers, gives them as a vector, and
copies the vector that the rule made of it on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import PassError
from tilewright.ir import build, types
from tilewright.ir.source import source_location
from tilewright.ir.typed import TensorInfo, atom_of, is_tensor, operands_of, tensor_info
from tilewright.layout import Layout, size

if TYPE_CHECKING:
    from mlir import ir

STORES = ("cute.store", "cute.store_tensor", "cute.fill", "cute.copy")
"""The operations whose stored values `change_stored` rewrites."""

_RMEM_ALIGN = 32


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
    fragment: ir.Value

    def store(self, vector: ir.Value) -> None:
        """Write `vector` where the copy wrote, under its predicate."""
        if vector.type != self.value.type:
            raise PassError(
                "the vector of a split copy is changed to another type",
                location=source_location(self.op.location),
                values={"was": self.value.type, "is": vector.type},
            )
        operands = operands_of(self.op)
        build.cute("store_tensor", (), ((vector,), (self.fragment,)))
        if self.fragment != operands["dst"]:
            atom = self.op.attributes["atom"]
            build.cute("copy", (), ((self.fragment,), (operands["dst"],), operands["pred"]), atom=atom)
        self.op.erase()


def split_copy(op: ir.Operation) -> SplitCopy:
    """Copy into registers before `op`, with its atom and predicate: the first half of a split.

    Where one side is in registers already, only the other half remains a copy.

    Raises:
        PassError: both sides are in memory and the copy is asynchronous or moves matrices between threads, or its size
            is known only at run time.
    """
    operands = operands_of(op)
    source, target, preds = operands["src"], operands["dst"], operands["pred"]
    from_, to = tensor_info(source), tensor_info(target)
    if "rmem" not in (from_.space, to.space) and atom_of(op).name != "universal":
        raise PassError(
            f"a copy by {atom_of(op).name} from {from_.space} to {to.space} has no value on its way",
            location=source_location(op.location),
            hint="only copies by loads and stores are split; ask atom_of(op).name",
        )
    shape = next((found.layout.shape for found in (to, from_) if isinstance(size(found.layout), int)), None)
    if shape is None:
        raise PassError(
            "a copy of a size that is known only at run time is not split",
            location=source_location(op.location),
            values={"source": from_.layout, "destination": to.layout},
        )
    if from_.space == "rmem":
        return SplitCopy(
            op, _load(source, from_), target if to.space == "rmem" and not preds else _registers(to, shape)
        )
    fragment = target if to.space == "rmem" and not preds else _registers(to, shape)
    if preds:  # what is not copied has a value too
        build.cute("fill", (), ((build.constant(0, to.element),), (fragment,)))
    build.cute("copy", (), ((source,), (fragment,), preds), atom=op.attributes["atom"])
    return SplitCopy(op, _load(fragment, tensor_info(fragment)), fragment)


def _load(tensor: ir.Value, info: TensorInfo) -> ir.Value:
    vector = types.parse(f"vector<{size(info.layout)}x{info.element}>")
    return build.cute("load_tensor", (vector,), ((tensor,),)).results[0]


def _registers(like: TensorInfo, shape: Any) -> ir.Value:
    """A new tensor in registers, of elements as `like` has."""
    layout = Layout(shape)
    pointer = types.parse(f'!cute.ptr<{like.element}, "rmem", {_RMEM_ALIGN} : i32>')
    tensor = types.parse(f'!cute.tensor<{like.element}, "rmem", "{layout}", {_RMEM_ALIGN} : i32>')
    bytes_ = max(-(-size(layout) * like.bits // 8), 1)
    memory = build.cute("alloc", (pointer,), (), bytes=build.i32(bytes_)).results[0]
    return build.cute("make_tensor", (tensor,), ((memory,), (), ())).results[0]
