"""Number types by name, for command lines."""

from __future__ import annotations

from tilewright.base.errors import ArgumentError
from tilewright.lang.numeric import ALL, BY_NAME, Numeric

_BY_CLASS_NAME = {cls.__name__: cls for cls in ALL}


def dtype(name: str | type[Numeric]) -> type[Numeric]:
    """The number type called `name`: `Float16`, or short `f16`. A type stands for itself.

    Raises:
        ArgumentError: there is no such type (also a ValueError, as argparse expects).
    """
    if isinstance(name, type) and issubclass(name, Numeric):
        return name
    found = _BY_CLASS_NAME.get(name) or BY_NAME.get(name)
    if found is None:
        raise ArgumentError(f"no number type is called {name!r}", hint=f"types: {', '.join(_BY_CLASS_NAME)}")
    return found
