"""CuTe's names. `import tilewright.cute as cute` is what a CuTe DSL source imports as `cutlass.cute`."""

from typing import TYPE_CHECKING

from tilewright.base.later import missing as _missing
from tilewright.compiler.jit import compile_function as compile
from tilewright.compiler.jit import dsl_user_op, jit, kernel
from tilewright.compiler.options import (
    CompileOptions,
    DumpDir,
    EnableAssertions,
    EnableTVMFFI,
    GenerateLineInfo,
    GPUArch,
    HostTarget,
    KeepCUBIN,
    KeepPTX,
    KeepSASS,
    LinkLibraries,
    NvdisasmOptions,
    OptLevel,
    PtxasOptions,
    PTXBackend,
)
from tilewright.compiler.runtime_tensor import from_dlpack
from tilewright.cute import arch, math, typing
from tilewright.cute.math import rsqrt
from tilewright.lang.algebra import (
    append,
    append_ones,
    assume,
    blocked_product,
    ceil_div,
    coalesce,
    complement,
    composition,
    cosize,
    crd2idx,
    depth,
    dice,
    domain_offset,
    downcast,
    elem_less,
    filter,
    filter_zeros,
    flat_divide,
    flat_product,
    flatten,
    get,
    group_modes,
    idx2crd,
    increment_coord,
    is_congruent,
    is_static,
    is_weakly_congruent,
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
    right_inverse,
    round_up,
    select,
    shape,
    shape_div,
    size,
    size_in_bytes,
    slice_,
    stride,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    upcast,
    zipped_divide,
    zipped_product,
)
from tilewright.lang.arch import block_idx_x, block_idx_y, block_idx_z
from tilewright.lang.atoms import (
    CopyAtom,
    MmaAtom,
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
from tilewright.lang.memory import make_rmem_tensor, make_rmem_tensor_like
from tilewright.lang.native_struct import native_struct
from tilewright.lang.numeric import (
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
from tilewright.lang.pointer import AddressSpace, Pointer, make_ptr
from tilewright.lang.print_tensor import print_tensor
from tilewright.lang.printing import printf
from tilewright.lang.struct import struct, union
from tilewright.lang.tensor import Tensor, make_tensor
from tilewright.lang.tensor_ssa import ReductionOp, TensorSSA, full, full_like, ones_like, where, zeros_like
from tilewright.lang.typing import Coord, IntTuple, Shape, Stride, Tile, Tiler, XTuple
from tilewright.layout import ComposedLayout, E, Layout, Ratio, ScaledBasis, Swizzle, sym_int, sym_int32, sym_int64
from tilewright.layout.symbolic import SymInt

make_fragment = make_rmem_tensor
make_fragment_like = make_rmem_tensor_like
TensorView = Tensor
Int = int

if TYPE_CHECKING:
    from tilewright.cute import nvgpu, runtime, testing

_LATE = ("nvgpu", "runtime", "testing")  # loaded when asked for: they bring hardware tables and the host side


if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, {name: f"tilewright.cute.{name}" for name in _LATE})


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})


__all__ = [
    "AddressSpace", "BFloat16", "Boolean", "CompileOptions", "ComposedLayout", "Coord", "CopyAtom", "DumpDir", "E",
    "EnableAssertions", "EnableTVMFFI", "Float", "Float16", "Float32", "Float64", "GPUArch", "GenerateLineInfo",
    "HostTarget", "Int", "Int16", "Int32", "Int64", "Int8", "IntTuple", "Integer", "KeepCUBIN", "KeepPTX", "KeepSASS",
    "Layout", "LinkLibraries", "MmaAtom", "Numeric", "NvdisasmOptions", "OptLevel", "PTXBackend", "Pointer",
    "PtxasOptions", "Ratio", "ReductionOp", "ScaledBasis", "Shape", "Stride", "Swizzle", "SymInt", "Tensor",
    "TensorSSA", "TensorView", "ThrCopy", "ThrMma", "Tile", "TiledCopy", "TiledMma", "Tiler", "Uint16", "Uint32",
    "Uint64", "Uint8", "XTuple", "append", "append_ones", "arch", "assume", "autovec_copy", "basic_copy",
    "basic_copy_if", "block_idx_x", "block_idx_y", "block_idx_z", "blocked_product", "ceil_div", "coalesce", "compile",
    "complement", "composition", "copy", "copy_atom_call", "cosize", "crd2idx", "depth", "dice", "domain_offset",
    "downcast", "dsl_user_op", "elem_less", "filter", "filter_zeros", "flat_divide", "flat_product", "flatten",
    "from_dlpack", "full", "full_like", "gemm", "get", "group_modes", "idx2crd", "increment_coord", "is_congruent",
    "is_static", "is_weakly_congruent", "jit", "kernel", "left_inverse", "local_partition", "local_tile",
    "logical_divide", "logical_product", "make_composed_layout", "make_copy_atom", "make_cotiled_copy", "make_fragment",
    "make_fragment_like", "make_identity_layout", "make_identity_tensor", "make_layout", "make_layout_like",
    "make_layout_tv", "make_mma_atom", "make_ordered_layout", "make_ptr", "make_rmem_tensor", "make_rmem_tensor_like",
    "make_swizzle", "make_tensor", "make_tiled_copy", "make_tiled_copy_A", "make_tiled_copy_B", "make_tiled_copy_C",
    "make_tiled_copy_C_atom", "make_tiled_copy_D", "make_tiled_copy_S", "make_tiled_copy_tv", "make_tiled_mma", "math",
    "max_common_layout", "mma_atom_call", "native_struct", "nvgpu", "ones_like", "prepend", "prepend_ones",
    "print_tensor", "printf", "product", "product_each", "product_like", "raked_product", "rank", "recast_layout",
    "recast_ptr", "recast_tensor", "repeat", "repeat_as_tuple", "repeat_like", "right_inverse", "round_up", "rsqrt",
    "runtime", "select", "shape", "shape_div", "size", "size_in_bytes", "slice_", "stride", "struct", "sym_int",
    "sym_int32", "sym_int64", "testing", "tile_to_shape", "tiled_divide", "tiled_product", "typing", "union", "upcast",
    "where", "zeros_like", "zipped_divide", "zipped_product",
]  # fmt: skip
