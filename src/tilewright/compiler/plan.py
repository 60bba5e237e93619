"""What a compilation is asked for, worked out in one place: `cute.compile` and direct calls cannot disagree.

The options of a compilation, the later ones before the earlier: the settings, those of the function's DSL object, those
that the pass list names, those given to `cute.compile`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.compiler import overrides, pass_lists
from tilewright.compiler.arguments import BoundCall, bind_call
from tilewright.compiler.jit import JitFunction
from tilewright.compiler.job import Job
from tilewright.compiler.options import Options
from tilewright.compiler.target import choose_arch, choose_target
from tilewright.hw.chips import normalize_arch
from tilewright.lang import locations, trace
from tilewright.passes.pipeline import PassManager


@dataclass(frozen=True)
class Plan:
    """Everything that decides what is compiled, beside the traced program itself."""

    function: JitFunction[..., Any]
    call: BoundCall
    options: Options
    target: str
    arch: str
    toolkit: str
    pipeline: PassManager
    override: Mapping[str, Any]
    code_settings: tuple[tuple[str, Any], ...]

    def job(self, build: Callable[[Job], Any], python: Callable[[], str]) -> Job:
        """The compilation, not begun; `build(job)` traces the function."""
        return Job(
            name=self.call.signature.name,
            arch=self.arch,
            options=self.options,
            pipeline=self.pipeline,
            trace=build,
            python=python,
            override=self.override,
            toolkit=self.toolkit,
            signature=self.call.signature,
        )

    def key(self) -> Hashable:
        """With the traced program, the key of a cache."""
        return (
            self.call.signature,
            self.options,
            self.target,
            self.arch,
            self.toolkit,
            self.code_settings,
            self.pipeline.key(),
        )


def plan(
    function: JitFunction[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    bound: tuple[Any, ...] = (),
    options: Sequence[Any] = (),
    target: str | None = None,
    arch: str | None = None,
    override: Mapping[str, Any] | None = None,
    passes: Any = (),
    pipeline: PassManager | str | None = None,
) -> Plan:
    """What to compile for a call of `function`; the arguments are those of `cute.compile`.

    Raises:
        CompileError: arguments, options or chips do not fit.
        PassError: the pass list is wrong.
    """
    overrides.check_override(override or {})
    if pipeline is None:
        pipeline = function.pipeline
    listed = PassManager.parse(pipeline) if isinstance(pipeline, str) else pipeline and pipeline.resolved()
    asked = pass_lists.asked_of(listed) if listed is not None else pass_lists.Asked()
    defaults = Options.from_settings().merged(function.defaults)
    made = replace(defaults, **asked.fields, gpu_arch="").checked().merged(options)
    call = bind_call(function.function, trace.symbol(function.symbol_name), (*bound, *args), kwargs)
    chosen = choose_target(target)
    chip = one_chip({"arch": arch, "cubin-chip": asked.chip, "GPUArch": made.gpu_arch}) or defaults.gpu_arch
    made = replace(made, gpu_arch=chip)
    chip = choose_arch(chip, chosen)
    return Plan(
        function=function,
        call=replace(call, bound=len(bound)),
        options=made,
        target=chosen,
        arch=chip,
        toolkit=asked.toolkit or str(settings.get("toolkit")),
        pipeline=_pipeline(chip, made, passes, listed),
        override=override or {},
        code_settings=settings.code_key(),
    )


def one_chip(named: Mapping[str, str | None]) -> str:
    """The chip that is asked for in one or several ways."""
    given = {name: chip for name, chip in named.items() if chip}
    if len({normalize_arch(chip) for chip in given.values()}) > 1:
        ways = {"arch": "arch", "cubin-chip": "the pass list", "GPUArch": "the options"}
        first, *_, last = (ways[name] for name in given)
        raise CompileError(
            f"{first} and {last} name two chips",
            location=locations.user_location(),
            values=given,
            hint="name the chip once",
        )
    return next(iter(given.values()), "")


def _pipeline(arch: str, options: Options, passes: Any, pipeline: PassManager | None) -> PassManager:
    if pipeline is None:
        manager = pass_lists.standard_pipeline(arch, options)
    else:
        manager = pass_lists.completed(pipeline, arch, options)
    pass_lists.place(manager, passes)
    manager.check_order()
    return manager
