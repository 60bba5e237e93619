"""Compiled functions: call them, read their stages, ask what they cost."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tilewright.arguments.binding import BoundCall
from tilewright.base import ranges
from tilewright.compiler.executor.call_form import CallForm
from tilewright.compiler.executor.inspection import Inspection
from tilewright.compiler.executor.running import Runner, plain_runner
from tilewright.compiler.executor.stage_map import Compilation
from tilewright.compiler.executor.wide_form import WideForm
from tilewright.targets.artifact import Artifact
from tilewright.targets.device import Device
from tilewright.targets.profile import Profile
from tilewright.targets.target import device_of


class Executor(Inspection):
    """A compiled function. Call it with the arguments that are not compile-time."""

    def __init__(
        self,
        artifact: Artifact,
        call: BoundCall,
        target: str,
        function: FunctionType,
        device: Device,
        compilation: Compilation | None,
    ) -> None:
        """`device` has loaded `artifact`; without the `compilation` that made it, it runs but shows no stages."""
        super().__init__(artifact, compilation)
        self.target = target
        self.device = device
        self.form = CallForm(artifact.signature, call, function)
        self.runner = Runner(artifact, device, self.form)
        self._call = device.front(self.runner.call, self.runner.after_front)
        if ranges.wanted():
            self._call = ranges.around(self._call, f"launch {artifact.name}")

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> None: ...
    else:
        # Python calls native code with no function of Python between, see `targets.host.front`.
        __call__ = property(
            operator.attrgetter("_call"),
            doc="""Run, with the arguments of the compiled function but the compile-time ones; defaults may be left out.

            Raises:
                ArgumentError: they do not fit what the function was compiled for.
                LaunchError: the driver refused a launch.
                EmulationError: the emulator found a fault.
            """,
        )

    def __repr__(self) -> str:
        stages = f"; stages {' '.join(self.stages)}" if self.stages else ""
        return f"<{self.artifact.name}, compiled for {self.arch}, runs on {self.target}{stages}>"

    @property
    def invoke(self) -> Callable[..., None]:
        """Calling it by the name that CuTe DSL's executors have."""
        return self._call

    def ordered(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call as one value for each parameter of the signature."""
        return self.form.ordered(args, kwargs)

    @property
    def run_call(self) -> Callable[..., None]:
        """What calling this runs, for who knows that the arguments fit."""
        return self._call

    def run(self, values: Sequence[Any]) -> None:
        """Run with one value for each parameter of the signature."""
        self.runner.run(values)

    @property
    def wide_form(self) -> WideForm | None:
        """What takes tensors beyond 2^31, where it can be made."""
        return self.runner.wide_form

    @property
    def native(self) -> Any:
        """The tvm-ffi function itself: no conversion of arguments, errors are tvm-ffi's."""
        return self.device.native

    def profile(self) -> Profile:
        """What the timed regions of the calls took since this was last asked; see `cute.profile`.

        Raises:
            CompileError: nothing is timed.
        """
        return self.runner.profile()

    @property
    def last_report(self) -> Any:
        """On the emulator: what the last call found and counted, one report for each launch."""
        return self.runner.last_device.reports


def make_executor(
    artifact: Artifact,
    call: BoundCall,
    target: str,
    function: FunctionType,
    checks: Any,
    compilation: Compilation | None = None,
) -> Executor:
    """Load `artifact` on the device of `target`."""
    device = device_of(target)(artifact, checks)
    if not artifact.options.enable_tvm_ffi:
        return Executor(artifact, call, target, function, device, compilation)
    own = device.ffi_function(plain_runner(device, CallForm(artifact.signature, call, function)))
    kind: Any = type(own)
    made: Executor = _ffi_executor(kind)(artifact, call, target, function, device, compilation)
    made.__move_handle_from__(own)  # type: ignore[attr-defined]
    return made


@functools.cache
def _ffi_executor(function_class: Any) -> type[Executor]:
    """An executor that is a `tvm_ffi.Function`: tvm-ffi passes it on, and other languages call it, without Python.

    Called from Python it is an executor like any other.
    """

    class FfiExecutor(Executor, function_class):  # type: ignore[misc]
        pass

    FfiExecutor.__name__ = FfiExecutor.__qualname__ = "Executor"
    return FfiExecutor
