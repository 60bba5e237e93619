"""Draws the pictures of docs/gemm.md and fills its tables.

`python scripts/gemm_tutorial.py` draws docs/images/gemm_step*.svg and counts on the emulator what each step executes
and moves. With a file of `python -m bench gemm_steps`, measured on a GPU, it fills the rates from it:

    python scripts/gemm_tutorial.py bench/results/gemm_steps-h200-2026-12-01.json

A table stands between `<!-- NAME ... -->` and `<!-- end of NAME -->`, NAME `counted` or `rates`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.layout import layout_svg, make_layout, parse, swizzle_svg, tv_layout_svg
from tilewright.layout.draw.cells import Cell, Table
from tilewright.layout.draw.svg import Picture, svg
from tilewright.layout.draw.swizzle import bank_table

ROOT = Path(__file__).resolve().parents[1]
PAGE, IMAGES, EXAMPLES = ROOT / "docs" / "gemm.md", ROOT / "docs" / "images", ROOT / "examples" / "gemm"
STEPS = {
    "step1_naive": "naive",
    "step2_shared_tile": "shared tile",
    "step3_register_tile": "register tile",
    "step4_tensor_cores": "tensor cores",
    "step5_wgmma": "TMA and wgmma",
    "step6_warp_specialised": "warps of different work",
    "step7_clusters": "clusters, persistent",
    "step8_ping_pong": "ping-pong",
}
LIBRARY, PEER = "ops.gemm", "cuBLAS"
NOT_MEASURED = "The rates of these files are not measured yet: `python -m bench gemm_steps` measures them on a GPU.\n"


def main() -> int:
    """Draw and fill; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=Path, help="a file of `python -m bench gemm_steps`, of a GPU")
    results = parser.parse_args().results
    for name, picture in pictures().items():
        (IMAGES / name).write_text(picture, encoding="utf-8")
    text = replaced(PAGE.read_text(encoding="utf-8"), "counted", counted_table(counted()))
    if results is not None:
        text = replaced(text, "rates", rates(json.loads(results.read_text(encoding="utf-8")), results.name))
    PAGE.write_text(text, encoding="utf-8")
    return 0


# Tables


def replaced(text: str, name: str, content: str) -> str:
    """The page with another table."""
    marked = re.compile(rf"(<!-- {name}.* -->\n).*?(<!-- end of {name} -->)", re.S)
    return marked.sub(lambda found: found[1] + content + found[2], text)


def step(name: str) -> Any:
    """The module of a step."""
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    return importlib.import_module(name)


def counted() -> dict[str, tuple[float, ...]]:
    """Of each step, by name, what the emulator counts for 1,000 multiplications: the columns of the table."""
    found = {}
    for name in STEPS:
        module = step(name)
        report = importlib.import_module("harness").check(module.gemm, **module.ON_EMULATOR)
        found[name] = per_thousand(report, module.ON_EMULATOR["shape"])
    return found


def per_thousand(report: Any, shape: Sequence[int]) -> tuple[float, ...]:
    """Instructions of threads, sectors of global memory, wavefronts of shared memory, and those that are conflicts."""
    products = shape[0] * shape[1] * shape[2] / 1000
    counts = report.instructions, report.sectors, report.wavefronts, report.bank_conflicts
    return tuple(count / products for count in counts)


def counted_table(found: Mapping[str, Sequence[float]]) -> str:
    """The lines of the table of counters."""
    heads = "step", "instructions of threads", "sectors of global memory", "wavefronts of shared memory", "conflicts"
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for number, (name, counts) in enumerate(found.items(), 1):
        cells = [f"{count:,.0f}" if count >= 100 else f"{count:.2g}" for count in counts]
        lines.append(f"| {number} {STEPS[name]} | " + " | ".join(cells) + " |")
    return "".join(f"{line}\n" for line in lines)


