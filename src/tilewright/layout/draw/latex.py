"""Tables of cells as LaTeX pictures (TikZ)."""

from __future__ import annotations

from tilewright.layout.draw.cells import Cell, Table
from tilewright.layout.draw.colours import rgb

HEAD = r"""\documentclass[convert]{standalone}
\usepackage{tikz}
\begin{document}
\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm, outer sep=0pt, align=center}]"""
TAIL = r"""\end{tikzpicture}
\end{document}
"""


def latex(table: Table) -> str:
    """A document that draws the table; its title is a comment."""
    lines = [f"% {table.title}", f"% {table.legend}", HEAD]
    for row, line in enumerate(table.cells):
        for column, cell in enumerate(line):
            lines.append(_node(cell, row, column))
    for row in range(table.rows):
        lines.append(rf"\node at ({row},-1) {{\Large {row}}};")
    for column in range(table.columns):
        lines.append(rf"\node at (-1,{column}) {{\Large {column}}};")
    return "\n".join([*lines, TAIL])


def _node(cell: Cell | None, row: int, column: int) -> str:
    if cell is None:
        return rf"\node[draw] at ({row},{column}) {{}};"
    red, green, blue = rgb(cell)
    content = r"\\".join(cell.lines)
    return rf"\node[draw, fill={{rgb,255:red,{red};green,{green};blue,{blue}}}] at ({row},{column}) {{{content}}};"
