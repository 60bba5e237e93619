"""Tracebacks of the user's code only: frames of this package are taken out, unless `TILEWRIGHT_DEBUG=1`."""

from __future__ import annotations

from types import TracebackType

from tilewright.base import settings
from tilewright.base.errors import TilewrightError
from tilewright.lang.locations import is_user_code


class OnlyUserFrames:
    """An error that leaves this context shows no frame of the compiler, and not what led to it inside."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None or settings.get("debug"):
            return
        error.__traceback__ = _of_user(error.__traceback__)
        if isinstance(error, TilewrightError):
            error.__cause__, error.__suppress_context__ = None, True


def _of_user(traceback: TracebackType | None) -> TracebackType | None:
    frames = []
    while traceback is not None:
        if is_user_code(traceback.tb_frame.f_code):
            frames.append(traceback)
        traceback = traceback.tb_next
    result: TracebackType | None = None
    for item in reversed(frames):
        result = TracebackType(result, item.tb_frame, item.tb_lasti, item.tb_lineno)
    return result
