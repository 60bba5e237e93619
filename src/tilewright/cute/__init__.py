"""CuTe's names. `import tilewright.cute as cute` is what a CuTe DSL source imports as `cutlass.cute`."""

from typing import TYPE_CHECKING

from tilewright.arguments.runtime_tensor import from_dlpack
from tilewright.base.not_built import missing as _missing
from tilewright.compiler.compile_options import CompileOptions
from tilewright.compiler.jit import compile_function as compile
from tilewright.compiler.jit import compile_parallel, dsl_user_op, jit, kernel
from tilewright.compiler.profiling import profile
from tilewright.cute import arch, math, typing
from tilewright.cute.math import (
    acos,
    asin,
    atan,
    atan2,
    cos,
    erf,
    exp,
    exp2,
    log,
    log2,
    log10,
    rsqrt,
    sin,
    sqrt,
    tan,
    tanh,
)
from tilewright.lang.arch import block_idx_x, block_idx_y, block_idx_z
from tilewright.lang.atoms import (
    CopyAtom,
    CopyOp,
    MmaAtom,
    MmaOp,
    ThrCopy,
    ThrMma,
    TiledCopy,
    TiledMma,
    autovec_copy,
    basic_copy,
    basic_copy_if,
    copy,
    copy_atom_call,
    gemm,
    make_copy_atom,
    make_cotiled_copy,
    make_mma_atom,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_C_atom,
    make_tiled_copy_D,
    make_tiled_copy_S,
    make_tiled_copy_tv,
    make_tiled_mma,
    mma_atom_call,
)
from tilewright.lang.calls.annotations import Coord, IntTuple, Shape, Stride, Tile, Tiler, XTuple
from tilewright.lang.communication import allreduce, allreduce_sum, broadcast, scan
from tilewright.lang.contraction import fp_contract
from tilewright.lang.mlir_types import T
from tilewright.lang.numbers.fast_divmod import (
    FastDivmodDivisor,
    FastDivmodDivisorV2,
    fast_divmod_create_divisor,
    fast_divmod_create_divisor_v2,
)
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Boolean,
    Float,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Integer,
    Numeric,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
)
from tilewright.lang.nvgpu.multicast import make_layout_image_mask
from tilewright.lang.nvgpu.prefetching import prefetch
from tilewright.lang.printing.print_tensor import print_tensor
from tilewright.lang.printing.runtime_print import printf
from tilewright.lang.structs.native_struct import native_struct
from tilewright.lang.structs.struct import struct, union
from tilewright.lang.tensors.algebra import (
    append,
    append_ones,
    assume,
    basis_get,
    basis_value,
    blocked_product,
    ceil_div,
    coalesce,
    compatible,
    complement,
    composition,
    congruent,
    cosize,
    crd2crd,
    crd2idx,
    depth,
    dice,
    domain_offset,
    downcast,
    elem_less,
    equal,
    filter,
    filter_zeros,
    flat_divide,
    flat_product,
    flatten,
    flatten_to_tuple,
    get,
    group_modes,
    idx2crd,
    increment_coord,
    inner_partition,
    is_bijective,
    is_compatible,
    is_congruent,
    is_major,
    is_static,
    is_weakly_compatible,
    is_weakly_congruent,
    leading_dim,
    left_inverse,
    local_partition,
    local_tile,
    logical_divide,
    logical_product,
    make_composed_layout,
    make_identity_layout,
    make_identity_tensor,
    make_layout,
    make_layout_like,
    make_layout_tv,
    make_ordered_layout,
    make_swizzle,
    max_common_layout,
    max_common_vector,
    nullspace,
    outer_partition,
    prefix_product,
    prepend,
    prepend_ones,
    product,
    product_each,
    product_like,
    raked_product,
    rank,
    recast_layout,
    recast_ptr,
    recast_tensor,
    repeat,
    repeat_as_tuple,
    repeat_like,
    replace,
    right_inverse,
    round_up,
    select,
    shape,
    shape_div,
    size,
    size_in_bytes,
    slice_,
    slice_and_offset,
    stride,
    tile_to_mma_shape,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    transform_leaf,
    unflatten,
    upcast,
    weakly_compatible,
    weakly_congruent,
    zip_modes,
    zipped_divide,
    zipped_product,
)
from tilewright.lang.tensors.allocation import make_rmem_tensor, make_rmem_tensor_like
from tilewright.lang.tensors.pointer import AddressSpace, Pointer, make_ptr
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.lang.tensors.tensor_ssa import (
    ReductionOp,
    TensorSSA,
    all_,
    any_,
    empty_like,
    full,
    full_like,
    ones_like,
    where,
    zeros_like,
)
from tilewright.lang.tensors.tuple_functions import (
    filter_tuple,
    find,
    find_if,
    front,
    get_divisibility,
    get_nonswizzle_portion,
    get_swizzle_portion,
    has_underscore,
    pretty_str,
    transform_apply,
    tuple_cat,
    unwrap,
    wrap,
)
from tilewright.layout import (
    BankConflicts,
    Coalescing,
    ComposedLayout,
    E,
    Layout,
    Ratio,
    ScaledBasis,
    Swizzle,
    bank_conflicts,
    coalescing,
    common_sub_layout,
    layout_svg,
    layout_text,
    parse,
    print_latex,
    print_latex_tv,
    print_layout,
    print_layout_tv,
    render_layout_svg,
    render_swizzle_svg,
    render_tv_layout_svg,
    swizzle_svg,
    sym_int,
    sym_int32,
    sym_int64,
    tv_layout_svg,
    vector_width,
)
from tilewright.layout.symbolic import SymInt
from tilewright.targets.nvidia.backend.options import (
    GenerateLineInfo,
    KeepCUBIN,
    KeepPTX,
    KeepSASS,
    LinkLibraries,
    NvdisasmOptions,
    PtxasOptions,
    PTXBackend,
)
from tilewright.targets.options import (
    DumpDir,
    EnableAssertions,
    EnableTVMFFI,
    FpContract,
    GPUArch,
    HostTarget,
    KeepIR,
    OptLevel,
    PrintIR,
)

