"""Tables of cells as SVG, readable at 32 x 32 and beyond."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilewright.layout.draw.cells import Cell, Table
from tilewright.layout.draw.colours import hexadecimal

MARGIN = 30
TOP = 50
"""Space above the cells, for the title and the numbers of the columns."""
WIDEST = 1200
"""Panels that are wider together are stacked."""
FONT = "font-family='Menlo,Consolas,DejaVu Sans Mono,monospace'"


class Picture(str):
    """The text of an SVG picture, which notebooks show as the picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<SVG picture, {len(self):,} characters>"


def svg(*tables: Table) -> Picture:
    """An SVG picture of the tables, side by side where they are narrow, else one below the other."""
    panels = [_Panel(table) for table in tables]
    stacked = sum(panel.width for panel in panels) > WIDEST
    parts: list[str] = []
    left = top = 0
    for panel in panels:
        parts += [f"<g transform='translate({left},{top})'>", *panel.lines(), "</g>"]
        left, top = (0, top + panel.height) if stacked else (left + panel.width, 0)
    width = max(panel.width for panel in panels) if stacked else left
    height = top if stacked else max(panel.height for panel in panels)
    size = f"width='{width}' height='{height}' viewBox='0 0 {width} {height}'"
    background = f"<rect width='{width}' height='{height}' fill='#ffffff'/>"
    return Picture(
        "\n".join([f"<svg xmlns='http://www.w3.org/2000/svg' {size} {FONT}>", background, *parts, "</svg>", ""])
    )


class _Panel:
    """One table: sizes, and the elements that draw it."""

    def __init__(self, table: Table) -> None:
        self.table = table
        texts = [line for row in table.cells for cell in row if cell for line in cell.lines]
        self.two_lines = any(cell and len(cell.lines) > 1 for row in table.cells for cell in row)
        self.cell_width = max(26, 8 + 7 * max(map(len, texts), default=1))
        self.cell_height = 32 if self.two_lines else 22
        self.left = MARGIN + 6 * max(map(len, table.names), default=0)
        self.width = max(self.left + MARGIN + table.columns * self.cell_width, 16 + 8 * len(table.title), 220)
        self.legend = _wrapped(table.legend, (self.width - 16) // 6)
        self.bottom = TOP + table.rows * self.cell_height
        self.below = self.bottom + (18 if table.footers else 0)
        self.height = self.below + 16 * len(self.legend) + 14

    def lines(self) -> Iterator[str]:
        title = escape(self.table.title)
        yield f"<text x='8' y='20' font-size='13' font-weight='bold'>{title}</text>"
        yield from _group("font-size='9' fill='#666666' text-anchor='middle'", self._numbers())
        yield from _group("stroke='#555555' stroke-width='0.5'", self._boxes())
        yield from _group("stroke='#111111' stroke-width='2'", self._borders())
        yield from _group("font-size='11' fill='#111111' text-anchor='middle'", self._texts(0))
        yield from _group("font-size='9' fill='#333333' text-anchor='middle'", self._texts(1))
        yield from _group("font-size='10' text-anchor='middle'", self._footers())
        yield from _group("font-size='10' fill='#444444'", self._legend())

    def _x(self, column: float) -> float:
        return self.left + column * self.cell_width

    def _y(self, row: float) -> float:
        return TOP + row * self.cell_height

    def _numbers(self) -> Iterator[str]:
        for column in range(self.table.columns):
            yield _text(self._x(column + 0.5), TOP - 5, str(column))
        for row in range(self.table.rows):
            name = self.table.names[row] if self.table.names else str(row)
            yield _text(self.left - 13 - 3 * (len(name) if self.table.names else 0), self._y(row + 0.5) + 3, name)

    def _places(self) -> Iterator[tuple[int, int, Cell | None]]:
        for row, line in enumerate(self.table.cells):
            for column, cell in enumerate(line):
                yield row, column, cell

    def _boxes(self) -> Iterator[str]:
        for row, column, cell in self._places():
            fill = "#ffffff" if cell is None else hexadecimal(cell)
            place = f"x='{self._x(column):g}' y='{self._y(row):g}'"
            yield f"<rect {place} width='{self.cell_width}' height='{self.cell_height}' fill='{fill}'/>"

    def _borders(self) -> Iterator[str]:
        """Lines where an inner mode ends and the next begins."""
        right, bottom = self._x(self.table.columns), self._y(self.table.rows)
        rows, columns = self.table.rulers
        for row in range(rows, self.table.rows, rows) if rows else ():
            yield f"<path d='M{self.left} {self._y(row):g}H{right:g}'/>"
        for column in range(columns, self.table.columns, columns) if columns else ():
            yield f"<path d='M{self._x(column):g} {TOP}V{bottom:g}'/>"

    def _texts(self, number: int) -> Iterator[str]:
        down = 13 + 12 * number if self.two_lines else self.cell_height / 2 + 4
        for row, column, cell in self._places():
            if cell is not None and number < len(cell.lines):
                yield _text(self._x(column + 0.5), self._y(row) + down, cell.lines[number])

    def _footers(self) -> Iterator[str]:
        for column, footer in enumerate(self.table.footers):
            colour = "#1a7f37" if footer == "×1" else "#b42318"
            yield _text(self._x(column + 0.5), self.bottom + 14, footer, f" fill='{colour}'")

    def _legend(self) -> Iterator[str]:
        for number, line in enumerate(self.legend):
            yield f"<text x='8' y='{self.below + 18 + 16 * number}'>{escape(line)}</text>"


def _group(attributes: str, elements: Iterable[str]) -> Iterator[str]:
    inside = list(elements)
    if inside:
        yield from (f"<g {attributes}>", *inside, "</g>")


def escape(content: str) -> str:
    """Text as it stands in XML."""
    return content.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _text(x: float, y: float, content: str, attributes: str = "") -> str:
    return f"<text x='{x:g}' y='{y:g}'{attributes}>{escape(content)}</text>"


def _wrapped(sentence: str, width: int) -> list[str]:
    lines = [""]
    for word in sentence.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
