"""`cute.profile`: as a decorator, and as a block of a kernel."""

from __future__ import annotations

import copy
from types import FunctionType
from typing import Any, TypeVar, overload

from tilewright.base.errors import CompileError
from tilewright.compiler.decorated import Decorated, Profiled
from tilewright.lang.locations import user_location
from tilewright.lang.profiling import Region

F = TypeVar("F")


@overload
def profile(what: str) -> Region: ...
@overload
def profile(what: F) -> F: ...
def profile(what: Any) -> Any:
    """Time parts of kernels, warp by warp; `compiled.profile()` gives the result.

    * `@cute.profile` above `@cute.kernel` times the kernel as a whole.
    * above the `@cute.jit` of host code it times every kernel that is launched, above that of device code, a
      `@dsl_user_op` or a plain function every call, under the function's name.
    * `with cute.profile("load"):` in a kernel times the block under that name.

    A region is recorded by the first thread of each warp, so one that this thread does not enter is not seen.

    Raises:
        CompileError: `what` is neither a function nor a name.
    """
    if isinstance(what, str):
        return Region(what)
    if isinstance(what, Decorated):
        made = copy.copy(what)
        made.profiled = True
        return made
    if isinstance(what, FunctionType):
        return Profiled(what)
    raise CompileError(
        f"cute.profile takes a function or the name of a region, not {type(what).__name__}",
        location=user_location(),
        hint='write @cute.profile above a function, or `with cute.profile("load"):` in a kernel',
    )
