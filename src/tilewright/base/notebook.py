"""A bar in the output of a notebook's cell. Nothing here imports IPython: where it runs, it is loaded already."""

from __future__ import annotations

import html
import sys
from typing import Any


def display_module() -> Any | None:
    """`IPython.display` while the code of a notebook runs; None in terminals, IPython's own included."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return None if getattr(shell, "kernel", None) is None else sys.modules.get("IPython.display")


class NotebookBar:
    """A bar below the cell that runs; it is drawn by the first `show`, changed by others, and emptied by `clear`."""

    def __init__(self, display: Any) -> None:
        """`display` is what `display_module` gave."""
        self._display = display
        self._handle: Any = None

    def show(self, done: int, total: int, text: str) -> None:
        """Draw `done` of `total`, with a text beside it; a notebook without HTML shows the text."""
        bar = f'<progress value="{done}" max="{max(total, 1)}"></progress> <code>{html.escape(text)}</code>'
        self._put({"text/plain": text, "text/html": bar})

    def clear(self) -> None:
        """Leave nothing to be seen."""
        if self._handle is not None:
            self._put({"text/plain": "", "text/html": ""})
            self._handle = None

    def _put(self, data: dict[str, str]) -> None:
        if self._handle is None:
            self._handle = self._display.display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
