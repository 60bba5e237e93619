"""Pictures of graphs: well-formed SVG in which no two nodes lie on each other, and text."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from tests.lib.epilogue.rows import ROWS
from tilewright.epilogue import create_communication_node, create_test_dag, draw_svg, draw_text, parse, trace

SVG = "{http://www.w3.org/2000/svg}"


def boxes(text):
    root = ET.fromstring(text)
    size = float(root.get("width")), float(root.get("height"))
    found = [
        tuple(float(rect.get(side)) for side in ("x", "y", "width", "height")) for rect in root.iter(f"{SVG}rect")
        if rect.get("rx")
    ]  # fmt: skip
    return size, found, [text.text for text in root.iter(f"{SVG}text")], list(root.iter(f"{SVG}polyline"))


@pytest.mark.parametrize("make", [parse, trace])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_nodes_are_apart_and_arrows_go_down(row, make):
    dag = make(row.epilogue, row.examples(*(row.size or (2, 16, 24))))
    (width, height), found, texts, lines = boxes(draw_svg(dag))
    assert len(found) == len(dag.nodes) and len(texts) == 2 * len(found)
    for index, (x, y, w, h) in enumerate(found):
        assert x >= 0 and x + w <= width and y >= 0 and y + h <= height
        assert all(x + w <= u or u + a <= x or y + h <= v or v + b <= y for u, v, a, b in found[:index])
    assert len(lines) == sum(dag.in_degree(name) for name in dag.nodes)
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        assert all(upper[1] < lower[1] for upper, lower in pairwise(points))
        # Edges go between nodes, not through them: the middle of every straight piece is outside.
        for (x, y), (u, v) in pairwise(points):
            middle = (x + u) / 2, (y + v) / 2
            assert not any(a < middle[0] < a + w and b < middle[1] < b + h for a, b, w, h in found)
    for name in dag.nodes:
        assert any(re.match(rf"{name}\b", text) for text in texts)


def test_names_are_escaped_and_outputs_stand_out():
    dag = create_test_dag()
    dag.add_node(create_communication_node("a<b&c", "allreduce"))
    dag.add_edge("D", "a<b&c")
    text = draw_svg(dag)
    assert "a&lt;b&amp;c" in text and text.count("stroke-width='2'") == 2
    assert "a<b&c: allreduce sum over auto" in boxes(text)[2]


def test_equal_graphs_are_drawn_alike():
    assert draw_svg(create_test_dag()) == draw_svg(create_test_dag())


def test_text_has_a_line_per_node():
    lines = draw_text(create_test_dag()).splitlines()
    assert "load    bias()  Float32(2, 16, 8):(0, 0, 1)" in lines
    assert "store   grad_bias (plus reduction)(scaled)  Float32(2, 16, 8):(0, 0, 1)" in lines
    assert "compute compute_4: relu(compute_3)  Float32(2, 16, 8):(128, 8, 1)" in lines and len(lines) == 11
