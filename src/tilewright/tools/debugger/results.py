"""What has become of the arguments when a program has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def described(words: Sequence[str], given: Sequence[Any]) -> str:
    """A line for each array: the argument as it was written, and its first elements now."""
    lines = []
    for word, value in zip(words, given, strict=False):
        if isinstance(value, np.ndarray):
            first = " ".join(f"{item:g}" for item in value.reshape(-1)[:6].tolist())
            lines.append(f"{word}: {first}{' ...' if value.size > 6 else ''}")
    return "\n".join(lines)
