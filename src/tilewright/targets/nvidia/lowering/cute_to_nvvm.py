"""cute-to-nvvm: kernels from the `cute` dialect to `nvvm`, `llvm` and what MLIR's own conversion takes.

before: `gpu.func` with cute operations
after:  `gpu.func` with arith, scf, math, vector, llvm, nvvm operations; `convert-gpu-to-nvvm` finishes the work

The options are those of the closed compiler's pass of this name; the ones that have no meaning here are accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tilewright.hw.chips import chip, normalize_arch
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import number_of, text_of
from tilewright.ir.context import located
from tilewright.ir.locations import source_location
from tilewright.passes.lowering import LoweringContext, lower
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.place_shared_memory import SMEM_ALIGN, SMEM_BASE, SMEM_BYTES
from tilewright.passes.program import kernels
from tilewright.passes.remarks import Remark
from tilewright.passes.rules import copying, fragments, gemm, memory, values
from tilewright.targets.nvidia.lowering import (
    atomic_rules,
    bulk_rules,
    narrow,
    pin_rules,
    rules,
    tile_rules,
    wgmma_rules,
)
from tilewright.targets.nvidia.lowering.fast_math import use_fast_math
from tilewright.targets.nvidia.lowering.place_tensor_maps import note_tensor_maps
from tilewright.targets.nvidia.profiling import profile_rules

if TYPE_CHECKING:
    from mlir import ir

from tilewright.base.errors import CompileError

RULES = (
    memory.rules
    + fragments.rules
    + values.rules
    + copying.rules
    + gemm.rules
    + rules.rules
    + tile_rules.rules
    + narrow.rules
    + profile_rules.rules
    + pin_rules.rules
)
RULES += atomic_rules.rules + bulk_rules.rules + wgmma_rules.rules
ADDRESS_SPACE = {"generic": 0, "gmem": 1, "smem": 3, "dsmem": 7, "rmem": 0}
FEATURES = "tilewright.features"


@register
class CuteToNvvm(Pass):
    """See the module."""

    name = "cute-to-nvvm"
    in_cute = False
    requires = ("place-shared-memory",)
    options: ClassVar[dict[str, object]] = {
        "cubin-chip": "sm_90a",
        "cubin-format": "bin",
        "opt-level": 3,
        "toolkitPath": "",
        "preserve-line-info": False,
        "enable-assertions": False,
        "profile": True,
        "profile-warps": 1024,
        "profile-events": 124,
        "enable-cuda-dialect": False,
        "cuda-dialect-external-module": False,
        # Options of a compilation, which the text of `CompileOptions` may bring: the compiler reads them.
        "gpu-arch": "",
        "fp-contract": "on",
        "ptxas-options": "",
        "nvdisasm-options": "",
        "link-libraries": "",
        "generate-line-info": False,
        "keep-ptx": False,
        "keep-cubin": False,
        "keep-sass": False,
        "keep-ir": False,
        "print-ir": False,
        "enable-tvm-ffi": False,
        "dump-dir": "",
        "host-target": "",
        "ptx-backend": "llvm",
    }

    def run(self, module: ir.Operation) -> None:
        arch = normalize_arch(str(self["cubin-chip"]))
        self.remarks: dict[str, list[Remark]] = {}
        for kernel in kernels(module):
            features: set[str] = set()
            room = (int(self["profile-warps"]), int(self["profile-events"])) if self["profile"] else None
            facts = {"arch": arch, "features": features, "block": _static_block(kernel), "profile": room}
            context = LoweringContext(ADDRESS_SPACE, facts)
            with located(lambda location=kernel.location: location):  # type: ignore[misc]
                _declare_shared_memory(kernel, arch)
                _check_cluster(kernel, arch, features)
            note_tensor_maps(kernel)
            lower(kernel, RULES, context)
            use_fast_math(kernel, context)
            profile_rules.name_regions(kernel, context)
            self.remarks[text_of(kernel, "sym_name")] = context.remarks
            kernel.attributes[FEATURES] = build.string(",".join(sorted(features)))


def _declare_shared_memory(kernel: ir.Operation, arch: str) -> None:
    """The block's dynamic shared memory: an external array without a size."""
    used, limit = number_of(kernel, SMEM_BYTES), chip(arch).shared_optin
    if used > limit:
        raise CompileError(
            f"the kernel takes {used} bytes of shared memory",
            location=source_location(kernel.location),
            values={"limit": f"{limit} bytes a block on {arch}"},
            hint="use fewer stages or a smaller tile",
        )
    if not used and SMEM_BASE not in kernel.attributes:
        return
    attributes = {
        "global_type": mlir.ir.TypeAttr.get(types.parse("!llvm.array<0 x i8>")),
        "sym_name": build.string(rules.SMEM_SYMBOL),
        "linkage": build.attribute("#llvm.linkage<external>"),
        "addr_space": build.i32(3),
        "alignment": build.i64(number_of(kernel, SMEM_ALIGN)),
    }
    with mlir.ir.InsertionPoint(kernel):
        build.emit("llvm.mlir.global", (), (), attributes, regions=1)


def _static_block(kernel: ir.Operation) -> list[int] | None:
    """The extents of the block where the launch gives them as constants."""
    if "known_block_size" not in kernel.attributes:
        return None
    return list(mlir.ir.DenseI32ArrayAttr(kernel.attributes["known_block_size"]))


def _check_cluster(kernel: ir.Operation, arch: str, features: set[str]) -> None:
    if "nvvm.cluster_dim" in kernel.attributes:
        rules.use("cluster", "a launch with clusters", LoweringContext({}, {"arch": arch, "features": features}))