def rates(record: Mapping[str, Any], file: str) -> str:
    """The table of rates, from a record of the bench, beside cuBLAS in the same run."""
    cells = {tuple(row["name"].split(" ")): row["median"] for row in record["rows"] if row["unit"] == "TFLOP/s"}
    shapes = list(dict.fromkeys(shape for _, shape in cells))
    heads = ["step", *(text for shape in shapes for text in (f"{shape}, TFLOP/s", "of cuBLAS"))]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    names = {**{name: f"{number} {text}" for number, (name, text) in enumerate(STEPS.items(), 1)}, LIBRARY: LIBRARY}
    for name, text in names.items():
        line = [text]
        for shape in shapes:
            rate = cells.get((name, shape))
            line += ["", ""] if rate is None else [f"{rate:.1f}", f"{rate / cells[PEER, shape]:.3f}"]
        lines.append("| " + " | ".join(line) + " |")
    machine = record["machine"]
    source = f"{machine['device']}, commit {machine['commit']}, {machine['date'][:10]}"
    return "".join(f"{line}\n" for line in lines) + f"\n{source} ([record](../bench/results/{file})).\n"


# Pictures


def pictures() -> dict[str, Picture]:
    """The picture of each step, by file name."""
    plain, padded = (make_layout((32, 4), stride=(stride, 1)) for stride in (32, 34))
    patches = make_layout(((16, 2), (2, 2)), stride=((4, 1), (64, 2)))  # (thread along N, along M), (half of N, of M)
    return {
        "gemm_step1.svg": tv_layout_svg(make_layout((8, 1), stride=(1, 0)), (8, 16)),
        "gemm_step2.svg": svg(bank_table(plain, 16), bank_table(padded, 16)),
        "gemm_step3.svg": tv_layout_svg(patches, (4, 32)),
        "gemm_step4.svg": swizzle_svg(parse("S<3,0,3> o 0 o (8,8):(8,1)"), 128),
        "gemm_step4_time.svg": svg(timeline("A ring of three stages", COPIES_AHEAD)),
        "gemm_step5.svg": svg(timeline("One buffer", TAKING_TURNS)),
        "gemm_step6.svg": svg(timeline("A warp that copies, two warpgroups that multiply", SPECIALISED)),
        "gemm_step7.svg": layout_svg(parse("((4,2),8):((1,32),4)")),
        "gemm_step8.svg": svg(timeline("Turns", PING_PONG)),
    }


COPIES_AHEAD = {
    "cp.async": "k0 k1 k2 k3 k4 k5 k6 k7 .  .",
    "mma.sync": ".  .  k0 k1 k2 k3 k4 k5 k6 k7",
}
TAKING_TURNS = {
    "TMA": "k0 .  k1 .  k2 .  k3 .  k4 .",
    "wgmma": ".  k0 .  k1 .  k2 .  k3 .  k4",
}
SPECIALISED = {
    "warp 0: TMA": "k0 k1 k2 k3 k4 k5 k6 k7 .  .  .",
    "warpgroup 1: wgmma": ".  k0 k1 k2 k3 k4 k5 k6 k7 st st",
    "warpgroup 2: wgmma": ".  k0 k1 k2 k3 k4 k5 k6 k7 st st",
}
PING_PONG = {
    "warp 0: TMA": "0 0 0 0 1 1 1 1 2 2 2 2 3 3 3 3 . . .",
    "warpgroup 1": ". 0 0 0 0 s s . . 2 2 2 2 s s . . . .",
    "warpgroup 2": ". . . . . 1 1 1 1 s s . . 3 3 3 3 s s",
}
LEGENDS = {"k": "k0, k1, ...: steps along K", "st": "st: stores", "s": "s: stores a tile", "0": "numbers: tiles of C"}


def timeline(title: str, lanes: Mapping[str, str]) -> Table:
    """What each of `lanes` does over time, which runs to the right; "." is a time in which it waits."""
    lines = [words.split() for words in lanes.values()]
    used = {word for line in lines for word in line}
    legend = [text for key, text in LEGENDS.items() if key in used or (key == "k" and "k0" in used)]
    cells = tuple(tuple(None if word == "." else _work(word) for word in line) for line in lines)
    return Table(title, "time runs to the right; " + "; ".join(legend), cells, names=tuple(lanes))


def _work(word: str) -> Cell:
    number = re.sub(r"\D", "", word)
    return Cell((word,), 0.58 + 0.11 * (int(number) % 4), 0.5) if number else Cell((word,), 0.1, 0.9)


if __name__ == "__main__":
    sys.exit(main())
