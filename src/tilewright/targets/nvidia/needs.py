"""What the instructions of a program need of the chip: from PTX text and nvvm operations to `hw.features`.

LLVM ends the process on an instruction that the target lacks, and ptxas refuses one that is newer than the text's
`.version`; both are asked here first.

Source: PTX ISA 9.0, chapter "Instruction Set"; names of nvvm operations: MLIR 22.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Final

# Features by opcode. A pattern is `head +one|other +more`: the opcode, split at its dots, starts with `head` (where
# `a|b` is either and `*` any), and has one of each group after it. `x*` is anything that starts with x.
_PTX: Final[dict[str, str]] = {
    "activemask": "activemask",
    "match.sync": "match",
    "shfl.sync": "shfl.sync",
    "nanosleep": "nanosleep",
    "f16.fma": "fma +f16|f16x2",
    "dp4a": "dp4a",
    "ld.acquire": "ld +acquire",
    "atom.add.f16x2": "atom|red +f16x2",
    "atom.cas.b16": "atom +b16",
    "ldmatrix": "ldmatrix",
    "ldmatrix.b8": "ldmatrix +b8",
    "mma.m16n8k8.f16": "mma.sync +m16n8k8",
    "mma.m16n8k16.f16": "mma.sync +m16n8k16",
    "mma.bf16": "mma.sync +bf16",
    "mma.tf32": "mma.sync +tf32",
    "mma.s8": "mma.sync +s8|u8",
    "mma.f64": "mma.sync +f64",
    "mma.sp": "mma.sp",
    "mma.f8": "mma +e4m3|e5m2",
    "mma.f8f6f4": "mma +kind::f8f6f4",
    "mma.block_scale": "mma +block_scale",
    "tanh.approx.f32": "tanh +f32",
    "tanh.approx.f16x2": "tanh +f16|f16x2",
    "tanh.approx.bf16x2": "tanh +bf16|bf16x2",
    "ex2.approx.f16x2": "ex2 +f16|f16x2",
    "ex2.approx.bf16x2": "ex2 +bf16|bf16x2",
    "alloca": "alloca",
    "ld.L1::evict_last": "ld|st +L1::evict*",
    "ld.L1::no_allocate": "ld|st +L1::no_allocate",
    "ld.L2::128B": "ld|ldu +L2::64B|L2::128B|L2::256B",
    "ld.L2::cache_hint": "ld|st|atom|red +L2::cache_hint",
    "ld.b128": "ld|st +b128",
    "ld.v8.b32": "ld|st +v8",
    "ld.shared::cluster": "ld|st|atom|red +shared::cluster",
    "fence.proxy.alias": "fence.proxy.alias",
    "fence.cluster": "fence +cluster",
    "fence.proxy.async": "fence.proxy.async*",
    "fence.mbarrier_init": "fence.mbarrier_init",
    "fence.sync_restrict": "fence +sync_restrict::*",
    "fence.proxy.tensormap": "fence.proxy +tensormap::*",
    "szext": "szext",
    "bmsk": "bmsk",
    "movmatrix": "movmatrix",
    "stmatrix": "stmatrix",
    "stmatrix.b8": "stmatrix +b8",
    "cp.async": "cp.async",
    "cp.async.mbarrier": "cp.async.mbarrier",
    "cp.async.bulk": "cp.async.bulk",
    "cp.async.bulk.prefetch": "cp.async.bulk.prefetch",
    "cp.async.bulk.shared::cta": "cp.async.bulk.shared::cta.global",
    "cp.async.bulk.tensor": "cp.async.bulk.tensor",
    "cp.async.bulk.tensor.multicast": "cp.async.bulk +multicast::cluster",
    "cp.async.bulk.tensor.shared::cta": "cp.async.bulk.tensor.*.shared::cta.global",
    "cp.async.bulk.tensor.gather4": "cp.async.bulk +tile::gather4|tile::scatter4",
    "cp.async.bulk.tensor.cta_group": "cp.async.bulk +cta_group::*",
    "cp.reduce.async.bulk": "cp.reduce.async.bulk",
    "cp.reduce.async.bulk.tensor": "cp.reduce.async.bulk.tensor",
    "prefetch.tensormap": "prefetch +tensormap",
    "mbarrier": "mbarrier",
    "mbarrier.test_wait.parity": "mbarrier.test_wait +parity",
    "mbarrier.try_wait": "mbarrier.try_wait",
    "mbarrier.expect_tx": "mbarrier +expect_tx|complete_tx",
    "mbarrier.remote_arrive": "mbarrier +shared::cluster",
    "redux.sync": "redux.sync",
    "redux.sync.f32": "redux.sync +f32",
    "cvt.bf16": "cvt +bf16",
    "cvt.f32.bf16": "cvt.f32.bf16",
    "cvt.bf16x2": "cvt +bf16x2",
    "cvt.f16x2": "cvt +f16x2",
    "cvt.satfinite.f16x2": "cvt.*.satfinite.f16|bf16|f16x2|bf16x2",
    "cvt.tf32": "cvt +tf32",
    "cvt.f8x2": "cvt +e4m3x2|e5m2x2",
    "cvt.f4x2": "cvt +e2m1x2",
    "cvt.f6x2": "cvt +e2m3x2|e3m2x2",
    "cvt.ue8m0x2": "cvt +ue8m0x2",
    "cvt.rs": "cvt.rs",
    "bf16.fma": "fma +bf16|bf16x2",
    "bf16.add": "add|sub|mul +bf16|bf16x2",
    "bf16.min": "min|max +bf16|bf16x2",
    "f16.min": "min|max +f16|f16x2",
    "min.NaN": "min|max +NaN",
    "min.xorsign": "min|max +xorsign",
    "f32x2": "add|sub|mul|fma +f32x2",
    "createpolicy": "createpolicy",
    "applypriority": "applypriority",
    "discard": "discard",
    "barrier.cluster": "barrier.cluster",
    "barrier.cluster.relaxed": "barrier.cluster +relaxed",
    "mapa": "mapa",
    "getctarank": "getctarank",
    "isspacep.shared::cluster": "isspacep.shared::cluster",
    "griddepcontrol": "griddepcontrol",
    "atom.add.bf16x2": "atom|red +bf16|bf16x2",
    "atom.b128": "atom +b128",
    "red.v4.f32": "atom|red +v2|v4|v8",
    "elect.sync": "elect.sync",
    "st.async": "st.async",
    "red.async": "red.async",
    "multimem": "multimem",
    "tensormap.cp_fenceproxy": "tensormap.cp_fenceproxy",
    "tensormap.replace": "tensormap.replace",
    "clusterlaunchcontrol": "clusterlaunchcontrol",
    "wgmma": "wgmma",
    "wgmma.s8.u8": "wgmma +s8 +u8",
    "wgmma.sp": "wgmma +sp",
    "setmaxnreg": "setmaxnreg",
    "tcgen05": "tcgen05",
    "tcgen05.mma": "tcgen05.mma",
    "tcgen05.ld": "tcgen05.ld",
    "tcgen05.mma.i8": "tcgen05.mma +kind::i8",
    "tcgen05.mma.mxf4": "tcgen05.mma +kind::mxf4|kind::mxf4nvf4",
}  # fmt: skip

# Features by nvvm operation, without `nvvm.`; the longest name that the operation's starts with counts.
_NVVM: Final[dict[str, tuple[str, ...]]] = {
    "elect.sync": ("elect.sync",),
    "setmaxregister": ("setmaxnreg",),
    "cluster.arrive": ("barrier.cluster",),
    "cluster.arrive.relaxed": ("barrier.cluster.relaxed",),
    "cluster.wait": ("barrier.cluster",),
    "read.ptx.sreg.cluster": ("cluster",),
    "read.ptx.sreg.ncluster": ("cluster",),
    "clusterlaunchcontrol": ("clusterlaunchcontrol",),
    "convert.bf16x2.to.f8x2": ("cvt.ue8m0x2",),
    "convert.f4x2.to": ("cvt.f4x2",),
    "convert.f6x2.to": ("cvt.f6x2",),
    "convert.f8x2.to.f16x2": ("cvt.f16x2.f8x2",),
    "convert.f8x2.to.bf16x2": ("cvt.ue8m0x2",),
    "convert.f16x2.to.f8x2": ("cvt.f8x2",),
    "convert.f32x2.to.bf16x2": ("cvt.bf16x2",),
    "convert.f32x2.to.f16x2": ("cvt.f16x2",),
    "convert.f32x2.to.f4x2": ("cvt.f4x2",),
    "convert.f32x2.to.f6x2": ("cvt.f6x2",),
    "convert.f32x2.to.f8x2": ("cvt.f8x2",),
    "convert.f32x4.to": ("cvt.rs",),
    "convert.float.to.tf32": ("cvt.tf32",),
    "cp.async": ("cp.async",),
    "cp.async.mbarrier": ("cp.async.mbarrier",),
    "cp.async.bulk": ("cp.async.bulk",),
    "cp.async.bulk.prefetch": ("cp.async.bulk.prefetch",),
    "cp.async.bulk.tensor": ("cp.async.bulk.tensor",),
    "cp.async.bulk.tensor.reduce": ("cp.reduce.async.bulk.tensor",),
    "fence.mbarrier.init": ("fence.mbarrier_init",),
    "fence.proxy": ("fence.proxy.async",),
    "fence.proxy.acquire": ("fence.proxy.tensormap",),
    "fence.proxy.release": ("fence.proxy.tensormap",),
    "fence.sc.cluster": ("fence.cluster",),
    "griddepcontrol": ("griddepcontrol",),
    "ldmatrix": ("ldmatrix",),
    "stmatrix": ("stmatrix",),
    "mapa": ("mapa",),
    "match.sync": ("match.sync",),
    "mbarrier": ("mbarrier",),
    "mbarrier.arrive.expect_tx": ("mbarrier.expect_tx",),
    "mbarrier.arrive_drop.expect_tx": ("mbarrier.expect_tx",),
    "mbarrier.complete_tx": ("mbarrier.expect_tx",),
    "mbarrier.expect_tx": ("mbarrier.expect_tx",),
    "mbarrier.try_wait": ("mbarrier.try_wait",),
    "mma.sp": ("mma.sp",),
    "mma.block_scale": ("mma.block_scale",),
    "mma.sp.block_scale": ("mma.block_scale",),
    "nanosleep": ("nanosleep",),
    "redux.sync": ("redux.sync",),
    "shfl.sync": ("shfl.sync",),
    "tcgen05": ("tcgen05",),
    "tcgen05.mma": ("tcgen05.mma",),
    "tcgen05.ld": ("tcgen05.ld",),
    "wgmma": ("wgmma",),
}

# Operations that every chip has.
_EVERYWHERE: Final = (
    "barrier", "barrier0", "bar.warp.sync", "breakpoint", "dot.accumulate", "exit", "memory.barrier", "pmevent", "prmt",
    "rcp.approx", "read.ptx.sreg", "vote.sync",
)  # fmt: skip

_Pattern = tuple[tuple[frozenset[str], ...], tuple[frozenset[str], ...]]


def _pattern(text: str) -> _Pattern:
    head, *groups = text.split(" +")
    return tuple(frozenset(part.split("|")) for part in head.split(".")), tuple(frozenset(g.split("|")) for g in groups)


def _by_opcode() -> dict[str, list[tuple[str, _Pattern]]]:
    table: dict[str, list[tuple[str, _Pattern]]] = {}
    for feature, text in _PTX.items():
        pattern = _pattern(text)
        for first in pattern[0][0]:
            table.setdefault(first, []).append((feature, pattern))
    return table


_BY_OPCODE: Final = _by_opcode()
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_GUARD: Final = re.compile(r"^(?:[\w$]+\s*:(?!:)\s*)*(?:@!?[%$\w{}:]+\s+)?")
_CLUSTER_REGISTER: Final = re.compile(r"%(?:n?cluster|is_explicit_cluster)")


def opcodes(ptx: str) -> Iterator[str]:
    """The instructions' opcodes in PTX text, without labels and predicates; directives start with a dot."""
    for statement in re.split(r"[;\n]", _COMMENT.sub(" ", ptx)):
        words = _GUARD.sub("", statement.strip().lstrip("{} \t")).split(None, 1)
        if words and not words[0].startswith("."):
            yield words[0]


