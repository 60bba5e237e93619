"""Compiled functions: the callable, and what it says of itself."""

from tilewright.compiler.executor.executor import Executor, make_executor

__all__ = ["Executor", "make_executor"]
