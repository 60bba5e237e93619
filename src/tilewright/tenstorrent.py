"""Passes for Tenstorrent kernels, written in Python. docs/tenstorrent.md teaches it."""

from __future__ import annotations

from typing import Any

from tilewright.compiler.build import read_cute
from tilewright.compiler.jit import decorated
from tilewright.targets.tenstorrent.context import PassContext
from tilewright.targets.tenstorrent.dialect import verify
from tilewright.targets.tenstorrent.options import TenstorrentOptions
from tilewright.targets.tenstorrent.passes._common import (
    analyze_loops,
    build_protocol_sequence,
    debug_print_ir,
    evaluate,
    find_intrinsic_calls,
    get_buffer_info,
    let,
    process_value,
    prune,
    validate_cb_ids,
)
from tilewright.targets.tenstorrent.passes.compute_init import ComputeInit
from tilewright.targets.tenstorrent.passes.emit import Emit
from tilewright.targets.tenstorrent.passes.finalize_args import FinalizeArgs
from tilewright.targets.tenstorrent.passes.grid_to_core import GridToCore
from tilewright.targets.tenstorrent.passes.infer_layout import InferLayout
from tilewright.targets.tenstorrent.passes.insert_dst import InsertDst
from tilewright.targets.tenstorrent.passes.lower_dataflow import LowerDataflow
from tilewright.targets.tenstorrent.passes.partition import Partition
from tilewright.targets.tenstorrent.passes.smem_to_cb import SmemToCb
from tilewright.targets.tenstorrent.passes.split import Split
from tilewright.targets.tenstorrent.passes.standard import STANDARD
from tilewright.targets.tenstorrent.passes.tensorize import Tensorize
from tilewright.targets.tenstorrent.passes.tile_dfg import TileDfg
from tilewright.targets.tenstorrent.passes.verify_protocol import VerifyProtocol
from tilewright.targets.tenstorrent.passing import FuncPass, ModulePass, func_pass, module_pass
from tilewright.targets.tenstorrent.pipeline import run_pipeline
from tilewright.targets.tenstorrent.plan import SCHEMA
from tilewright.targets.tenstorrent.tir.builder import T, ir_module
from tilewright.targets.tenstorrent.tir.nodes import (
    Buffer,
    Call,
    Evaluate,
    FloatImm,
    For,
    GlobalVar,
    IfThenElse,
    IntImm,
    IRModule,
    LetStmt,
    Op,
    PrimFunc,
    SeqStmt,
    StringImm,
    Var,
    call,
    call_extern,
    seq,
)
from tilewright.targets.tenstorrent.tir.read_mlir import read_module
from tilewright.targets.tenstorrent.tir.visitors import IRMutator, StmtVisitor, Substitution, calls, walk


def trace(function: Any, *args: Any, options: Any = None, **kwargs: Any) -> IRModule:
    """A `@cute.jit` function as the passes of stage `tt` get it: its kernels as `PrimFunc`s.

    The arguments are those of `cute.compile`.
    """
    return read_cute(decorated(function), args, kwargs, "tenstorrent", options, lambda job: read_module(job.module))


__all__ = [
    "Buffer", "Call", "ComputeInit", "Emit", "Evaluate", "FinalizeArgs", "FloatImm", "For", "FuncPass", "GlobalVar",
    "GridToCore", "IRModule", "IRMutator", "IfThenElse", "InferLayout", "InsertDst", "IntImm", "LetStmt",
    "LowerDataflow", "ModulePass", "Op", "Partition", "PassContext", "PrimFunc", "SCHEMA", "STANDARD", "SeqStmt",
    "SmemToCb", "Split", "StmtVisitor", "StringImm", "Substitution", "T", "TenstorrentOptions", "Tensorize", "TileDfg",
    "Var", "VerifyProtocol", "analyze_loops", "build_protocol_sequence", "call", "call_extern", "calls",
    "debug_print_ir", "evaluate", "find_intrinsic_calls", "func_pass", "get_buffer_info", "ir_module", "let",
    "module_pass", "process_value", "prune", "run_pipeline", "seq", "trace", "validate_cb_ids", "verify", "walk",
]  # fmt: skip
