"""`cutlass._mlir_helpers.dialect_proxy`: a dialect whose operations take numbers of the language too."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from tilewright.compat.dialects import of_numbers


class DialectAutoConvertProxy:
    """A dialect's module; the functions of it that build operations take numbers, and vectors, of the language."""

    def __init__(self, dialect: Any) -> None:
        self._dialect = dialect

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._dialect, name)
        return of_numbers(found) if isinstance(found, FunctionType) else found
