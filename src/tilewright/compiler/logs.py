"""The logger `tilewright`: INFO says what was compiled, DEBUG the time of each stage and pass.

The settings `log_level`, `log_to_console` and `log_to_file` send it where the environment says; a program may set it up
as any other logger of Python.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, Final

from tilewright.base import settings
from tilewright.base.errors import CompileError

LOGGER: Final = logging.getLogger("tilewright")
_FORMAT: Final = logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s")
_NOTHING: Final = logging.CRITICAL + 1


def log() -> logging.Logger:
    """The logger. It writes to stderr where no handler is set up."""
    if not LOGGER.hasHandlers():
        handler = _console()
        handler.addFilter(_nobody_else)
    return LOGGER


def _nobody_else(_: logging.LogRecord) -> bool:
    """Whether no handler further up writes the record too: the user may set one up later, as by `basicConfig`."""
    return not logging.getLogger().handlers


def compiled(executor: Any) -> None:
    """Log that a function was compiled."""
    follow_settings()
    if not LOGGER.isEnabledFor(logging.INFO):
        return
    times = executor.timings
    LOGGER.info("compiled %s for %s in %.1f ms", executor.name, executor.arch, 1e3 * sum(times.values()))
    if LOGGER.isEnabledFor(logging.DEBUG):
        LOGGER.debug("stages of %s: %s", executor.name, _listed(times.items()))
        LOGGER.debug("passes of %s: %s", executor.name, _listed(executor.pass_timings))
        LOGGER.debug("options of %s: %s", executor.name, executor.artifact.options.to_str() or "the defaults")


def found(executor: Any, where: str) -> None:
    """Log that nothing had to be compiled; `where` is `memory` or `disk`."""
    follow_settings()
    LOGGER.info("found %s for %s in the cache (%s)", executor.name, executor.arch, where)


def _listed(times: Any) -> str:
    return ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in times)


def follow_settings() -> None:
    """Give the logger the level and the handlers that the settings ask for."""
    level = settings.get("log_level")
    console, file = settings.get("log_to_console"), settings.get("log_to_file")
    if level is None and not console and not file:
        return
    LOGGER.setLevel(_NOTHING if level == 0 else logging.INFO if level is None else level)
    if console:
        _console()
    if file:
        _file(file)


@functools.cache
def _console() -> logging.Handler:
    return _added(logging.StreamHandler())


@functools.cache
def _file(path: str) -> logging.Handler:
    try:
        return _added(logging.FileHandler(path, encoding="utf-8"))
    except OSError as error:
        raise CompileError(
            f"cannot write the log to {path!r}: {error.strerror}", hint="TILEWRIGHT_LOG_TO_FILE names a file"
        ) from error


def _added(handler: logging.Handler) -> logging.Handler:
    handler.setFormatter(_FORMAT)
    LOGGER.addHandler(handler)
    return handler
