"""A stage of a compilation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.targets.job import Job

if TYPE_CHECKING:
    from mlir import ir


@dataclass(frozen=True)
class Stage:
    """A named step of a back end.

    Attributes:
        name: what users call it: a key of `.stages`, of `override=`, a word of `--emit`.
        run: takes the job one step on: changes `job.module`, adds to `job.texts` or to the `texts` of each kernel. May
            give the operations of the module as it leaves it, where it has walked them.
        legal: the dialects that may remain in the module after it; None where there is no module.
        extension: of the files that its text is written to.
        whole: a function with several kernels has one text; otherwise each kernel has its own.
        replaceable: `override=` takes a text for it.
        files: the files, by name, that `tilewright compile` writes for it, of a back end whose programs are several.
    """

    name: str
    run: Callable[[Job], Sequence[ir.Operation] | None]
    legal: frozenset[str] | None = None
    extension: str = "txt"
    whole: bool = False
    replaceable: bool = False
    files: Callable[[Job], dict[str, str]] | None = None
