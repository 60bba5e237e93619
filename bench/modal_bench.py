"""Runs a suite on a GPU of Modal: `modal run bench/modal_bench.py --suite smoke --op softmax_online --out FILE`.

It says what GPU it rents, for how long at most, and what that may cost, before it starts. What is pinned is in
`tilewright.tools.benching.remote`; the code that measures is that of `tilewright bench`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tilewright.tools.benching import remote
from tilewright.tools.benching.remote import PINS
from tilewright.tools.console import console

try:
    import modal
except ModuleNotFoundError:
    sys.exit("modal_bench.py: Modal's client is not installed: pip install modal, then modal setup")

ROOT = Path(__file__).resolve().parents[1]
LEFT_HERE = [".git", ".venv", "**/__pycache__", "profiles", "out"]

image = (
    modal.Image.from_registry(PINS.image, add_python=PINS.python)
    .pip_install(PINS.torch, index_url=PINS.torch_index)
    .pip_install_from_requirements(str(ROOT / PINS.requirements))
    .env({"PYTHONPATH": f"{PINS.checkout}/src"})
    .add_local_dir(ROOT, PINS.checkout, ignore=LEFT_HERE)
)
app = modal.App("tilewright-bench", image=image)


@app.function(gpu=PINS.gpu, timeout=PINS.timeout_seconds)
def measure(suite: str, op: str | None):
    """On the rented machine."""
    from tilewright.tools.commands.bench import run_ops  # noqa: PLC0415  it needs what is installed there

    return remote.measure(suite, op, run_ops, Path(PINS.checkout))


@app.local_entrypoint()
def main(suite: str = "smoke", op: str = "", out: str = "results.json"):
    """The command line of `modal run`."""
    remote.main(measure.remote, suite, op or None, Path(out), console())
