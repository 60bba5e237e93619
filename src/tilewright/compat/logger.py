"""`cutlass.base_dsl.utils.logger`: `log()` is the logger of the compiler; level DEBUG shows each compilation."""

from __future__ import annotations

import logging

from tilewright.compiler import hooks


def log() -> logging.Logger:
    """The logger `tilewright`. It writes to stderr where no handler is set up."""
    logger = logging.getLogger("tilewright")
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
        logger.addHandler(handler)
        hooks._hooks.append(_report)
    return logger


def _report(executor: object) -> None:
    logger = logging.getLogger("tilewright")
    if logger.isEnabledFor(logging.DEBUG):
        seconds = ", ".join(f"{stage} {1e3 * time:.1f} ms" for stage, time in executor.timings.items())  # type: ignore[attr-defined]
        logger.debug("compiled %s for %s: %s", executor.name, executor.arch, seconds)  # type: ignore[attr-defined]
