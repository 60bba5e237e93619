"""`cutlass.base_dsl.utils.logger`: `log()` is the logger of the compiler."""

from tilewright.compiler.logs import log

__all__ = ["log"]
