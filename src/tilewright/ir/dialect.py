"""The `cute` dialect as a table, and its IRDL text.

Types
    `!cute.ptr<element, "space", align>`                 an address; align in bytes
    `!cute.tensor<element, "space", "layout", align>`    an address with a layout, in canonical CuTe notation
    `!cute.tensor_map<element, "box", swizzle>`          what a copy engine knows of a tensor; box innermost first

A layout is static text with `?` (i32) and `?{i64}` for what is known only at run time; those leaves are operands of
`cute.make_tensor` and `cute.view`, in order of appearance, i32 and i64 apart. Coordinates are written the same way.
Spaces are `generic`, `gmem`, `smem`, `rmem`.

Tiling, partitioning, slicing, composing, offsetting and recasting a tensor are `cute.view`: `algebra` names the
function (`tilewright.layout.views`), `arguments` are those that follow the tensor, with `?` for the leaves among the
operands. The leaves of the result's layout are operands too; where the view begins is left to the pass `expand-views`.
Under a swizzle `moves` says whether the `pointer` moves or the offset inside the `swizzle`, whose leaf has no operand;
`width` are the bits, 32 or 64, in which the offset is computed. Kernels take whole tensors, and regions carry them.

The memory operations keep whole tensors as operands, so a pass can read layouts and spaces off their types. Registers
whose indices are known are values, see `passes.promote_register_tensors`: `src` and `pred` of a copy may be vectors.

A tile is a value that the threads of a block hold together, of type `tensor<64x32xf32>`: see `lang.tiles`.

A tensor map is made by the host and is a parameter of the kernel by value; the copy engine (TMA) reads it where it
lies. Copies by it are `cute.tma_load` and `cute.tma_store`, one box each: docs/decisions/0014.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class OpSpec:
    """One operation: operand groups as `name:kind`, where kind is one of `CONSTRAINTS`, with `*` for any number; the
    kinds of its results, of which the only one may be of any number too; the names of its attributes. A `pure` one has
    no effects: it is erased where nothing uses it.

    An operation with more than one group of any number carries `operandSegmentSizes`.
    """

    name: str
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    pure: bool = False
    summary: str = ""


def _op(name: str, operands: str, results: str, attributes: str, summary: str, *, pure: bool = False) -> OpSpec:
    return OpSpec(name, tuple(operands.split()), tuple(results.split()), tuple(attributes.split()), pure, summary)


SPECS: dict[str, OpSpec] = {
    spec.name: spec
    for spec in (
        # Addresses and views.
        _op("make_tensor", "ptr:ptr leaves32:i32* leaves64:i64*", "tensor", "", "a view of memory", pure=True),
        _op("view", "tensor:tensor arguments32:i32* arguments64:i64* leaves32:i32* leaves64:i64*", "tensor",
            "algebra arguments moves width", "a part of a tensor, or its elements in another arrangement", pure=True),
        _op("iterator", "tensor:tensor", "ptr", "", "the address of a tensor's first element", pure=True),
        _op("leaf", "tensor:tensor", "any", "index", "a leaf of a tensor's layout known only at run time", pure=True),
        _op("ptr_offset", "ptr:ptr offset:any", "ptr", "", "an address moved by a number of elements", pure=True),
        _op("field", "ptr:ptr", "ptr", "offset name", "a member of a struct, `offset` bytes on", pure=True),
        _op("ptr_cast", "ptr:ptr", "ptr", "", "the same address under another pointer type", pure=True),
        _op("ptr_to_int", "ptr:ptr", "any", "", "an address as an integer", pure=True),
        _op("int_to_ptr", "value:any", "ptr", "", "an integer as an address", pure=True),
        _op("alloc", "", "ptr", "bytes", "memory of this thread (rmem) or block (smem), `bytes` long"),
        _op("smem_base", "", "ptr", "offset", "the dynamic shared memory of the block at a byte offset", pure=True),
        # Memory.
        _op("load", "tensor:tensor coord32:i32* coord64:i64*", "any", "coord", "one element"),
        _op("store", "value:any tensor:tensor coord32:i32* coord64:i64*", "", "coord", "write one element"),
        _op("load_tensor", "tensor:tensor", "any", "", "all elements, in colexicographic order, as a vector"),
        _op("store_tensor", "value:any tensor:tensor", "", "", "write all elements from a vector"),
        _op("copy", "src:any dst:tensor pred:any*", "", "atom", "copy by instructions of `atom`, under pred"),
        _op("copy_value", "src:tensor pred:any* old:any*", "any", "atom",
            "what `copy` leaves in registers that held `old`, which is given where there is a pred"),
        _op("gemm", "d:tensor a:tensor b:tensor c:tensor", "", "atom", "D = A * B + C by instructions of `atom`"),
        _op("gemm_value", "a:any b:any c:any", "any", "atom extents",
            "D of a `gemm` of fragments of `extents` instructions along M, N and K"),
        _op("async_commit", "", "", "", "close this thread's group of asynchronous copies"),
        _op("async_wait", "", "", "groups", "wait until at most `groups` of this thread's groups are unfinished"),
        _op("fill", "value:any tensor:tensor", "", "", "write one value to all elements"),
        _op("atomic", "value:any compared:any* tensor:tensor coord32:i32* coord64:i64*", "any",
            "kind coord order scope", "atomic read-modify-write of one element; gives the old value (`compared`: cas)"),
        # Bulk copies, by the copy engine. One thread starts each; `map` is a tensor map or a pointer to one in memory.
        _op("make_tensor_map", "tensor:tensor", "tensor_map", "modes type",
            "a tensor map of a tensor in global memory, whose `modes` (leaves of its layout) are those of the box"),
        _op("tma_load", "map:any dst:tensor barrier:ptr coord:i32* mask:i16* cache:i64*", "", "",
            "copy the box at a coordinate to shared memory, of the blocks of `mask` too, and tell their mbarriers"),
        _op("tma_store", "map:any src:tensor coord:i32* cache:i64*", "", "kind",
            "copy a box from shared memory to a coordinate, or (`kind`) reduce it into what is there"),
        _op("tma_prefetch", "map:any coord:i32*", "", "", "bring a tensor map near or, with a coordinate, a box to L2"),
        _op("tensor_map_copy", "map:tensor_map dst:ptr", "", "align",
            "copy a tensor map to 128 bytes of memory, known to be a multiple of `align` bytes"),
        _op("bulk_load", "src:tensor dst:tensor barrier:ptr mask:i16* cache:i64*", "", "",
            "copy contiguous bytes to shared memory, and tell the mbarrier"),
        _op("bulk_store", "src:tensor dst:tensor cache:i64*", "", "kind",
            "copy contiguous bytes from shared to global memory, or (`kind`) reduce them into what is there"),
        _op("bulk_commit", "", "", "", "close this thread's group of bulk copies from shared memory"),
        _op("bulk_wait", "", "", "groups read",
            "wait until at most `groups` of this thread's bulk groups are unfinished, or (`read`) read shared memory"),
        # Products of a warpgroup, which run on while the threads do. `passes.name_accumulators` gives each accumulator
        # a number; then its elements are named by their places, and nothing else touches them.
        _op("wgmma", "d:tensor a:any b:tensor accumulate:i1 metadata:i32*", "", "atom",
            "begin D = A * B, + D where `accumulate`; A and B lie in shared memory, A may lie in registers; `metadata` "
            "are the words of a sparse A, one for each instruction along M and K"),
        _op("wgmma_named", "a:any b:tensor accumulate:i1 metadata:i32*", "", "atom accumulator places extents",
            "`wgmma` of `extents` instructions along M, N and K into an accumulator"),
        _op("wgmma_fence", "", "", "", "order this warpgroup's accesses to registers with the products after it"),
        _op("wgmma_commit", "", "", "", "close the warpgroup's group of products"),
        _op("wgmma_wait", "", "", "groups", "wait until at most `groups` of the warpgroup's groups are unfinished"),
        _op("accumulator", "", "", "accumulator count element", "registers for `count` elements, by a number"),
        _op("accumulator_read", "", "any", "accumulator places", "elements of an accumulator, as a number or a vector"),
        _op("accumulator_write", "value:any", "", "accumulator places",
            "write elements of an accumulator, from a vector or all from one number"),
        _op("set_registers", "", "", "count kind", "give registers to this warpgroup's threads, or take them"),
        # Values. A register fragment as a value is a vector of its elements in colexicographic order.
        _op("join", "parts:any*", "any", "", "numbers, or vectors of one length, side by side", pure=True),
        _op("reduce", "value:any init:any", "any", "kind shape profile", "fold a vector over the modes of `profile`",
            pure=True),
        _op("convert", "value:any", "any", "source target", "a number of type `source` as one of type `target`",
            pure=True),
        _op("approx", "value:any", "any", "kind", "an approximate function: rcp, rsqrt, exp2, log2, sin, cos, tanh",
            pure=True),
        # Tiles: values that a block holds together, as builtin tensors of static shape. Arithmetic on them, element by
        # element, is of `arith` and `math`.
        _op("tile_load", "tensor:tensor coord32:i32*", "tile", "pad",
            "the tile at a coordinate counted in tiles; elements outside the tensor are `pad`"),
        _op("tile_store", "value:tile tensor:tensor coord32:i32*", "", "",
            "write a tile at a coordinate counted in tiles; elements outside the tensor are dropped"),
        _op("tile_full", "value:any", "tile", "", "a tile of one number", pure=True),
        _op("tile_broadcast", "value:tile", "tile", "", "a tile repeated along its modes of extent 1", pure=True),
        _op("tile_reduce", "value:tile", "tile", "kind axis", "fold one mode, which is left with extent 1", pure=True),
        _op("tile_dot", "a:tile b:tile c:tile", "tile", "", "A * B + C of matrices (M, K), (K, N), (M, N)", pure=True),
        # The grid.
        _op("index", "", "any", "name", "a coordinate or extent of the launch, such as thread_idx.x", pure=True),
        # Cooperation.
        _op("sync_threads", "", "", "", "wait for all threads of the block"),
        _op("barrier", "id:i32 count:i32*", "", "kind", "sync or arrive at a named barrier"),
        _op("sync_warp", "mask:i32", "", "", "wait for the lanes of `mask`"),
        _op("fence", "", "", "scope order", "order memory operations of this thread for `scope`"),
        _op("shuffle", "value:any lane:i32 mask:i32", "any", "kind clamp", "a value of another lane"),
        _op("vote", "pred:i1 mask:i32", "any", "kind", "any, all, uni or ballot over a warp"),
        _op("warp_reduce", "value:any", "any", "kind width", "fold over groups of `width` lanes; every lane gets it"),
        # Collectives: all threads of `scope` (auto, thread, warp, block, cluster, grid), or of each group of `group` of
        # them (0: all), come together. `types` are the short names of the values' types, `op` one word for each value.
        _op("allreduce", "values:any* workspace:ptr*", "any*", "op types scope group mode",
            "fold over threads; every one gets it, with mode `first` the first of the group alone"),
        _op("broadcast", "values:any* workspace:ptr*", "any*", "types scope group source", "what thread `source` has"),
        _op("scan", "values:any*", "any*", "op types scope group exclusive", "fold over the threads up to this one"),
        # Instructions of the chip by their PTX text; `feature` is the row of `hw.features` that they need.
        _op("ptx", "operands:any*", "", "text constraints feature", "PTX with effects"),
        _op("ptx_value", "operands:any*", "any", "text constraints feature", "PTX with effects and a result"),
        _op("ptx_pure", "operands:any*", "any", "text constraints feature", "PTX that computes from its operands",
            pure=True),
        # Checking. Printing is `gpu.printf`, launching is `gpu.launch_func`.
        _op("assert", "condition:i1", "", "message", "stop with `message` when false"),
        _op("pin", "values:any*", "", "name kind", "a variable of the source, FUNCTION.NAME, has these values now"),
        _op("profile", "", "", "kind region", "begin or end a timed region, or (kernel) time the kernel as a whole"),
    )
}  # fmt: skip

COLLECTIVES = frozenset(("cute.allreduce", "cute.broadcast", "cute.scan"))

PURE_OPS = frozenset(f"cute.{spec.name}" for spec in SPECS.values() if spec.pure)

_TYPES = {
    "ptr": ("element", "space", "align"),
    "tensor": ("element", "space", "layout", "align"),
    "tensor_map": ("element", "box", "swizzle"),
}
CONSTRAINTS = {
    "any": "irdl.any",
    "ptr": "irdl.base @cute::@ptr",
    "tensor": "irdl.base @cute::@tensor",
    "tensor_map": "irdl.base @cute::@tensor_map",
    "vector": 'irdl.base "!builtin.vector"',
    "tile": 'irdl.base "!builtin.tensor"',
    **{name: f"irdl.is {name}" for name in ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")},
}
"""The kinds of operands and results, and what IRDL calls them."""


def irdl_text() -> str:
    """The dialect in IRDL, as `irdl.load_dialects` takes it."""
    body = [_type_text(name, parameters) for name, parameters in _TYPES.items()]
    body += [_op_text(spec.name, spec) for spec in SPECS.values()]
    return _dialect("cute", body)


def irdl_text_of(specs: Iterable[OpSpec]) -> str:
    """Operations of further dialects, in IRDL. The types of the `cute` dialect have been loaded before."""
    found: dict[str, list[str]] = {}
    for spec in specs:
        dialect, _, name = spec.name.partition(".")
        found.setdefault(dialect, []).append(_op_text(name, spec))
    text = "".join(_dialect(name, body) for name, body in found.items())
    return re.sub(r"irdl\.base @cute::@(\w+)", r'irdl.base "!cute.\1"', text)


def _dialect(name: str, body: list[str]) -> str:
    return f"irdl.dialect @{name} {{\n" + "\n".join(body) + "\n}\n"


def _type_text(name: str, parameters: tuple[str, ...]) -> str:
    # One variable for each parameter: parameters that share one would have to be equal.
    lines = [f"    %{parameter} = irdl.any" for parameter in parameters]
    pairs = ", ".join(f"{parameter}: %{parameter}" for parameter in parameters)
    return f"  irdl.type @{name} {{\n" + "\n".join(lines) + f"\n    irdl.parameters({pairs})\n  }}"


def _op_text(symbol: str, spec: OpSpec) -> str:
    lines: list[str] = []
    operands = []
    for number, operand in enumerate(spec.operands):
        name, kind = operand.split(":")
        lines.append(f"    %o{number} = {CONSTRAINTS[kind.rstrip('*')]}")
        operands.append(f"{name}: {'variadic ' if kind.endswith('*') else ''}%o{number}")
    for number, kind in enumerate(spec.results):
        lines.append(f"    %r{number} = {CONSTRAINTS[kind.rstrip('*')]}")
    for number in range(len(spec.attributes)):
        lines.append(f"    %a{number} = irdl.any")
    if operands:
        lines.append(f"    irdl.operands({', '.join(operands)})")
    if spec.results:
        named = [f"result{n}: {'variadic ' if kind.endswith('*') else ''}%r{n}" for n, kind in enumerate(spec.results)]
        lines.append(f"    irdl.results({', '.join(named)})")
    if spec.attributes:
        pairs = ", ".join(f'"{name}" = %a{n}' for n, name in enumerate(spec.attributes))
        lines.append(f"    irdl.attributes {{{pairs}}}")
    return f"  irdl.operation @{symbol} {{\n" + "\n".join(lines) + "\n  }"
