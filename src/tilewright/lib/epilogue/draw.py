"""Graphs of epilogues as pictures: SVG, and text for terminals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape

from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.nodes import NodeBase

_COLOURS = {
    "load": "#cfe3f7",
    "compute": "#fde9c4",
    "store": "#d3edd2",
    "layout": "#e8dcf3",
    "comm": "#f8d0cd",
    "dag": "#e4e4e4",
}
_ROW, _GAP, _HEIGHT, _MARGIN = 78, 18, 42, 16
_LETTER = 7
_PASSING = 6  # width of an edge in a row


@dataclass
class _Place:
    """Where a node stands, or where an edge passes through the row of another (`meta` is None). In pixels."""

    key: str
    row: int
    width: int
    meta: NodeBase | None = None
    left: float = _MARGIN
    above: list[str] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return self.left + self.width / 2

    @property
    def top(self) -> int:
        return _MARGIN + self.row * _ROW


def draw_text(dag: DAGIR) -> str:
    """One line per node: `op`, name, operands, tensor, implementation."""
    return dag.text()


def draw_svg(dag: DAGIR) -> str:
    """The graph from top to bottom, each node below its inputs, colours by `op`; the text of an SVG file."""
    places, paths = _placed(dag)
    width = round(max((place.left + place.width for place in places.values()), default=0)) + _MARGIN
    height = max((place.top for place in places.values()), default=0) + _HEIGHT + _MARGIN
    return "\n".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}'"
            " font-family='Menlo,Consolas,DejaVu Sans Mono,monospace' font-size='11' text-anchor='middle'>",
            "<defs><marker id='head' viewBox='0 0 8 8' refX='8' refY='4' markerWidth='7' markerHeight='7'"
            " orient='auto'><path d='M0,0 L8,4 L0,8 z' fill='#555555'/></marker></defs>",
            f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
            *(_arrow([places[key] for key in path], operand, operands) for path, operand, operands in paths),
            *(_drawn(place) for place in places.values() if place.meta is not None),
            "</svg>",
            "",
        ]
    )


def _rows(dag: DAGIR) -> dict[str, int]:
    """The row of each node: below all inputs; a load right above its first user."""
    rows: dict[str, int] = {}
    for name in dag.nodes:
        rows[name] = max((rows[source] + 1 for source in dag.get_all_inputs(name)), default=0)
    for name in dag.nodes:
        if not dag.in_degree(name) and dag.get_users(name):
            rows[name] = min(rows[user] for user in dag.get_users(name)) - 1
    return rows


Path = tuple[list[str], int, int]
"""The places through which an edge goes, which operand it is, and of how many."""


def _placed(dag: DAGIR) -> tuple[dict[str, _Place], list[Path]]:
    """Places row by row, each as near as it goes below what is above it."""
    rows = _rows(dag)
    places: dict[str, _Place] = {}
    for name in dag.nodes:
        meta = dag.get_node_meta(name)
        places[name] = _Place(name, rows[name], 16 + _LETTER * max(map(len, _lines(meta))), meta)
    paths: list[Path] = []
    for name in dag.nodes:
        sources = dag.get_all_inputs(name)
        paths += [
            (_path(places, source, name), position, len(sources)) for position, source in enumerate(sources)
        ]  # fmt: skip
    for row in range(max(rows.values(), default=-1) + 1):
        _arrange([place for place in places.values() if place.row == row], places)
    return places, paths


def _path(places: dict[str, _Place], source: str, target: str) -> list[str]:
    """An edge's places, with one of its own in each row that it passes."""
    path = [source]
    for row in range(places[source].row + 1, places[target].row):
        key = f"{source} to {target} in row {row}"
        places[key] = _Place(key, row, _PASSING, above=[path[-1]])
        path.append(key)
    places[target].above.append(path[-1])
    return [*path, target]


def _arrange(row: list[_Place], places: dict[str, _Place]) -> None:
    wanted = {
        place.key: sum(places[key].middle for key in place.above) / len(place.above) if place.above else math.inf
        for place in row
    }
    edge: float = _MARGIN
    for place in sorted(row, key=lambda place: wanted[place.key]):
        near = wanted[place.key] - place.width / 2
        place.left = max(edge, near) if math.isfinite(near) else edge
        edge = place.left + place.width + _GAP


def _lines(meta: NodeBase) -> tuple[str, str]:
    below = meta.underlying_impl or meta.op
    return meta.label(), below if meta.tensor is None else f"{below} {meta.element} {meta.tensor.shape}"


def _drawn(place: _Place) -> str:
    assert place.meta is not None
    name, below = map(escape, _lines(place.meta))
    colour = _COLOURS.get(place.meta.op, "#eeeeee")
    edge = "2" if place.meta.is_output else "1"
    return (
        f"<rect x='{place.left:.0f}' y='{place.top}' width='{place.width}' height='{_HEIGHT}' rx='6' fill='{colour}'"
        f" stroke='#555555' stroke-width='{edge}'/>"
        f"<text x='{place.middle:.0f}' y='{place.top + 18}'>{name}</text>"
        f"<text x='{place.middle:.0f}' y='{place.top + 33}' font-size='9' fill='#444444'>{below}</text>"
    )


def _arrow(path: list[_Place], operand: int, operands: int) -> str:
    """From the lower edge of the first place, through those of the edge, to the operand's part of the last one."""
    source, *passed, target = path
    points = [(source.middle, source.top + _HEIGHT)]
    for place in passed:
        points += [(place.middle, place.top), (place.middle, place.top + _HEIGHT)]
    points.append((target.left + target.width * (operand + 1) / (operands + 1), target.top))
    line = " ".join(f"{x:.0f},{y}" for x, y in points)
    return f"<polyline points='{line}' fill='none' stroke='#555555' marker-end='url(#head)'/>"