make_fragment = make_rmem_tensor
make_fragment_like = make_rmem_tensor_like
TensorView = Tensor
_Tensor = Tensor
_ComposedLayout = ComposedLayout
Int = int

if TYPE_CHECKING:
    from tilewright.cute import nvgpu, runtime, testing

_LATE = (
    "nvgpu",
    "runtime",
    "testing",
    "experimental",
    "_tvm_ffi_args_spec_converter",
)  # loaded when asked for: they bring hardware tables and the host side


_COLLECTIVES = {
    f"{scope}_{name}": f"tilewright.lib.comm.{scope}:{scope}_{name}"
    for scope, names in {
        "warp": "all allreduce any ballot barrier broadcast match reduce scan",
        "block": "all allreduce any barrier broadcast count reduce scan",
        "cluster": "all allreduce any barrier broadcast reduce scan",
        "grid": "allreduce barrier broadcast reduce workspace",
    }.items()
    for name in names.split()
}

if not TYPE_CHECKING:  # a type checker would take any name for granted
    _LATER = {name: f"tilewright.cute.{name}" for name in _LATE} | _COLLECTIVES
    _LATER |= dict.fromkeys(("algorithm", "atom", "core", "tensor"), "tilewright.cute")  # modules of CuTe DSL
    __getattr__ = _missing(__name__, _LATER)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE, *_COLLECTIVES})


