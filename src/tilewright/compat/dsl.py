"""`CutlassDSL`: the language as an object, whose pass list a subclass may change.

    class MyDSL(CutlassDSL):
        def _get_pipeline(self, pipeline):
            return "builtin.module(my-pass{n=1},cute-to-nvvm{cubin-format=bin})"

    dsl = MyDSL()

    @dsl.jit
    def f(...): ...

`BaseDSL._get_dsl()` is the object whose standard pass list all other functions use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from tilewright.compat.arch import Arch
from tilewright.compat.env import EnvironmentVarManager
from tilewright.compiler.jit import JitFunction, KernelFunction, warn_of_ignored
from tilewright.compiler.target_choice import choose_arch, choose_target
from tilewright.lang import trace
from tilewright.targets.nvidia.backend.options import NvidiaOptions


class _OwnedFunction(JitFunction[..., Any]):
    """A jit function that asks its DSL object for the pass list."""

    dsl: BaseDSL

    @property
    def pipeline(self) -> Any:
        """The pass list, as text or `PassManager`; None for the standard one."""
        return self.dsl._get_pipeline(None) if type(self.dsl)._get_pipeline is not BaseDSL._get_pipeline else None

    @property
    def defaults(self) -> Any:
        """The options that the DSL object was made with."""
        return self.dsl.defaults


@dataclass(frozen=True)
class PassOptions:
    """Compile options as a pass list spells them."""

    options: NvidiaOptions

    @property
    def gpu_arch(self) -> str:
        return self.options.gpu_arch

    def to_str(self) -> str:
        """`opt-level=3 enable-assertions=true`."""
        parts = [f"opt-level={self.options.opt_level}"]
        parts += ["enable-assertions=true"] if self.options.enable_assertions else []
        parts += ["preserve-line-info=true"] if self.options.generate_line_info else []
        return " ".join(parts)


class BaseDSL:
    """The language: decorators, chip, settings, pass list."""

    _instances: ClassVar[dict[type, BaseDSL]] = {}

    def __init__(self, **options: Any) -> None:
        """`options` are compile options by name, `opt_level=1`, for what this object decorates."""
        known = {field.name for field in fields(NvidiaOptions)}
        warn_of_ignored(type(self).__name__, [name for name in options if name not in known], "compile options")
        self.options = options
        self.defaults = {name: value for name, value in options.items() if name in known}
        self.envar = EnvironmentVarManager()

    @classmethod
    def _get_dsl(cls) -> BaseDSL:
        """The one object of this class."""
        if cls not in BaseDSL._instances:
            BaseDSL._instances[cls] = cls()
        return BaseDSL._instances[cls]

    @property
    def compile_options(self) -> PassOptions:
        """The options that hold when none are given."""
        return PassOptions(NvidiaOptions.from_settings().merged(self.defaults))

    def _arch(self) -> str:
        if trace.tracing() and trace.current().arch:
            return trace.current().arch
        return choose_arch(self.compile_options.gpu_arch, choose_target(None))

    def get_arch_enum(self) -> Any:
        """The chip compiled for."""
        return Arch.from_string(self._arch())

    def check_arch(self, criterion: Any) -> bool:
        """Whether the chip satisfies a predicate."""
        return bool(criterion(self.get_arch_enum()))

    def _get_pipeline(self, pipeline: str | None) -> str:
        """The pass list: `pipeline`, or the standard one."""
        if pipeline is not None:
            return pipeline
        options = f"cubin-format=bin cubin-chip={self._arch()} {self.compile_options.to_str()}"
        return f"builtin.module(cute-to-nvvm{{{options}}})"

    def preprocess_pipeline(self, pipeline: str, arch: str) -> str:
        """The pass list with the chip filled in."""
        if "cubin-chip" in pipeline:
            return pipeline
        chip = f"cute-to-nvvm{{cubin-chip={arch}"
        return re.sub(r"cute-to-nvvm(\{)?", lambda found: chip + (" " if found[1] else "}"), pipeline, count=1)

    def jit(self, function: Any = None, *, preprocess: bool = True, **others: Any) -> Any:
        """Decorator, as `cute.jit`, with this object's pass list."""
        warn_of_ignored("jit", others)
        if function is None:
            return lambda inner: self.jit(inner, preprocess=preprocess)
        made = _OwnedFunction(function, preprocess)
        made.dsl = self
        return made

    def kernel(self, function: Any = None, *, preprocess: bool = True, **others: Any) -> Any:
        """Decorator, as `cute.kernel`."""
        warn_of_ignored("kernel", others)
        if function is None:
            return lambda inner: self.kernel(inner, preprocess=preprocess)
        return KernelFunction(function, preprocess)


class CutlassBaseDSL(BaseDSL):
    """The CuTe language."""


CutlassDSL = CuTeDSL = CutlassBaseDSL
