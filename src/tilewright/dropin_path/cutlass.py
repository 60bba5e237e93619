"""`import cutlass` where this folder is on `PYTHONPATH`: for programs that start other Python processes."""

import importlib
import sys

sys.modules.pop("cutlass", None)  # this file: what it stands for takes its place
importlib.import_module("tilewright.dropin")
importlib.import_module("cutlass")
