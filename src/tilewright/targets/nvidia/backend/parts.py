"""What the artifacts of this back end keep of a host function."""

from typing import Final

from tilewright.targets.artifact import Artifact

HOST_LLVM: Final = "host_llvm"
"""The function as LLVM IR, which exports are made from."""
HOST_OBJECT: Final = "host_object"
"""The native program, see `targets.host.bundle`."""


def host_object(artifact: Artifact) -> bytes:
    """The native program of an artifact."""
    made = artifact.stages[HOST_OBJECT]
    assert isinstance(made, bytes)
    return made
