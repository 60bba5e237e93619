"""What the static verifier SentryWard says of the seeded faults of the emulator's suite.

`python scripts/verify_faults.py --sentryward PROGRAM --out FILE.json` runs the program `sentryward` (from the package
of that name) on every kernel of tests/emu/faults.py and on each of its mutants, one after the other, each with the
launch, the sizes and the pointers that the emulator gets. FILE.json holds its verdict on each and its version.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.emu import faults  # noqa: E402

SECONDS = 30
SCHEMA = "spverify.kernel-input/v1"


def question(case: faults.Case) -> dict[str, Any]:
    """The launch and the parameters of a kernel, in the verifier's form; each array is an object of its own."""
    arguments, _ = case.make()
    named = [(f"{case.name}_param_{at}", argument) for at, argument in enumerate(arguments)]
    return {
        "schema": SCHEMA,
        "entry": case.name,
        "launch": {
            "grid_dim": [*case.grid, 1],
            "block_dim": [*case.block, 1],
            "cluster_dim": [case.cluster, 1, 1],
            "dynamic_shared_bytes": 0,
        },
        "declarations": [
            {"parameter": name, "type": "pointer", "space": "global", "object": name}
            for name, argument in named
            if isinstance(argument, np.ndarray)
        ],
        "arguments": [
            {"parameter": name, "type": "u32", "value": argument}
            for name, argument in named
            if not isinstance(argument, np.ndarray)
        ],
    }


def verdict(program: str, case: faults.Case, text: str) -> dict[str, str]:
    """The result in the verifier's own word, and its first diagnostic."""
    with tempfile.TemporaryDirectory() as folder:
        ptx, config = Path(folder, "kernel.ptx"), Path(folder, "input.json")
        ptx.write_text(text)
        config.write_text(json.dumps(question(case)))
        command = [program, str(ptx), "--input", str(config), "--timeout", str(SECONDS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout)
    first = next(iter(answer.get("diagnostics", [])), {})
    said = re.sub(r"\s+", " ", f"{first.get('code', '')}: {first.get('message', '')}" if first else "")
    return {"result": answer["result"], "diagnostic": said[:160]}


def version(program: str) -> str:
    """The version of the package beside the program."""
    code = "import importlib.metadata as m; print(m.version('sentryward'))"
    python = Path(program).with_name("python")
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Judge all texts; the file is written anew after every kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentryward", required=True, help="the program, in the environment of its package")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows: list[dict[str, str]] = []
    for case in faults.CASES:
        for change, text in [("", faults.PTX), *((m.what, m.text) for m in faults.mutants(case))]:
            rows.append({"kernel": case.name, "change": change, **verdict(given.sentryward, case, text)})
        record = {"version": version(given.sentryward), "rows": rows}
        given.out.write_text(json.dumps(record, indent=1) + "\n")
        print(case.name, [row["result"] for row in rows if row["kernel"] == case.name], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
