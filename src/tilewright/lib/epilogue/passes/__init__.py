"""The passes over epilogues' graphs. Importing a module registers its pass; those of users are found here too, once
their module has been imported."""

from typing import Any

from tilewright.lib.epilogue.passes.pass_argument_type import PassGetArgumentType
from tilewright.lib.epilogue.passes.pass_common_subexpressions import PassCommonSubexpressions
from tilewright.lib.epilogue.passes.pass_communication_placement import PassCommunicationPlacement
from tilewright.lib.epilogue.passes.pass_constant_folding import PassConstantFolding
from tilewright.lib.epilogue.passes.pass_dag_2_tree import PassDAG2Tree
from tilewright.lib.epilogue.passes.pass_fix_element_d import PassFixElementD
from tilewright.lib.epilogue.passes.pass_get_impl import PassGetImpl
from tilewright.lib.epilogue.passes.pass_layout_elimination import PassLayoutManipulateElimination
from tilewright.lib.epilogue.passes.pass_manager import PASSES, EVTPassBase, EVTPassManager, PassRun
from tilewright.lib.epilogue.passes.pass_no_op_elimination import PassNoOpElimination
from tilewright.lib.epilogue.passes.pass_preprocess_red import PassPreprocessRed
from tilewright.lib.epilogue.passes.pass_shape_type_propagation import PassShapeTypePropagation
from tilewright.lib.epilogue.passes.smem_size_calculator import PassSharedMemoryBudget

DEFAULT_PASSES: tuple[type[EVTPassBase], ...] = (
    PassPreprocessRed,
    PassShapeTypePropagation,
    PassLayoutManipulateElimination,
    PassConstantFolding,
    PassCommonSubexpressions,
    PassFixElementD,
    PassGetImpl,
    PassCommunicationPlacement,
    PassGetArgumentType,
)
"""What `trace` runs."""

__all__ = [
    "DEFAULT_PASSES",
    "PASSES",
    "EVTPassBase",
    "EVTPassManager",
    "PassCommonSubexpressions",
    "PassCommunicationPlacement",
    "PassConstantFolding",
    "PassDAG2Tree",
    "PassFixElementD",
    "PassGetArgumentType",
    "PassGetImpl",
    "PassLayoutManipulateElimination",
    "PassNoOpElimination",
    "PassPreprocessRed",
    "PassRun",
    "PassSharedMemoryBudget",
    "PassShapeTypePropagation",
]


def __getattr__(name: str) -> Any:
    """A pass of a user's module."""
    if name in PASSES:
        return PASSES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
