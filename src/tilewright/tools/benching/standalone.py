"""`tilewright bench` as the scripts of `bench/` call it."""

from __future__ import annotations

import sys

from tilewright.tools import cli


def main(op: str | None = None) -> None:
    """Run the command with the arguments of this process; `op`, where given, is what is measured."""
    sys.argv[1:1] = ["bench", *(("--op", op) if op is not None else ())]
    cli.main()
