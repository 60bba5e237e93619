"""`cutlass.base_dsl.utils.logger`: `log()` is the logger of the compiler; level DEBUG shows each compilation."""

from __future__ import annotations

import logging

from tilewright.compiler import hooks


def log() -> logging.Logger:
    """The logger `tilewright`. It writes to stderr where no handler is set up."""
    logger = logging.getLogger("tilewright")
    if _report not in hooks._hooks:
        hooks._hooks.append(_report)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
        handler.addFilter(_nobody_else)
        logger.addHandler(handler)
    return logger


def _nobody_else(_: logging.LogRecord) -> bool:
    """Whether no handler further up writes the record too: the user may set one up later, as by `basicConfig`."""
    return not logging.getLogger().handlers


def _report(executor: object) -> None:
    logger = logging.getLogger("tilewright")
    if logger.isEnabledFor(logging.DEBUG):
        seconds = ", ".join(f"{stage} {1e3 * time:.1f} ms" for stage, time in executor.timings.items())  # type: ignore[attr-defined]
        logger.debug("compiled %s for %s: %s", executor.name, executor.arch, seconds)  # type: ignore[attr-defined]
