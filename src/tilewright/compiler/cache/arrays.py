"""Values of NumPy, ml_dtypes and PyTorch that a walk meets. None of these packages is imported for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from tilewright.compiler.cache.pure import is_pure_builtin
from tilewright.compiler.cache.unprovable import UnprovableError
from tilewright.compiler.cache.walk import Walk

LIMIT: Final = 1 << 20
"""Bytes of an array that are read for a digest; a larger one makes a function unprovable."""


def _numpy(reach: Walk, value: Any) -> bool:
    np = sys.modules["numpy"]
    if isinstance(value, np.ndarray):
        _array(reach, value)
    elif isinstance(value, np.dtype):
        reach.note("dtype", str(value), repr(value.descr if value.fields else value.str))
    elif isinstance(value, np.generic):
        reach.note("number", str(value.dtype), value.tobytes())
    elif is_pure_builtin(value):
        reach.note("numpy", value.__name__)
    else:
        return False
    return True


def _array(reach: Walk, value: Any) -> None:
    if value.dtype.hasobject or value.nbytes > LIMIT:
        raise UnprovableError(f"it can reach an array of {value.nbytes} bytes")
    facts = (value.dtype.str, value.shape, value.strides)
    before = value.tobytes()
    reach.note("array", repr(facts), before)
    reach.watch.check(
        value, lambda: (value.dtype.str, value.shape, value.strides) == facts and value.tobytes() == before
    )


def _torch(reach: Walk, value: Any) -> bool:
    torch = sys.modules["torch"]
    if not isinstance(value, torch.dtype | torch.device | torch.Size):
        return False
    reach.note("torch", repr(value))
    return True


ARRAYS: Final[Mapping[str, Callable[[Walk, Any], bool]]] = {"numpy": _numpy, "ml_dtypes": _numpy, "torch": _torch}
"""By the package of the class; False for a value of another kind."""
