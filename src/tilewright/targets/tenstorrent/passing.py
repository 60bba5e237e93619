"""Passes of stage `tt`: functions of `(func, mod, ctx)`, or of `(mod, ctx)`, with a decorator.

    @func_pass(opt_level=0)
    def MyFirstPass(func, mod, ctx):
        return func.with_attr("tt.my_pass_ran", True)

A pass can be called in three ways: `MyFirstPass(func, mod, None)` on one function, `MyFirstPass()(func)` the same, and
`MyFirstPass(module)` on all functions of a module. It is a `Pass` of the project too: `passes=MyFirstPass` puts it into
a compilation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from tilewright.base.errors import PassError, TilewrightError
from tilewright.base.interrupts import raised_by_signal
from tilewright.passes.pass_errors import raised_at, reason_of
from tilewright.passes.pipeline import REGISTRY, Pass, add_stage
from tilewright.targets.tenstorrent.context import DEFAULT, PassContext
from tilewright.targets.tenstorrent.tir.nodes import IRModule, PrimFunc

STAGE = "tt"
add_stage(STAGE)


class TirPass(Pass):
    """A pass over functions of `tir`. Subclasses are made by the decorators; `function` is what the user wrote."""

    stage = STAGE
    in_cute = False
    function: ClassVar[Callable[..., Any]]

    def run_module(self, module: IRModule, context: PassContext | None = None) -> IRModule:
        """The module that the pass makes of `module`, which stays as it is."""
        raise NotImplementedError

    def guarded(self, *arguments: Any) -> Any:
        """Call the user's function; what it raises names the pass."""
        try:
            return type(self).function(*arguments)
        except TilewrightError:
            raise
        except Exception as error:
            if raised_by_signal(error):
                raise
            values = {"reason": reason_of(error)} | raised_at(error)
            raise PassError(f"pass {self.name} failed", values=values) from error


class FuncPass(TirPass):
    """A pass over one function at a time."""

    def __call__(self, *arguments: Any) -> Any:
        if not arguments:
            return type(self)()
        target, *rest = arguments
        context = rest[-1] if len(rest) == 2 else None
        if isinstance(target, IRModule):
            return self.run_module(target, context)
        return self._on(target, rest[0] if rest else None, context)

    def run_module(self, module: IRModule, context: PassContext | None = None) -> IRModule:
        made: dict[str, Any] = {}
        for name, item in module.functions.items():
            if not isinstance(item, PrimFunc):
                made[name] = item
                continue
            done = self._on(item, module, context)
            made[done.name] = done
        return module.with_functions(made)

    def _on(self, func: Any, module: IRModule | None, context: PassContext | None) -> PrimFunc:
        if not isinstance(func, PrimFunc):
            raise PassError(
                f"pass {self.name} takes a PrimFunc or an IRModule, not {type(func).__name__}",
                hint="write P(func, mod, None), P()(func) or P(module)",
            )
        made = self.guarded(func, module, context or DEFAULT)
        if not isinstance(made, PrimFunc):
            raise PassError(
                f"pass {self.name} gave {type(made).__name__} in place of a function",
                hint="end it with `return func`",
            )
        return made


class ModulePass(TirPass):
    """A pass over a whole module."""

    def __call__(self, *arguments: Any) -> Any:
        if not arguments:
            return type(self)()
        return self.run_module(*arguments)

    def run_module(self, module: IRModule, context: PassContext | None = None) -> IRModule:
        if not isinstance(module, IRModule):
            raise PassError(
                f"pass {self.name} takes an IRModule, not {type(module).__name__}",
                hint='make one of a function: IRModule({"main": func})',
            )
        made = self.guarded(module, context or DEFAULT)
        if not isinstance(made, IRModule):
            raise PassError(
                f"pass {self.name} gave {type(made).__name__} in place of a module", hint="end it with `return mod`"
            )
        return made


def _kebab(name: str) -> str:
    """`InsertDst` as `insert-dst`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", "-", name).lower()


def _decorator(base: type[TirPass], opt_level: int, name: str) -> Callable[[Callable[..., Any]], Any]:
    if not isinstance(opt_level, int):
        raise PassError("opt_level is an integer", hint="write @func_pass(opt_level=0), with the brackets")

    def decorate(function: Callable[..., Any]) -> Any:
        body = {
            "name": name or _kebab(function.__name__),
            "function": staticmethod(function),
            "opt_level": opt_level,
            "__doc__": function.__doc__,
            "__module__": function.__module__,
        }
        return type(function.__name__, (base,), body)()

    return decorate


def func_pass(opt_level: int = 0, *, name: str = "") -> Callable[[Callable[..., PrimFunc]], FuncPass]:
    """Decorator: a function of `(func, mod, ctx)` that gives a function becomes a pass."""
    return _decorator(FuncPass, opt_level, name)


def module_pass(opt_level: int = 0, *, name: str = "") -> Callable[[Callable[..., IRModule]], ModulePass]:
    """Decorator: a function of `(mod, ctx)` that gives a module becomes a pass."""
    return _decorator(ModulePass, opt_level, name)


def known(item: TirPass) -> TirPass:
    """Make a pass known by its name in pass lists."""
    REGISTRY[item.name] = type(item)
    return item
