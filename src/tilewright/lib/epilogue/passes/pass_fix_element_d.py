"""The value stored to D gets D's element type where it is computed."""

from __future__ import annotations

from tilewright.lib.epilogue.nodes import ComputeNode, StoreNode
from tilewright.lib.epilogue.passes.pass_layout_elimination import PassLayoutManipulateElimination
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase


class PassFixElementD(EVTPassBase):
    """From Sm90 on, lets the compute node before D hand on D's element type, so that D's store converts nothing.

    A value that others use too stays as it is: its store to D converts it, and the others see no rounding.
    """

    dependencies = (PassLayoutManipulateElimination,)

    def call(self) -> None:
        self.cc_specific_method(self.fix)()

    def fix(self) -> None:
        """By architecture."""

    def sm80_fix(self) -> None:
        """Stores convert."""

    def sm90_fix(self) -> None:
        """See the class."""
        if not self.dag_ir.has_node("D"):
            return
        store = self.dag_ir.get_node_meta("D")
        if not isinstance(store, StoreNode) or store.is_reduction or store.element is None:
            return
        (producer,) = self.dag_ir.get_all_inputs_meta("D")
        if isinstance(producer, ComputeNode) and self.dag_ir.get_users(producer.name) == ["D"]:
            producer.element_output = store.element_output = store.element
            producer.tensor = producer.tensor and producer.tensor.with_element(store.element)

    sm100_fix = sm90_fix
