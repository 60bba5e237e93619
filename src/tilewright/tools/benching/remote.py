"""Suites on a rented GPU: what is asked for, what it may cost, and the run there, which is the run here.

`bench/modal_bench.py` wires this to Modal.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from tilewright.tools.benching import results, tables
from tilewright.tools.benching.plan import Request
from tilewright.tools.benching.reporting import say


@dataclass(frozen=True)
class Pins:
    """What a rented machine is made of. The packages but PyTorch, which brings Triton, are those of `requirements`.

    `dollars_an_hour` is the price listed by Modal when this was written.
    """

    gpu: str = "B200"
    timeout_seconds: int = 1200
    dollars_an_hour: float = 6.25
    image: str = "nvidia/cuda:13.1.0-devel-ubuntu24.04"
    python: str = "3.12"
    torch: str = "torch==2.11.0"
    torch_index: str = "https://download.pytorch.org/whl/cu130"
    requirements: str = "requirements-dev.txt"
    checkout: str = "/root/tilewright"


PINS = Pins()
SPARE_SECONDS = 120
"""Of the timeout, for what is not measuring: the start, and the way back of the results."""
Remote = Callable[[str, str | None], dict[str, Any]]
"""(suite, op) to the contents of a file of results."""


def notice(pins: Pins = PINS) -> str:
    """What the user should know before a run: the GPU, how long it may take, what that costs."""
    most = pins.dollars_an_hour * pins.timeout_seconds / 3600
    return (
        f"This rents one {pins.gpu} from Modal for at most {pins.timeout_seconds // 60} minutes: at most about "
        f"${most:.2f} at ${pins.dollars_an_hour:.2f} an hour, and the processor, the memory and the image's build on "
        "top. Prices change: modal.com/pricing. Your account pays for it."
    )


def measure(
    suite: str, op: str | None, run: Callable[..., dict[str, Any]], root: Path, pins: Pins = PINS
) -> dict[str, Any]:
    """On the machine with the GPU: `run`, the function behind `tilewright bench`, on the checkout at `root`.

    Returns what it returns, the contents of its file of results.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, budget = Path(folder) / "results.json", float(pins.timeout_seconds - SPARE_SECONDS)
        return run(Request(suite, op), root / "bench" / "suites.yaml", path, budget)


def main(remote: Remote, suite: str, op: str | None, out: Path, console: Console, pins: Pins = PINS) -> None:
    """Say what it may cost, run there, keep what comes back in `out`, and show it."""
    say(console, [notice(pins)])
    found = remote(suite, op)
    results.write(out, found)
    say(console, map(tables.failure, found.get("failures", ())), "red")
    say(console, tables.summary(found))
    say(console, [f"wrote {out}"])
