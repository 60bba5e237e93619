"""expand-communication: collectives as the code of their scope.

before: `%s = cute.allreduce %x {scope = "block", ...}`
after:  shuffles, stores to shared memory, barriers, ... (lib/comm)

Shared memory that this takes is placed at once where other memory was placed before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tilewright.base.errors import TilewrightError
from tilewright.ir import mlir
from tilewright.ir.context import located
from tilewright.ir.expansions import expander
from tilewright.ir.locations import source_location
from tilewright.passes.collectives import as_collective, collectives, kernel_facts
from tilewright.passes.pass_errors import locate_error
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.place_shared_memory import SMEM_BYTES, PlaceSharedMemory

if TYPE_CHECKING:
    from mlir import ir


@register
class ExpandCommunication(Pass):
    """See the module."""

    name = "expand-communication"
    requires = ("communication-optimization",)
    options: ClassVar[dict[str, object]] = {"chip": ""}

    def run(self, module: ir.Operation) -> None:
        placed = False
        for found in kernel_facts(module, str(self["chip"])):
            for op in list(collectives(found.kernel)):
                location = op.location
                try:
                    with mlir.ir.InsertionPoint(op), located(lambda location=location: location):  # type: ignore[misc]
                        results = expander()(as_collective(op), found.facts, module)
                except Exception as error:
                    if isinstance(error, TilewrightError):  # what it names is where the code of the scope stands
                        error.location = source_location(location)
                    locate_error(error, op, location)
                    raise
                for old, new in zip(op.results, results, strict=True):
                    old.replace_all_uses_with(new)
                op.erase()
            placed = placed or SMEM_BYTES in found.kernel.attributes
        if placed:
            PlaceSharedMemory().run(module)
