"""What a compilation is asked for, worked out in one place: `cute.compile` and direct calls cannot disagree.

The options of a compilation, the later ones before the earlier: the settings, those of the function's DSL object, those
that the pass list names, those given to `cute.compile`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.arguments.binding import BoundCall, bind_call, places
from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.compiler.decorated import EntryFunction
from tilewright.compiler.target_choice import choose_arch, choose_target
from tilewright.lang import locations, trace
from tilewright.passes.pipeline import PassManager
from tilewright.targets.job import Job
from tilewright.targets.options import Asked, Options
from tilewright.targets.overrides import check_override
from tilewright.targets.pass_lists import place
from tilewright.targets.target import BackEnd, back_end_of


@dataclass(frozen=True)
class Plan:
    """Everything that decides what is compiled, beside the traced program itself."""

    function: EntryFunction[..., Any]
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
            back_end=back_end_of(self.target).name,
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
    function: EntryFunction[..., Any],
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
    chosen = choose_target(target)
    back_end = back_end_of(chosen)
    check_override(override or {}, back_end.stages)
    if pipeline is None:
        pipeline = function.pipeline
    listed = PassManager.parse(pipeline) if isinstance(pipeline, str) else pipeline and pipeline.resolved()
    asked = back_end.asked_of(listed) if listed is not None else Asked()
    defaults = back_end.options.from_settings().merged(function.defaults)
    made = defaults.changed({**asked.fields, "gpu_arch": ""}).merged(options)
    call = back_end.bound(bind_call(function.function, trace.symbol(function.symbol_name), (*bound, *args), kwargs))
    chip = one_chip(back_end, {"arch": arch, "cubin-chip": asked.chip, "GPUArch": made.gpu_arch}) or defaults.gpu_arch
    made = replace(made, gpu_arch=chip)
    chip = choose_arch(chip, chosen, places(call))
    return Plan(
        function=function,
        call=replace(call, bound=len(bound)),
        options=made,
        target=chosen,
        arch=chip,
        toolkit=asked.toolkit or str(settings.get("toolkit")),
        pipeline=_pipeline(back_end, chip, made, passes, listed),
        override=override or {},
        code_settings=settings.code_key(),
    )


def one_chip(back_end: BackEnd, named: Mapping[str, str | None]) -> str:
    """The chip that is asked for in one or several ways."""
    given = {name: chip for name, chip in named.items() if chip}
    if len({back_end.normalize_arch(chip) for chip in given.values()}) > 1:
        ways = {"arch": "arch", "cubin-chip": "the pass list", "GPUArch": "the options"}
        first, *_, last = (ways[name] for name in given)
        raise CompileError(
            f"{first} and {last} name two chips",
            location=locations.user_location(),
            values=given,
            hint="name the chip once",
        )
    return next(iter(given.values()), "")


def _pipeline(back_end: BackEnd, arch: str, options: Options, passes: Any, pipeline: PassManager | None) -> PassManager:
    if pipeline is None:
        manager = back_end.standard_passes(arch, options)
    else:
        manager = back_end.completed(pipeline, arch, options)
    place(manager, passes)
    manager.check_order()
    return manager
