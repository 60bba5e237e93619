"""Writes the measured tables of docs/kernels from a file of bench/results, so that no figure is typed by hand.

`python scripts/measured_tables.py bench/results/peers-h200-2026-11-29.json` fills every table below a marker

    <!-- measured OP -->         or    <!-- measured OP key=value -->

with the rates as fractions of the roof of their case: the fastest copy or read of equal bytes in the same run. The line
below a marker names the file. `--check` writes nothing, and fails where a table is not what its file gives.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "kernels"
RESULTS = ROOT / "bench" / "results"
MARKER = re.compile(r"<!-- measured (\S+)((?: \S+=\S+)*) -->\n(?:<!-- from (\S+) -->\n)?((?:\|.*\n)*)")
BACKENDS = {"kernel": "ours", "torch": "torch", "torch.compile": "compile", "triton": "Triton", "quack": "quack"}
DTYPES = ("float32", "bfloat16")


def main() -> int:
    """Write or check all tables; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=Path, help="what to fill the tables from")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.results is None and not arguments.check:
        parser.error("name a file of bench/results, or --check")
    stale = []
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        new = filled(text, arguments.results)
        if new != text:
            stale.append(str(page.relative_to(ROOT)))
            if not arguments.check:
                page.write_text(new, encoding="utf-8")
    print("\n".join(stale) if stale else "measured tables: as their files have them")
    return int(arguments.check and bool(stale))


def filled(text: str, results: Path | None) -> str:
    """A page with its tables made anew, from `results` or else from the file that each names."""

    def table_of(found: re.Match[str]) -> str:
        name = results.name if results is not None else found[3]
        if name is None:
            return found[0]
        rows = table(json.loads((RESULTS / name).read_text(encoding="utf-8")), found[1], _options(found[2]))
        return f"<!-- measured {found[1]}{found[2]} -->\n<!-- from {name} -->\n" + "".join(f"{row}\n" for row in rows)

    return MARKER.sub(table_of, text)


def _options(text: str) -> dict[str, str]:
    return dict(item.split("=", 1) for item in text.split())


def table(data: dict[str, Any], op: str, options: dict[str, str]) -> list[str]:
    """The lines of the table of an op: a row a shape, a column a backend and dtype."""
    mine = [row for row in data["results"] if row["op"] == op and _has(row, options)]
    roofs = {_case(row): max(row["gbs"].values()) for row in data["roofs"] if row["op"] == op and _has(row, options)}
    rates = {(*_case(row), row["backend"]): row["gbs"] / roofs[_case(row)] for row in mine}
    shown = [name for name in BACKENDS if any(row["backend"] == name for row in mine)]
    columns = [(dtype, backend) for dtype in DTYPES for backend in shown]
    heads = [f"{dtype}, ours" if backend == "kernel" else BACKENDS[backend] for dtype, backend in columns]
    lines = ["| " + " | ".join(["", *heads]).strip() + " |", "|---" * (len(columns) + 1) + "|"]
    for shape in sorted({tuple(row["shape"]) for row in mine}, key=lambda shape: (shape[-1], shape)):
        cells = [rates.get((shape, dtype, backend)) for dtype, backend in columns]
        numbers = ["–" if cell is None else f"{cell:.2f}" for cell in cells]
        lines.append("| " + " | ".join(["×".join(map(str, shape)), *numbers]) + " |")
    return lines


def _has(row: dict[str, Any], options: dict[str, str]) -> bool:
    return all(str((row.get("options") or {}).get(key)) == value for key, value in options.items())


def _case(row: dict[str, Any]) -> tuple[tuple[int, ...], str]:
    return tuple(row["shape"]), row["dtype"]


if __name__ == "__main__":
    sys.exit(main())
