"""Results as files of JSON: an object with `machine`, `results`, `roofs`, `failures` and `skipped`.

A row of `results` has op, backend, shape, dtype, bytes, p50_us, p90_us, gbs, fraction_of_copy, and options where the
case has some; one of a suite of host times has `clock: host` and no rates; one of the emulator has its counters under
`emulator` instead of times. A row of `roofs` has the GB/s of what sets the roof of a case, and the spread: by how much
the medians of two series of the same calls differ.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tilewright
from tilewright.base.errors import ArgumentError
from tilewright.tools.benching.suite_run import Results

WANTED = ("op", "backend", "shape", "dtype", "bytes")


def record(results: Results, suite: str) -> dict[str, Any]:
    """The contents of a file of results."""
    machine = {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"), "suite": suite, "commit": commit(),
               "python": platform.python_version(), **results.machine}  # fmt: skip
    return {
        "machine": machine, "results": results.rows, "roofs": results.roofs, "failures": results.failures,
        "skipped": results.skipped,
    }  # fmt: skip


@functools.cache
def commit() -> str:
    """The commit of the checkout that this package lies in, empty outside one."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    folder = Path(tilewright.__file__).parent
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def write(path: Path, contents: dict[str, Any]) -> None:
    """Write a file of results whole: a run that is stopped leaves the last one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")
    os.replace(part, path)


def read(path: Path) -> dict[str, Any]:
    """The contents of a file of results.

    Raises:
        ArgumentError: it is none.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ArgumentError(f"there is no file {path}") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{path} is no JSON: {error}") from error
    rows = found.get("results") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.keys() >= set(WANTED) for row in rows):
        raise ArgumentError(f"{path} has no results of `tilewright bench --suite`")
    return found


def card(device: str) -> str:
    """A device's name for file names: `NVIDIA H100 80GB HBM3` is `h100`."""
    words = re.findall(r"[a-z0-9]+", device.lower())
    words = [word for word in words if word != "nvidia"]
    memory = next((place for place, word in enumerate(words) if re.fullmatch(r"\d+gb", word)), len(words))
    return "-".join(words[:memory]) or "unknown"


def default_path(folder: Path, suite: str, device: str) -> Path:
    """`<suite>-<card>-<date>.json` in `folder`."""
    return folder / f"{suite}-{card(device)}-{datetime.now(UTC):%Y-%m-%d}.json"
