"""List the forms of instructions that the recorded kernels of the emulator's differential suite execute.

`python scripts/list_recorded_forms.py` writes src/tilewright/targets/emu/recorded_forms.txt, from which the emulator
says what of a launch is recorded on a GPU (`tilewright.targets.emu.fidelity`). Kernels of which some results are left
out of the comparison count for nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.emu.numerics.test_ptx_differential import RECORDED, emulated, reference  # noqa: E402
from tilewright.targets.emu.fidelity import TABLE  # noqa: E402

HEAD = """\
# Forms of instructions that kernels recorded on a GPU execute, written by scripts/list_recorded_forms.py.
# The card: {card}.
"""


def forms() -> tuple[set[str], set[str]]:
    """Those compared bit for bit, and those compared within bounds only."""
    exact: set[str] = set()
    bounded: set[str] = set()
    for kernel in RECORDED:
        if not kernel.within:
            (bounded if kernel.compare else exact).update(emulated(kernel)[0].by_form)
    return exact, bounded - exact


def text() -> str:
    """The file."""
    exact, bounded = forms()
    parts = [HEAD.format(card=reference()["card"]), "[recorded]", *sorted(exact), "", "[bounds]", *sorted(bounded)]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    TABLE.write_text(text(), encoding="utf-8")
