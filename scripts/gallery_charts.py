"""The charts of the gallery, from a file of results: `python scripts/gallery_charts.py`.

Each shows one op of `bench/results/peers-h200-2026-11-29.json` and its peers, as they were measured in that run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

from tilewright.tools.benching.chart import COLOURS, NAMES

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "tilewright", "font.size": 9})

from matplotlib import pyplot  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results" / "peers-h200-2026-11-29.json"
DTYPES = ("bfloat16", "float32")


@dataclass(frozen=True)
class Chart:
    """A chart of the gallery: the op, what an axis is called, and how a row of results becomes a point of it."""

    op: str
    file: str
    x_label: str
    y_label: str
    x: Callable[[Mapping[str, Any]], str]
    y: Callable[[Mapping[str, Any]], float]
    dtypes: Sequence[str] = DTYPES


def shape(row: Mapping[str, Any]) -> str:
    """The shape as text."""
    return "×".join(map(str, row["shape"]))


def gigabytes(row: Mapping[str, Any]) -> float:
    """GB/s, as measured."""
    return float(row["gbs"])


def teraflops(row: Mapping[str, Any]) -> float:
    """TFLOP/s of a matrix product of shape (M, N, K)."""
    m, n, k = row["shape"]
    return 2.0 * m * n * k / float(row["p50_us"]) * 1e-6


CHARTS = (
    Chart("softmax_online", "softmax_h200.svg", "rows × columns", "GB/s", shape, gigabytes),
    Chart("layernorm", "layernorm_h200.svg", "rows × columns", "GB/s", shape, gigabytes),
    Chart("copy_transpose", "copy_transpose_h200.svg", "rows × columns", "GB/s", shape, gigabytes),
    Chart("gemm", "gemm_h200.svg", "M = N = K", "TFLOP/s", lambda row: str(row["shape"][0]), teraflops,
          ("bfloat16", "float16")),
)  # fmt: skip


def main() -> int:
    """Draw all charts; the exit status."""
    contents = json.loads(RESULTS.read_text(encoding="utf-8"))
    for chart in CHARTS:
        draw(chart, contents, ROOT / "docs" / "images" / chart.file)
    return 0


def draw(chart: Chart, contents: Mapping[str, Any], path: Path) -> None:
    """Draw one chart: a part for each type, groups of bars for each shape, a bar for each backend."""
    rows = [row for row in contents["results"] if row["op"] == chart.op and row.get("gbs")]
    figure, parts = pyplot.subplots(1, len(chart.dtypes), figsize=(9, 3.2), sharey=True, layout="constrained")
    for part, dtype in zip(parts, chart.dtypes, strict=True):
        bars(part, chart, [row for row in rows if row["dtype"] == dtype])
        part.set_title(dtype)
    parts[0].set_ylabel(chart.y_label)
    handles, labels = parts[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    machine = contents["machine"]
    versions = f"torch {machine['torch']}, Triton {machine['triton']}, quack {machine['quack']}"
    figure.suptitle(f"{machine['device']}, CUDA {machine['cuda']}, {versions}, {machine['date'][:10]}", fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def bars(part: Any, chart: Chart, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw one type: the backends side by side at each shape, in the order of the colours."""
    shapes = list(dict.fromkeys(chart.x(row) for row in sorted(rows, key=lambda row: row["shape"][::-1])))
    backends = [name for name in COLOURS if any(row["backend"] == name for row in rows)]
    width = 0.8 / len(backends)
    for number, backend in enumerate(backends):
        mine = [row for row in rows if row["backend"] == backend]
        places = [shapes.index(chart.x(row)) + (number - (len(backends) - 1) / 2) * width for row in mine]
        label = NAMES.get(backend, backend)
        part.bar(places, [chart.y(row) for row in mine], width, color=COLOURS[backend], label=label)
    part.set_xticks(range(len(shapes)), shapes, rotation=15, fontsize=8)
    part.set_xlabel(chart.x_label)
    part.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    sys.exit(main())
