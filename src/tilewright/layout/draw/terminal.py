"""Tables of cells in the terminal."""

from __future__ import annotations

from tilewright.layout.draw.cells import Cell, Table
from tilewright.layout.draw.colours import rgb

RESET = "\x1b[0m"


def terminal(table: Table, colour: bool) -> str:
    """The table as text, with 24-bit colours if `colour`."""
    joined = [["" if cell is None else "".join(cell.lines) for cell in row] for row in table.cells]
    width = max([len(cell) for row in joined for cell in row] + [len(str(table.columns - 1))]) + 1
    margin = len(str(table.rows - 1)) + 1
    lines = [table.title, " " * margin + "".join(f"{column:>{width}} " for column in range(table.columns)).rstrip()]
    for number, (row, texts) in enumerate(zip(table.cells, joined, strict=True)):
        painted = "".join(
            _painted(cell, f"{content:>{width}} ", colour) for cell, content in zip(row, texts, strict=True)
        )
        lines.append(f"{number:>{margin - 1}} " + (painted if colour else painted.rstrip()))
    if table.footers:
        lines.append(" " * margin + "".join(f"{footer:>{width}} " for footer in table.footers).rstrip())
    if colour or table.footers:
        lines.append(table.legend)
    return "\n".join(lines)


def _painted(cell: Cell | None, content: str, colour: bool) -> str:
    if not colour or cell is None or cell.hue is None:
        return content
    red, green, blue = rgb(cell)
    return f"\x1b[38;2;17;17;17;48;2;{red};{green};{blue}m{content}{RESET}"
