"""Errors under CuTe DSL's names."""

from tilewright.base.errors import CompileError as DSLRuntimeError
from tilewright.base.errors import LaunchError as DSLCudaRuntimeError
