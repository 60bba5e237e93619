"""`import cutlass_cppgen` where this folder is on `PYTHONPATH`: for programs that start other Python processes."""

import importlib
import sys

sys.modules.pop("cutlass_cppgen", None)  # this file: what it stands for takes its place
importlib.import_module("tilewright.dropin")
importlib.import_module("cutlass_cppgen")
