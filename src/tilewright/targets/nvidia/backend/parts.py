"""What the artifacts of this back end keep of a host function, and of kernels beside their stages."""

from typing import Final

from tilewright.targets.artifact import Artifact, KernelImage

HOST_LLVM: Final = "host_llvm"
"""The function as LLVM IR, which exports are made from."""
HOST_OBJECT: Final = "host_object"
"""The native program, see `targets.host.bundle`."""

PTXAS_LOG: Final = "ptxas_log"
"""What the assembler said of a kernel."""

REMARKS: Final = "remarks"
"""What passes remarked on a kernel, see `passes.remarks`."""

PROFILE: Final = "profile"
"""The names of a kernel's timed regions, one a line; kernels without have no such part."""


def regions_of(kernel: KernelImage) -> list[str]:
    """The names of a kernel's timed regions, by number."""
    return str(kernel.stages.get(PROFILE, "")).splitlines()


def host_object(artifact: Artifact) -> bytes:
    """The native program of an artifact."""
    made = artifact.stages[HOST_OBJECT]
    assert isinstance(made, bytes)
    return made
