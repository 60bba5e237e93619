"""The puzzles from their solutions: `python scripts/puzzles.py` writes `examples/puzzles/*.py` anew.

A solution is a whole program, in which the lines between `# solution` and `# end` are what a reader is to find. The
puzzle is the same program with `# Your code.` in their place. Notebooks of the puzzles are written by
`scripts/notebooks.py`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PUZZLES = ROOT / "examples" / "puzzles"
SOLUTIONS = PUZZLES / "solutions"
ANSWER = re.compile(r"^(?P<indent> *)# solution\n.*?^ *# end\n", re.MULTILINE | re.DOTALL)


def main() -> int:
    """Write all puzzles; the exit status."""
    for solution in sorted(SOLUTIONS.glob("p*.py")):
        (PUZZLES / solution.name).write_text(without_answer(solution.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def without_answer(text: str) -> str:
    """The program of a solution, with a place for the reader's code."""
    return ANSWER.sub(lambda found: f"{found['indent']}# Your code.\n", text)


if __name__ == "__main__":
    sys.exit(main())
