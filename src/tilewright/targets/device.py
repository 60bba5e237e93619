"""What runs artifacts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

from tilewright.base.errors import ArgumentError, CompileError
from tilewright.targets.artifact import Artifact
from tilewright.targets.options import Options
from tilewright.targets.profile import Profile


class Timer(Protocol):
    """Times work that a device does beside Python; streams are handles."""

    def seconds(self, run: Callable[[], None], stream: int) -> float:
        """Device time of what `run` enqueues on `stream`."""

    def captured(self, run: Callable[[], None], stream: int) -> AbstractContextManager[Callable[[], None]]:
        """What `run` enqueues, as one graph: a function that enqueues it again."""

    def cache_bytes(self) -> int:
        """The size of the cache that timed calls should not find their data in."""


class Device(ABC):
    """An artifact made ready to run. The class itself answers for the device: is it there, what does it need.

    A device whose calls may go straight to native code sets `direct`: called with the arguments of Python as they are,
    it raises before anything has happened where it cannot take them.
    """

    last_stage: ClassVar[str]
    """The stage that it runs; a compilation for it ends there."""
    timer: ClassVar[Timer | None] = None
    """None: only the time that passes says how long a call took."""

    direct: Callable[..., Any] | None = None
    call_key: Callable[..., bytes | None] | None = None
    """Gives the facts of the arguments of a call that decide which program it runs, or None; see `front.call_key`."""
    reports: list[Any] | None = None
    """What the last call found and counted, one for each launch; None for a device that looks for nothing."""

    @classmethod
    def available(cls) -> bool:
        """Whether it can run here."""
        return True

    @classmethod
    def require(cls) -> None:
        """Raise an error that says what is missing, where it cannot run here."""
        return

    @classmethod
    def arch(cls, places: Iterable[tuple[int, int]] = ()) -> str:
        """The architecture to compile for where none is named; "" for the back end's default.

        `places` are those of the tensors of a call: DLPack's type of each one's device, and its number.
        """
        return ""

    @classmethod
    def model(cls) -> str:
        """What it is called: times that were measured on a device hold for others of this name."""
        return cls.__qualname__

    @classmethod
    def stage_for(cls, options: Options) -> str:
        """The stage at which a compilation with these options ends."""
        return cls.last_stage

    @abstractmethod
    def __init__(self, artifact: Artifact, checks: Any) -> None:
        """Load `artifact`; `checks` is what the user asked to look for, see `cute.compile`."""

    @abstractmethod
    def run(self, values: Sequence[Any]) -> None:
        """Run the host function. `values` are as `arguments.binding.converted` gives them, one for each parameter."""

    def profile(self) -> Profile:
        """What timed regions took since the last call of this method.

        Raises:
            CompileError: the function has no timed region.
        """
        raise CompileError(
            "nothing was timed",
            hint='put @cute.profile above the kernel, or `with cute.profile("load"):` around a part of it; '
            "`--profile=off` leaves both out",
        )

    @property
    def native(self) -> Any:
        """The tvm-ffi function itself, which converts no arguments.

        Raises:
            CompileError: the device runs no native code.
        """
        raise CompileError("this target runs no native host code", hint="call the compiled function itself")

    def ffi_function(self, run: Callable[..., None]) -> Any:
        """A new tvm-ffi function over this device; `run` is the way through Python.

        Raises:
            CompileError: the device has none.
        """
        raise CompileError("this target gives no tvm-ffi function", hint="leave --enable-tvm-ffi out")

    def front(self, other: Callable[..., Any], failed: Callable[..., Any]) -> Callable[..., Any]:
        """What to call with the arguments of Python: it runs native code where that takes them as they are.

        `other` is called with any others, and `failed` after native code has set an error.
        """
        return other

    def raised(self, error: BaseException) -> BaseException:
        """The error to raise for one that `direct` raised."""
        return error

    def raised_natively(self) -> Exception:
        """The error that native code has set in this thread, as `direct` would have raised it."""
        raise NotImplementedError("this device runs no native code by itself")


def check_count(params: Sequence[Any], values: Sequence[Any]) -> None:
    """Refuse a call with too few or too many values."""
    if len(values) != len(params):
        raise ArgumentError(f"{len(params)} arguments are taken, {len(values)} were given")
