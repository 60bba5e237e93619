"""What has become of the arguments when a program has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.targets.emu import Report
from tilewright.targets.emu.fidelity import Fidelity


def described(words: Sequence[str], given: Sequence[Any], reports: Sequence[Report]) -> str:
    """A line for each array, as the argument was written, with its first elements now; how far the run is a GPU's."""
    lines = []
    for word, value in zip(words, given, strict=False):
        if isinstance(value, np.ndarray):
            first = " ".join(f"{item:g}" for item in value.reshape(-1)[:6].tolist())
            lines.append(f"{word}: {first}{' ...' if value.size > 6 else ''}")
    return "\n".join([*lines, str(Fidelity.of_launches(report.by_form for report in reports))])
