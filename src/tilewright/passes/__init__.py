"""Passes: what they can ask of a program, and how they change it. docs/extending.md teaches it."""

from tilewright.ir.accessors import (
    PtrInfo,
    TensorInfo,
    ViewInfo,
    atom_of,
    constant_of,
    defining_op,
    is_constant,
    is_tensor,
    number_of,
    operands_of,
    ptr_info,
    set_atom,
    tensor_info,
    text_of,
    view_info,
)
from tilewright.ir.atom_text import AtomText
from tilewright.ir.context import located
from tilewright.ir.dialect import OpSpec
from tilewright.ir.locations import source_location
from tilewright.ir.walk import operations
from tilewright.passes.communication_optimization import CommunicationWarning
from tilewright.passes.kernel_remarks import remark, remarks_on
from tilewright.passes.loop_tile import LoopTile
from tilewright.passes.origin import Coordinates, Origin, Root, origin
from tilewright.passes.pass_changes import PassChange, PassChanges
from tilewright.passes.pipeline import Pass, PassManager, after, before
from tilewright.passes.pipeline import register as register_pass
from tilewright.passes.program import Launch, arguments, function_of, host_functions, kernels, launches, on_device
from tilewright.passes.rewriting import Rewrite, Rewriter, rewrite, rule
from tilewright.passes.rules.memory import contiguous_bits
from tilewright.passes.stored_values import STORES, SplitCopy, change_stored, split_copy, target_of
from tilewright.passes.thread_map import ThreadMap
from tilewright.passes.user_ops import register_op

__all__ = [
    "STORES", "AtomText", "CommunicationWarning", "Coordinates", "Launch", "LoopTile", "OpSpec", "Origin", "Pass",
    "PassChange", "PassChanges", "PassManager", "PtrInfo", "Rewrite", "Rewriter", "Root", "SplitCopy", "TensorInfo",
    "ThreadMap", "ViewInfo", "after", "arguments", "atom_of", "before", "change_stored", "constant_of",
    "contiguous_bits", "defining_op", "function_of", "host_functions", "is_constant", "is_tensor", "kernels",
    "launches", "located", "number_of", "on_device", "operands_of", "operations", "origin", "ptr_info",
    "register_op", "register_pass", "remark", "remarks_on", "rewrite", "rule", "set_atom", "source_location",
    "split_copy", "target_of", "tensor_info", "text_of", "view_info",
]  # fmt: skip
