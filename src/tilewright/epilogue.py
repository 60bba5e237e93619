"""Epilogues: functions of a product's result and of other tensors, fused into one kernel.

`compile` gives a kernel that computes one on arrays. `trace` makes the graph of one, which passes change and `evaluate`
computes on NumPy. docs/epilogues.md is the guide.
"""

from typing import Any

from tilewright.base.errors import EpilogueError, EpilogueSyntaxError, NoImplementationError
from tilewright.kernels.epilogue_calls import CompiledEpilogue, compile_epilogue
from tilewright.lib.epilogue import passes
from tilewright.lib.epilogue.bits import Bits
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.draw import draw_svg, draw_text
from tilewright.lib.epilogue.functions import FUNCTIONS, register_function
from tilewright.lib.epilogue.lowering.functions import register_device_function
from tilewright.lib.epilogue.lowering.op import EpilogueOp
from tilewright.lib.epilogue.nodes import (
    CommNode,
    ComputeNode,
    LayoutNode,
    LoadNode,
    NodeBase,
    StoreNode,
    TopKSoftmaxNode,
    TopoVisitorNode,
    create_communication_node,
)
from tilewright.lib.epilogue.passes import (
    DEFAULT_PASSES,
    PASSES,
    EVTPassBase,
    EVTPassManager,
    PassCommonSubexpressions,
    PassCommunicationPlacement,
    PassConstantFolding,
    PassDAG2Tree,
    PassFixElementD,
    PassGetArgumentType,
    PassGetImpl,
    PassLayoutManipulateElimination,
    PassNoOpElimination,
    PassPreprocessRed,
    PassRun,
    PassShapeTypePropagation,
    PassSharedMemoryBudget,
)
from tilewright.lib.epilogue.proxies import (
    Value,
    amax,
    apply,
    exp,
    gelu,
    hardswish,
    identity,
    make_node,
    max,
    maximum,
    min,
    minimum,
    multiply_add,
    permute,
    quantize,
    relu,
    reshape,
    select,
    sigmoid,
    silu,
    sum,
    tanh,
    topk_softmax,
)
from tilewright.lib.epilogue.samples import create_test_arrays, create_test_dag, debug_pass
from tilewright.lib.epilogue.tensor import Tensor
from tilewright.lib.epilogue.trace import parse, trace
from tilewright.lib.epilogue.validation import validate

compile = compile_epilogue
validate_dag_transformation = validate

__all__ = [
    "Bits",
    "CommNode",
    "CompiledEpilogue",
    "ComputeNode",
    "DAGIR",
    "DEFAULT_PASSES",
    "EVTPassBase",
    "EVTPassManager",
    "EpilogueError",
    "EpilogueOp",
    "EpilogueSyntaxError",
    "FUNCTIONS",
    "LayoutNode",
    "LoadNode",
    "NoImplementationError",
    "NodeBase",
    "PASSES",
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
    "PassShapeTypePropagation",
    "PassSharedMemoryBudget",
    "StoreNode",
    "Tensor",
    "TopKSoftmaxNode",
    "TopoVisitorNode",
    "Value",
    "amax",
    "apply",
    "compile",
    "create_communication_node",
    "create_test_arrays",
    "create_test_dag",
    "debug_pass",
    "draw_svg",
    "draw_text",
    "exp",
    "gelu",
    "hardswish",
    "identity",
    "make_node",
    "max",
    "maximum",
    "min",
    "minimum",
    "multiply_add",
    "parse",
    "passes",
    "permute",
    "quantize",
    "register_device_function",
    "register_function",
    "relu",
    "reshape",
    "select",
    "sigmoid",
    "silu",
    "sum",
    "tanh",
    "topk_softmax",
    "trace",
    "validate",
    "validate_dag_transformation",
]


def __getattr__(name: str) -> Any:
    """A pass of a user's module, once that has been imported."""
    if name in PASSES:
        return PASSES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
