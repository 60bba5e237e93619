"""Running passes one after the other, with the module checked after each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tilewright.base.errors import PassError
from tilewright.targets.tenstorrent.context import PassContext
from tilewright.targets.tenstorrent.dialect import verify
from tilewright.targets.tenstorrent.passing import TirPass
from tilewright.targets.tenstorrent.tir.nodes import IRModule


def run_pipeline(
    passes: Iterable[TirPass],
    module: IRModule,
    context: PassContext | None = None,
    after_each: Callable[[TirPass, IRModule], None] | None = None,
) -> IRModule:
    """The module that the passes make of `module`.

    Raises:
        PassError: `Invalid after pass i`, where a pass leaves functions that break a rule of the dialect.
    """
    for number, item in enumerate(passes):
        made = item.run_module(module, context)
        try:
            verify(made, f"pass {item.name}")
        except PassError as error:
            raise PassError(
                f"Invalid after pass {number}: {error.message}",
                location=error.location,
                values=error.values,
                hint=error.hint,
            ) from error
        module = made
        if after_each is not None:
            after_each(item, module)
    return module
