"""Stubs: names of hardware that is not built yet, which resolve and refuse when they are used.

Public kernels choose their path by the chip, and import the names of every path. A stub is a class, so that it can
stand where such names stand: as an annotation, a default argument, a base class, the second argument of `isinstance`
(nothing is an instance of it), an enumeration whose members are compared. Calling it, or making an object of a class
derived from it, raises `NotBuiltError` with the hardware that it needs.
"""

from __future__ import annotations

import sys
from abc import ABCMeta
from types import ModuleType
from typing import Any, NoReturn

from tilewright.base.errors import TilewrightError
from tilewright.base.location import SourceLocation


class NotBuiltError(TilewrightError, AttributeError):
    """A name of CuTe DSL that is not built yet."""


class Stub(ABCMeta):
    """The class of stubs: a stub is a class without objects."""

    stub_name: str
    stub_reason: str

    def __call__(cls, *_: Any, **__: Any) -> NoReturn:
        cls._refuse()

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"stub {cls.stub_name!r} has no attribute {name!r}", name=name, obj=cls)
        return stub(f"{cls.stub_name}.{name}", cls.stub_reason)

    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __iter__(cls) -> NoReturn:
        cls._refuse()

    def __repr__(cls) -> str:
        return f"<stub {cls.stub_name}>"

    def _refuse(cls) -> NoReturn:
        frame = sys._getframe(2)
        raise NotBuiltError(
            f"{cls.stub_name} {cls.stub_reason}", location=SourceLocation(frame.f_code.co_filename, frame.f_lineno)
        )


class StubModule(ModuleType):
    """A module of which every name is a stub."""

    def __init__(self, name: str, public: str, reason: str) -> None:
        super().__init__(name, f"{public} {reason}.")
        self.__path__: list[str] = []  # so that modules below it can be imported
        self._public, self._reason = public, reason

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        return stub(f"{self._public}.{name}", self._reason)


_known: dict[str, Stub] = {}


def stub(name: str, reason: str) -> Stub:
    """The one stub of that public name; `reason` goes on after the name, as in `needs sm_100, which is not built`."""
    if name not in _known:
        facts = {"stub_name": name, "stub_reason": reason, "__module__": __name__, "__doc__": f"{name} {reason}."}
        _known[name] = Stub(name.rpartition(".")[2], (), facts)
    return _known[name]


def is_stub(value: object) -> bool:
    """Whether a name resolved to a stub."""
    return isinstance(value, (Stub, StubModule))