def features_of_ptx(ptx: str) -> set[str]:
    """The features of `hw.features` that the instructions in PTX text use."""
    found = {feature for opcode in set(opcodes(ptx)) for feature in features_of_opcode(opcode)}
    return found | {"cluster"} if _CLUSTER_REGISTER.search(ptx) else found


def features_of_opcode(opcode: str) -> Iterator[str]:
    """The features that one opcode uses."""
    parts = opcode.split(".")
    for feature, (head, groups) in _BY_OPCODE.get(parts[0], ()):
        rest = parts[len(head) :]
        if len(parts) >= len(head) and all(map(_is_one_of, parts, head)):
            if all(any(_is_one_of(part, group) for part in rest) for group in groups):
                yield feature


def _is_one_of(part: str, group: frozenset[str]) -> bool:
    return part in group or any(name.endswith("*") and part.startswith(name[:-1]) for name in group)


@functools.cache
def features_of_operation(name: str) -> tuple[str, ...] | None:
    """The features that an nvvm operation uses; None where it is not known."""
    parts = name.removeprefix("nvvm.").split(".")
    for length in range(len(parts), 0, -1):
        found = _NVVM.get(".".join(parts[:length]))
        if found is not None:
            return found
    plain = name.removeprefix("nvvm.")
    return () if any(plain == known or plain.startswith(known + ".") for known in _EVERYWHERE) else None


_INTRINSIC: Final = re.compile(r"@llvm\.nvvm\.([\w.]+)")
_ASSEMBLY: Final = re.compile(r'\basm (?:\w+ )*"((?:[^"\\]|\\.)*)"')


def features_of_intrinsic(name: str) -> set[str]:
    """The features that an intrinsic of LLVM (`llvm.nvvm.elect.sync`) is known to use; its name is nearly PTX's."""
    plain = name.removeprefix("llvm.nvvm.")
    return {*features_of_opcode(plain), *(features_of_operation(f"nvvm.{plain}") or ())}


def features_of_llvm(text: str) -> set[str]:
    """The features that LLVM IR text uses, in intrinsics and in inline assembly."""
    found = {feature for name in set(_INTRINSIC.findall(text)) for feature in features_of_intrinsic(name)}
    for assembly in _ASSEMBLY.findall(text):
        found |= features_of_ptx(re.sub(r"\\([0-9A-Fa-f]{2})", lambda code: chr(int(code[1], 16)), assembly))
    return found
