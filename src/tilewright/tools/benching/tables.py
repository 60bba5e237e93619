"""Results for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.table import Table

from tilewright.tools.benching.chart import label
from tilewright.tools.benching.compare import Comparison


def size(row: Mapping[str, Any]) -> str:
    """A row's shape as text."""
    return "x".join(map(str, row["shape"]))


def line(row: Mapping[str, Any]) -> str:
    """A row as a line, while a run goes on."""
    head = f"{label(row):<26} {size(row):<14} {row['dtype']:<9} {row['backend']:<14}"
    if "emulator" in row:
        return f"{head} right on the emulator: {counters(row['emulator'])}"
    figures = f"{row['p50_us']:>9.1f} µs  p90 {row['p90_us']:>9.1f}  {row['gbs']:>6.0f} GB/s"
    return f"{head}{figures}  {row['fraction_of_copy']:.3f} of the copy rate"


def counters(launches: Iterable[Mapping[str, Any]]) -> str:
    """What the emulator counted, in words."""
    launches = list(launches)
    if not launches:
        return "no kernel of this project ran"
    total = {name: sum(item[name] or 0 for item in launches) for name in launches[0] if name != "kernel"}
    return (
        f"{len(launches)} launch{'es' if len(launches) > 1 else ''}, {total['instructions']:,} thread instructions, "
        f"sectors {total['sectors']:,} (least {total['distinct_sectors']:,}), "
        f"wavefronts {total['wavefronts']:,} (least {total['wavefronts_ideal']:,})"
    )


def failure(row: Mapping[str, Any]) -> str:
    """A failure as a line."""
    return f"{label(row)} {size(row)} {row['dtype']} {row['backend'] or 'all backends'}: {row['error']}"


def summary(contents: Mapping[str, Any]) -> Table:
    """Every timed case in a line: GB/s of each backend, the best marked, and this project's fraction of the roof."""
    backends = list(dict.fromkeys(row["backend"] for row in contents["results"] if row.get("gbs")))
    table = Table(title=f"GB/s on {contents['machine'].get('device', '?')}", title_justify="left")
    table.add_column("case")
    for name in [*backends, "roof", "of roof"]:
        table.add_column(name, justify="right")
    for case, rows in _by_case(contents["results"]):
        best = max(row["gbs"] for row in rows.values())
        cells = [_cell(rows[name]["gbs"], best) if name in rows else "" for name in backends]
        one = next(iter(rows.values()))
        own = f"{rows['kernel']['fraction_of_copy']:.3f}" if "kernel" in rows else ""
        table.add_row(case, *cells, f"{one['gbs'] / one['fraction_of_copy']:.0f}", own)
    return table


def _cell(gbs: float, best: float) -> str:
    return f"[bold]{gbs:.0f}[/bold]" if gbs == best else f"{gbs:.0f}"


def _by_case(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Mapping[str, Any]]]]:
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        if row.get("gbs"):
            found.setdefault(f"{label(row)} {size(row)} {row['dtype']}", {})[row["backend"]] = row
    return iter(sorted(found.items()))


def comparison(found: Comparison) -> Table:
    """What became faster and slower, the most changed first."""
    table = Table(title="median times, new over old", title_justify="left")
    for name in ("case", "backend"):
        table.add_column(name)
    for name in ("old µs", "new µs", "ratio", ""):
        table.add_column(name, justify="right")
    for change in sorted(found.changes, key=lambda change: change.ratio, reverse=True):
        style = {"faster": "green", "slower": "red", "same": "dim"}[change.verdict]
        row = change.row
        table.add_row(
            f"{label(row)} {size(row)} {row['dtype']}", row["backend"], f"{change.old_us:.1f}", f"{change.new_us:.1f}",
            f"{change.ratio:.3f}", f"[{style}]{change.verdict}[/{style}]",
        )  # fmt: skip
    return table
