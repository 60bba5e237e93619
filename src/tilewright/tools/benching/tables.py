"""Results for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tilewright.tools.benching.cases import OWN
from tilewright.tools.benching.chart import label
from tilewright.tools.benching.compare import Comparison


def size(row: Mapping[str, Any]) -> str:
    """A row's shape as text."""
    return "x".join(map(str, row["shape"]))


def case_of(row: Mapping[str, Any]) -> str:
    """Op, options, shape and dtype of a row, as text."""
    return f"{label(row)} {size(row)} {row['dtype']}"


def line(row: Mapping[str, Any]) -> str:
    """A row as a line, while a run goes on."""
    head = f"{label(row):<32} {size(row):<13} {row['dtype']:<9} {row['backend']:<14}"
    if "emulator" in row:
        return f"{head} right on the emulator: {counters(row['emulator'])}"
    if row.get("clock") == "host":
        return f"{head}{row['p50_us']:>9.1f} µs of the host  p90 {row['p90_us']:>9.1f}"
    figures = f"{row['p50_us']:>9.1f} µs  p90 {row['p90_us']:>9.1f}  {row['gbs']:>6.0f} GB/s"
    return f"{head}{figures}  {row['fraction_of_copy']:.3f} of the copy rate"


TOTALS = ("instructions", "sectors", "distinct_sectors", "wavefronts", "wavefronts_ideal")


def counters(launches: Iterable[Mapping[str, Any]]) -> str:
    """What the emulator counted, in words."""
    launches = list(launches)
    if not launches:
        return "no kernel of this project ran"
    total = {name: sum(item[name] or 0 for item in launches) for name in TOTALS}
    return (
        f"{len(launches)} launch{'es' if len(launches) > 1 else ''}, {total['instructions']:,} thread instructions, "
        f"sectors {total['sectors']:,} (least {total['distinct_sectors']:,}), "
        f"wavefronts {total['wavefronts']:,} (least {total['wavefronts_ideal']:,})"
    )


def failure(row: Mapping[str, Any]) -> str:
    """A failure as a line."""
    return f"{case_of(row)} {row['backend'] or 'all backends'}: {row['error']}"


def summary(contents: Mapping[str, Any]) -> Iterator[str]:
    """Every timed case in a line: GB/s of each backend, the roof, and this project over roof and over the best peer."""
    timed = [row for row in contents["results"] if row.get("gbs")]
    backends = list(dict.fromkeys(row["backend"] for row in timed))
    yield f"GB/s on {contents['machine'].get('device', '?')}"
    spreads = {case_of(row): row["spread"] for row in contents.get("roofs", ()) if "spread" in row}
    yield _columns("case", [*backends, "roof", "/ roof", "/ best peer", "spread"])
    for case, rows in _by_case(timed):
        cells = [f"{rows[name]['gbs']:.0f}" if name in rows else "" for name in backends]
        one = next(iter(rows.values()))
        spread = f"{spreads[case]:.3f}" if case in spreads else ""
        yield _columns(case, [*cells, f"{one['gbs'] / one['fraction_of_copy']:.0f}", *_own(rows), spread])


def _own(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    if "kernel" not in rows:
        return ["", ""]
    peers = [row["gbs"] for name, row in rows.items() if name not in OWN]
    over = f"{rows['kernel']['gbs'] / max(peers):.3f}" if peers else ""
    return [f"{rows['kernel']['fraction_of_copy']:.3f}", over]


def _columns(case: str, cells: Iterable[str]) -> str:
    return f"{case:<50}" + "".join(f"{cell:>14}" for cell in cells).rstrip()


def _by_case(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Mapping[str, Any]]]]:
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(case_of(row), {})[row["backend"]] = row
    return iter(sorted(found.items()))


def comparison(found: Comparison) -> Iterator[str]:
    """What became faster and slower, a row a line, the slowest first."""
    yield _columns("median times", ["backend", "old µs", "new µs", "new / old", ""])
    for change in sorted(found.changes, key=lambda change: change.ratio, reverse=True):
        figures = f"{change.old_us:.1f}", f"{change.new_us:.1f}", f"{change.ratio:.3f}"
        yield _columns(case_of(change.row), [change.row["backend"], *figures, change.verdict])
    for title, rows in (("only in the old file", found.only_old), ("only in the new file", found.only_new)):
        if rows:
            yield f"{title}: {len(rows)} rows"
