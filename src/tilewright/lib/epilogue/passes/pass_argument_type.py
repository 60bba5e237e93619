"""What a call of the epilogue passes, by name."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.lib.epilogue.nodes import Element, LoadNode, StoreNode
from tilewright.lib.epilogue.passes.pass_get_impl import PassGetImpl
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase
from tilewright.lib.epilogue.tensor import Tensor


@dataclass(frozen=True)
class Argument:
    """An argument of a call: an operand or an output. `tensor` is the user's, not a view of it."""

    name: str
    tensor: Tensor
    is_output: bool

    @property
    def element(self) -> Element:
        """Its element type."""
        return self.tensor.element


class PassGetArgumentType(EVTPassBase):
    """Lists the arguments in `dag_ir.arguments`: operands in lexicographical order, then outputs as returned.

    Immediates are no arguments, and the accumulator is one only where no product makes it.
    """

    dependencies = (PassGetImpl,)

    def call(self) -> None:
        loads = {
            meta.argument: Argument(meta.argument, meta.example, False)
            for meta in self.dag_ir.nodes_meta
            if isinstance(meta, LoadNode) and not meta.is_immediate
        }
        outputs = {
            meta.name: Argument(meta.name, meta.store_tensor, True)
            for meta in self.dag_ir.nodes_meta
            if isinstance(meta, StoreNode) and meta.is_output and meta.store_tensor is not None
        }
        returned = [name for name in self.dag_ir.return_names if name in outputs]
        self.dag_ir.arguments = tuple(loads[name] for name in sorted(loads)) + tuple(outputs[name] for name in returned)
