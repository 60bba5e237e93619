"""The console that commands print on."""

from __future__ import annotations

from typing import Any

from rich.console import Console

NARROWEST, USUAL, WIDEST = 40, 80, 1000


def console(**options: Any) -> Console:
    """Standard output (with `stderr=True` the other stream) at a width that can be read, whatever `COLUMNS` says."""
    made = Console(**options)
    if not NARROWEST <= made.width <= WIDEST:
        made.width = USUAL if made.width < 1 else min(max(made.width, NARROWEST), WIDEST)
    return made


def in_colour() -> bool:
    """Whether standard output shows colours: a terminal that has them, and nobody asked for none."""
    made = Console()
    return made.is_terminal and not made.no_color and made.color_system is not None
