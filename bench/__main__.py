"""`python -m bench [topic ...] [--quick] [--out DIR]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from bench.runner import RESULTS, run, topics


def main() -> int:
    """Run the topics named on the command line, all without names."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="topic", help=f"one of: {', '.join(topics()) or 'none yet'}")
    parser.add_argument("--quick", action="store_true", help="measure less, to show that the benchmarks work")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.topics) - set(topics()))
    if unknown:
        parser.error(f"unknown topic {unknown[0]!r}; there are: {', '.join(topics())}")
    run(chosen.topics or topics(), chosen.quick, chosen.out, Console())
    return 0


if __name__ == "__main__":
    sys.exit(main())
