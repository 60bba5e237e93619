"""Graphs of epilogues as pictures: SVG, and text for terminals."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class _Box:
    """A node's place: left and top edge, width, in pixels."""

    meta: NodeBase
    left: int
    top: int
    width: int

    @property
    def middle(self) -> float:
        return self.left + self.width / 2


def draw_text(dag: DAGIR) -> str:
    """One line per node: `op`, name, operands, tensor, implementation."""
    return dag.text()


def draw_svg(dag: DAGIR) -> str:
    """The graph from top to bottom, each node below its inputs, colours by `op`; the text of an SVG file."""
    boxes = _boxes(dag)
    width = max((box.left + box.width for box in boxes.values()), default=0) + _MARGIN
    height = max((box.top for box in boxes.values()), default=0) + _HEIGHT + _MARGIN
    arrows = [
        _arrow(boxes[source], boxes[name], position)
        for name in dag.nodes
        for position, source in enumerate(dag.get_all_inputs(name))
    ]
    return "\n".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}'"
            " font-family='Menlo,Consolas,DejaVu Sans Mono,monospace' font-size='11' text-anchor='middle'>",
            "<defs><marker id='head' viewBox='0 0 8 8' refX='8' refY='4' markerWidth='7' markerHeight='7'"
            " orient='auto'><path d='M0,0 L8,4 L0,8 z' fill='#555555'/></marker></defs>",
            f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
            *arrows,
            *map(_drawn, boxes.values()),
            "</svg>",
            "",
        ]
    )


def _boxes(dag: DAGIR) -> dict[str, _Box]:
    rows: dict[str, int] = {}
    for name in dag.nodes:
        rows[name] = max((rows[source] + 1 for source in dag.get_all_inputs(name)), default=0)
    # A load stands right above its first user.
    for name in dag.nodes:
        if not dag.in_degree(name) and dag.get_users(name):
            rows[name] = min(rows[user] for user in dag.get_users(name)) - 1
    right: dict[int, int] = {}
    boxes: dict[str, _Box] = {}
    for name in dag.nodes:
        meta = dag.get_node_meta(name)
        width = 16 + _LETTER * max(len(line) for line in _lines(meta))
        left = right.get(rows[name], _MARGIN)
        boxes[name] = _Box(meta, left, _MARGIN + rows[name] * _ROW, width)
        right[rows[name]] = left + width + _GAP
    return boxes


def _lines(meta: NodeBase) -> tuple[str, str]:
    below = meta.underlying_impl or meta.op
    return meta.label(), below if meta.tensor is None else f"{below} {meta.element} {meta.tensor.shape}"


def _drawn(box: _Box) -> str:
    name, below = map(escape, _lines(box.meta))
    colour = _COLOURS.get(box.meta.op, "#eeeeee")
    edge = "2" if box.meta.is_output else "1"
    return (
        f"<rect x='{box.left}' y='{box.top}' width='{box.width}' height='{_HEIGHT}' rx='6' fill='{colour}'"
        f" stroke='#555555' stroke-width='{edge}'/>"
        f"<text x='{box.middle}' y='{box.top + 18}'>{name}</text>"
        f"<text x='{box.middle}' y='{box.top + 33}' font-size='9' fill='#444444'>{below}</text>"
    )


def _arrow(source: _Box, target: _Box, position: int) -> str:
    inner = target.left + target.width * (position + 1) / (_operands(position) + 1)
    return (
        f"<line x1='{source.middle}' y1='{source.top + _HEIGHT}' x2='{inner:.0f}' y2='{target.top}'"
        " stroke='#555555' marker-end='url(#head)'/>"
    )


def _operands(position: int) -> int:
    """How many places the top edge of a box has at least, for arrows of operands up to `position`."""
    return max(position + 1, 2)
