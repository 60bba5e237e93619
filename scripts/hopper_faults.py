"""Write the tables of docs/hopper-faults.md from the kernels of tests/emu/hopper: `python scripts/hopper_faults.py`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.emu.hopper.cases import CASES  # noqa: E402

PAGE = ROOT / "docs" / "hopper-faults.md"
BEGIN, END = "<!-- tables -->\n", "<!-- end of tables -->\n"


def tables() -> str:
    """A table for each kernel: what is wrong, and how it is reported."""
    text = ""
    for case in CASES:
        text += f"\n### {case.what}\n\n| mistake | reported as |\n|---|---|\n"
        for slip in case.slips:
            found = "refused while compiling" if slip.compiled else " or ".join(f"`{kind}`" for kind in slip.kinds)
            text += f"| {slip.what} | {found} |\n"
    return f"{text}\n"


def page(text: str) -> str:
    """The page with the tables as they are now."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{tables()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
