"""`import cutlass` where this folder is on `PYTHONPATH`: for programs that start other Python processes."""

import importlib
import sys

sys.modules.pop("cutlass", None)
importlib.import_module("cutlass")