__all__ = [
    "AddressSpace", "BFloat16", "BankConflicts", "Boolean", "Coalescing", "CompileOptions", "ComposedLayout", "Coord",
    "CopyAtom", "CopyOp", "DumpDir", "E", "EnableAssertions", "EnableTVMFFI", "FastDivmodDivisor",
    "FastDivmodDivisorV2", "Float", "Float16", "Float32", "Float64", "FpContract", "GPUArch", "GenerateLineInfo",
    "HostTarget", "Int", "Int16", "Int32", "Int64", "Int8", "IntTuple", "Integer", "KeepCUBIN", "KeepIR", "KeepPTX",
    "KeepSASS", "Layout", "LinkLibraries", "MmaAtom", "MmaOp", "Numeric", "NvdisasmOptions", "OptLevel", "PTXBackend",
    "Pointer", "PrintIR", "PtxasOptions", "Ratio", "ReductionOp", "ScaledBasis", "Shape", "Stride", "Swizzle", "SymInt",
    "T", "Tensor", "TensorSSA", "TensorView", "ThrCopy", "ThrMma", "Tile", "TiledCopy", "TiledMma", "Tiler", "Uint16",
    "Uint32", "Uint64", "Uint8", "XTuple", "acos", "all_", "allreduce", "allreduce_sum", "any_", "append",
    "append_ones", "arch", "asin", "assume", "atan", "atan2", "autovec_copy", "bank_conflicts", "basic_copy",
    "basic_copy_if", "basis_get", "basis_value", "block_idx_x", "block_idx_y", "block_idx_z", "blocked_product",
    "broadcast", "ceil_div", "coalesce", "coalescing", "common_sub_layout", "compatible", "compile", "compile_parallel",
    "complement", "composition", "congruent", "copy", "copy_atom_call", "cos", "cosize", "crd2crd", "crd2idx", "depth",
    "dice", "domain_offset", "downcast", "dsl_user_op", "elem_less", "empty_like", "equal", "erf", "exp", "exp2",
    "fast_divmod_create_divisor", "fast_divmod_create_divisor_v2", "filter", "filter_tuple", "filter_zeros", "find",
    "find_if", "flat_divide", "flat_product", "flatten", "flatten_to_tuple", "fp_contract", "from_dlpack", "front",
    "full", "full_like", "gemm", "get", "get_divisibility", "get_nonswizzle_portion", "get_swizzle_portion",
    "group_modes", "has_underscore", "idx2crd", "increment_coord", "inner_partition", "is_bijective", "is_compatible",
    "is_congruent", "is_major", "is_static", "is_weakly_compatible", "is_weakly_congruent", "jit", "kernel",
    "layout_svg", "layout_text", "leading_dim", "left_inverse", "local_partition", "local_tile", "log", "log10", "log2",
    "logical_divide", "logical_product", "make_composed_layout", "make_copy_atom", "make_cotiled_copy", "make_fragment",
    "make_fragment_like", "make_identity_layout", "make_identity_tensor", "make_layout", "make_layout_image_mask",
    "make_layout_like", "make_layout_tv", "make_mma_atom", "make_ordered_layout", "make_ptr", "make_rmem_tensor",
    "make_rmem_tensor_like", "make_swizzle", "make_tensor", "make_tiled_copy", "make_tiled_copy_A", "make_tiled_copy_B",
    "make_tiled_copy_C", "make_tiled_copy_C_atom", "make_tiled_copy_D", "make_tiled_copy_S", "make_tiled_copy_tv",
    "make_tiled_mma", "math", "max_common_layout", "max_common_vector", "mma_atom_call", "native_struct", "nullspace",
    "nvgpu", "ones_like", "outer_partition", "parse", "prefetch", "prefix_product", "prepend", "prepend_ones",
    "pretty_str", "print_latex", "print_latex_tv", "print_layout", "print_layout_tv", "print_tensor", "printf",
    "product", "product_each", "product_like", "profile", "raked_product", "rank", "recast_layout", "recast_ptr",
    "recast_tensor", "render_layout_svg", "render_swizzle_svg", "render_tv_layout_svg", "repeat", "repeat_as_tuple",
    "repeat_like", "replace", "right_inverse", "round_up", "rsqrt", "runtime", "scan", "select", "shape", "shape_div",
    "sin", "size", "size_in_bytes", "slice_", "slice_and_offset", "sqrt", "stride", "struct", "swizzle_svg", "sym_int",
    "sym_int32", "sym_int64", "tan", "tanh", "testing", "tile_to_mma_shape", "tile_to_shape", "tiled_divide",
    "tiled_product", "transform_apply", "transform_leaf", "tuple_cat", "tv_layout_svg", "typing", "unflatten", "union",
    "unwrap", "upcast", "vector_width", "weakly_compatible", "weakly_congruent", "where", "wrap", "zeros_like",
    "zip_modes", "zipped_divide", "zipped_product",
]  # fmt: skip
