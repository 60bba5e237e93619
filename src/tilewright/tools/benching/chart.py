"""Charts of a file of results: for each op and dtype gigabytes a second over N, a line for each backend."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.base.errors import ArgumentError
from tilewright.tools.benching.cases import BACKENDS

COLOURS = dict(
    zip(BACKENDS, ("#d62728", "#e377c2", "#7f7f7f", "#1f77b4", "#9467bd", "#2ca02c", "#ff7f0e"), strict=True)
)
NAMES = {"kernel": "tilewright"}
ROOF = "copy or read"
FORMATS = ("png", "svg")
INCHES = (4.6, 3.2)
"""Width and height of the part of one op and dtype."""
ABREAST = 4
"""Parts side by side, at most."""


def available() -> bool:
    """Whether charts can be drawn: matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(contents: Mapping[str, Any], path: Path) -> list[Path]:
    """Draw a file's results to `path` with the endings png and svg: a part for each op and dtype.

    Raises:
        ArgumentError: matplotlib is not installed, or nothing was timed.
    """
    if not available():
        raise ArgumentError("charts need matplotlib", hint='pip install "tilewright[bench]"')
    rows = [row for row in contents["results"] if row.get("gbs")]
    if not rows:
        raise ArgumentError("there is nothing to draw: no row was timed")
    figures: Any = importlib.import_module("matplotlib.figure")
    importlib.import_module("matplotlib").rcParams["svg.hashsalt"] = "tilewright"  # the same file from the same results
    parts: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        parts.setdefault((label(row), row["dtype"]), []).append(row)
    across = min(len(parts), ABREAST)
    down = -(-len(parts) // across)
    figure = figures.Figure(figsize=(INCHES[0] * across, INCHES[1] * down), layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for place, ((op, dtype), chosen) in zip(axes, sorted(parts.items()), strict=False):
        _part(place, f"{op}, {dtype}", chosen, contents.get("roofs", ()))
    for place in axes[len(parts) :]:
        place.set_axis_off()
    _legend(figure)
    figure.suptitle(_title(contents["machine"]))
    paths = [path.with_suffix(f".{ending}") for ending in FORMATS]
    path.parent.mkdir(parents=True, exist_ok=True)
    for made in paths:
        figure.savefig(made, metadata={"Date": None} if made.suffix == ".svg" else None)
    return paths


def label(row: Mapping[str, Any]) -> str:
    """The op with its options."""
    options = ", ".join(f"{name}={value}" for name, value in (row.get("options") or {}).items())
    return f"{row['op']}({options})" if options else str(row["op"])


def _title(machine: Mapping[str, Any]) -> str:
    packages = ", ".join(f"{name} {machine[name]}" for name in ("torch", "triton", "quack") if name in machine)
    return f"{machine.get('device', 'unknown device')}, {machine.get('date', '')}\n{packages}"


def _part(axes: Any, title: str, rows: Sequence[Mapping[str, Any]], roofs: Sequence[Mapping[str, Any]]) -> None:
    """One op and dtype. Where shapes share an N, each stands apart, in the order of its size."""
    shapes = sorted({tuple(row["shape"]) for row in rows}, key=lambda shape: (shape[-1], shape))
    places = {shape: place for place, shape in enumerate(shapes)}
    for name in (name for name in BACKENDS if any(row["backend"] == name for row in rows)):
        points = sorted((places[tuple(row["shape"])], row["gbs"]) for row in rows if row["backend"] == name)
        wide = 2.4 if name == "kernel" else 1.2
        axes.plot(
            *zip(*points, strict=True), marker="o", ms=4, lw=wide, color=COLOURS[name], label=NAMES.get(name, name)
        )
    limits = _roof(rows[0], roofs, places)
    if limits:
        axes.plot(*zip(*limits, strict=True), ls="--", lw=1, color="black", label=ROOF)
    axes.set_title(title, fontsize=10)
    axes.set_xticks(range(len(shapes)), ["×".join(map(str, shape)) for shape in shapes], fontsize=7, rotation=20)
    axes.set_xlabel("rows × N", fontsize=8)
    axes.set_ylabel("GB/s", fontsize=8)
    axes.set_ylim(0, 1.06 * max([row["gbs"] for row in rows] + [rate for _, rate in limits]))
    axes.grid(alpha=0.3)


def _legend(figure: Any) -> None:
    """One legend for all parts, in which some backends may be missing."""
    lines = {text: line for axes in figure.axes for line, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    order = [NAMES.get(name, name) for name in BACKENDS] + [ROOF]
    shown = [text for text in order if text in lines]
    figure.legend([lines[text] for text in shown], shown, loc="outside lower center", ncols=len(shown), fontsize=9)


def _roof(
    row: Mapping[str, Any], roofs: Sequence[Mapping[str, Any]], places: Mapping[Any, int]
) -> list[tuple[int, float]]:
    chosen = [item for item in roofs if label(item) == label(row) and item["dtype"] == row["dtype"]]
    return sorted((places[tuple(item["shape"])], max(item["gbs"].values())) for item in chosen
                  if tuple(item["shape"]) in places)  # fmt: skip
