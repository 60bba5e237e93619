"""Running an artifact on its device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.base.errors import ArgumentError, LaunchError, TilewrightError
from tilewright.base.interrupts import raised_by_signal
from tilewright.base.spans import SpanError
from tilewright.compiler.executor.call_form import CallForm
from tilewright.compiler.executor.wide_form import WideForm
from tilewright.lang.diagnostics.tracebacks import OnlyUserFrames
from tilewright.lang.locations import user_location
from tilewright.targets.artifact import Artifact
from tilewright.targets.device import Device, check_count
from tilewright.targets.inlined import name_calls
from tilewright.targets.profile import Profile


class Runner:
    """An artifact on its device, and its 64-bit form for tensors beyond 2^31. Errors get a line of the user.

    `last_device` is the device of the form that ran last.
    """

    def __init__(self, artifact: Artifact, device: Device, form: CallForm) -> None:
        self.device = self.last_device = device
        self.wide_form: WideForm | None = None
        self._artifact = artifact
        self._form = form

    def call(self, *args: Any, **kwargs: Any) -> None:
        """Run with the arguments of a call: by native code as they are where it takes them, else converted."""
        if self.device.direct is not None and not kwargs and self._form.takes_native(args):
            try:
                self.device.direct(*args)
            except Exception as error:  # noqa: BLE001  (tvm-ffi raises whatever class an error names)
                if self._after_direct(error, args):
                    return
            else:
                return
        self._call_converted(args, kwargs)

    def after_front(self, *args: Any) -> None:
        """What follows where native code has set an error in a call with these arguments."""
        if not self._after_direct(self.device.raised_natively(), args):
            self._call_converted(args, {})

    def _call_converted(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        values = self._form.ordered(args, kwargs)
        try:
            self.run(values)
        except TilewrightError:
            with OnlyUserFrames():
                raise

    def run(self, values: Sequence[Any]) -> None:
        """Run with one value for each parameter of the signature."""
        try:
            self._form.check(values)
            self._run(values)
        except SpanError as error:
            if self.wide_form is None:
                raise self._placed(error) from error.__cause__
            self._run_wide(self.wide_form, values)
        except TilewrightError as error:
            raise self._placed(error) from error.__cause__

    def run_traced(self, values: Sequence[Any]) -> None:
        """The same for values that gave this very program when traced: what is baked in need not be compared."""
        try:
            self._run(values)
        except TilewrightError as error:
            raise self._placed(error) from error.__cause__

    def _after_direct(self, error: Exception, args: tuple[Any, ...]) -> bool:
        """What to do after native code raised: True when the call is done, False to convert its arguments and run.

        Raises:
            BaseException: the error that native code meant.
        """
        if raised_by_signal(error):
            raise error
        raised = self.device.raised(error)  # tvm-ffi raises whatever class an error names
        if isinstance(raised, SpanError) and self.wide_form is not None and self.wide_form.executor is not None:
            self.wide_form.executor(*args)
            return True
        if not isinstance(raised, ArgumentError):
            raise self._placed(raised) from None
        return False  # native code took nothing of this call

    def profile(self) -> Profile:
        """What timed regions took, see `Device.profile`."""
        try:
            return self.last_device.profile()
        except TilewrightError as error:
            raise self._placed(error) from error.__cause__

    def _run_wide(self, form: WideForm, values: Sequence[Any]) -> None:
        """Run the 64-bit form, which is compiled now where no call needed it before."""
        wide = form.get()
        self.last_device = wide.device
        wide.run(values)

    def _run(self, values: Sequence[Any]) -> None:
        self.last_device = self.device
        self.device.run(self._form.converted(values))

    def _placed(self, error: BaseException) -> BaseException:
        """The error with a line of the user: of the launch where it is known, else of the call."""
        if not isinstance(error, TilewrightError):
            return error
        if error.location is None:
            launches = [kernel.launched_at for kernel in self._artifact.kernels]
            at_launch = isinstance(error, LaunchError) and len(launches) == 1
            error.location = launches[0] if at_launch else user_location()
            if not at_launch:
                return error  # of the call: who led to it stands in Python's own traceback
        name_calls(error, self._artifact.inlined)
        return error


def plain_runner(device: Device, form: CallForm) -> Callable[..., None]:
    """A function that runs on `device`; it holds no executor, which would hold itself."""

    def run(*values: Any) -> None:
        check_count(form.params, values)
        device.run(form.converted(values))

    return run
