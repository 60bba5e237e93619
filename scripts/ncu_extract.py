#!/usr/bin/env python3
"""`tilewright profile extract` as a script: ncu_extract.py REPORT... [--json] [--kernel NAME]."""

import os
import sys
from pathlib import Path

try:
    from tilewright.tools.cli import main
except ModuleNotFoundError:
    python = Path(__file__).resolve().parents[1] / ".venv" / "bin" / "python"
    if not python.exists() or Path(sys.executable) == python:
        sys.exit("ncu_extract.py: tilewright is not installed: run make setup or uv sync")
    os.execv(python, [str(python), *sys.argv])

if __name__ == "__main__":
    sys.argv[1:1] = ["profile", "extract"]
    main()
