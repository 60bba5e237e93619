"""Groups of bulk copies from shared memory: closing one, and waiting for the latest."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang import trace
from tilewright.lang.locations import user_location


def cp_async_bulk_commit_group(*, loc: object = None, ip: object = None) -> None:
    """Close the group of all bulk copies to global memory that this thread has started since its last group."""
    trace.device("cp_async_bulk_commit_group")
    build.cute("bulk_commit", ())


def cp_async_bulk_wait_group(group: Any, *, read: bool = False, loc: object = None, ip: object = None) -> None:
    """Wait until at most `group` of this thread's latest groups are unfinished; `group` is known while compiling.

    With `read` a group is finished when it has read its shared memory, which may then be written again; without, when
    what it wrote is visible too.

    Raises:
        CompileError: `group` is known only at run time, or negative.
    """
    trace.device("cp_async_bulk_wait_group")
    number = getattr(group, "value", group)
    if not isinstance(number, int) or number < 0:
        raise CompileError(
            "cp_async_bulk_wait_group takes a number known while compiling",
            location=user_location(),
            values={"group": group},
            hint="PTX holds the number of groups in the instruction",
        )
    build.cute("bulk_wait", (), (), groups=build.i32(number), read=build.i32(int(bool(read))))
