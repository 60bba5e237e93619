"""One compilation under way: what it is asked to make, and what it has made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.base.location import SourceLocation
from tilewright.base.signature import Signature
from tilewright.passes.pipeline import PassManager
from tilewright.targets.options import Options
from tilewright.targets.texts import Texts


@dataclass
class KernelJob:
    """One kernel: its symbol, what gives its Python text, where it is launched, and the text of each stage so far."""

    name: str
    python: Callable[[], str]
    launched_at: SourceLocation | None = None
    texts: Texts = field(default_factory=Texts)
    features: tuple[str, ...] = ()
    smem_bytes: int = 0
    user_text: bool = False  # the user replaced a stage, or a pass of theirs changed its text
    changed_by: str = ""  # that pass
    in_child: bool = False  # compile in a child process: LLVM may abort on it


@dataclass
class Job:
    """A jit function on its way through the stages.

    `trace(job)` builds the MLIR of stage `cute`; it is the front end's part, given by the caller of the stage loop.
    """

    name: str
    back_end: str
    arch: str
    options: Options
    pipeline: PassManager
    trace: Callable[[Job], Any]
    python: Callable[[], str]
    override: Mapping[str, Any]
    toolkit: str = ""  # that of this compilation, also for stages that are asked for later
    signature: Signature = field(default_factory=lambda: Signature("", ()))
    result: Any = None  # what the traced function returned
    returns_runtime: bool = False  # and whether values known only at run time are in it
    entry: str = ""  # the symbol of the host function
    module: Any = None
    texts: Texts = field(default_factory=Texts)
    bytecode: dict[str, bytes] = field(default_factory=dict)  # the module after a stage whose text is printed later
    kernels: dict[str, KernelJob] = field(default_factory=dict)
    locations: list[SourceLocation] = field(default_factory=list)  # of the operations in kernels, as traced
    inlined: tuple[SourceLocation, ...] = ()  # lines of inlined helpers, with their callers
    parts: dict[str, Any] = field(default_factory=dict)  # what the back end keeps of the host function
    text_read: str = ""  # the stage whose text, given by the user, became the module
    seconds: dict[str, float] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    pass_runs: list[Any] = field(default_factory=list)
    anew: Callable[[], Job] | None = None  # gives the same compilation, not begun
    after_pass: Callable[[Any, Any], None] | None = None  # called after each pass with it and the module
    finished: list[str] = field(default_factory=list)
