"""The process that measures: `python -m tilewright.tools.benching.worker FD`, its job on standard input.

It writes messages, one line of JSON each, to the file descriptor. `tilewright.tools.benching.suite_run` starts it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from tilewright.base import settings
from tilewright.ops.frameworks import torch
from tilewright.tools.benching.cases import Case
from tilewright.tools.benching.measuring import Bench, DeviceLost, device_facts

LOST = 3
"""Exit status where the device is lost, with all that this process had on it."""


def main() -> int:
    """Measure the cases of the job."""
    job = json.load(sys.stdin)
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:

        def send(message: dict[str, Any]) -> None:
            stream.write(json.dumps(message) + "\n")
            stream.flush()

        if job["target"] == "cuda" and not torch.cuda.is_available():
            send({"fatal": f"PyTorch {torch.__version__} finds no GPU here"})
            return 0
        with settings.scope(target=job["target"]):
            return measure(job, send)


def measure(job: dict[str, Any], send: Any) -> int:
    """Run what is asked for; the exit status."""
    send({"machine": device_facts(job["target"])})
    bench = Bench(job["target"], job["warmup"], job["iterations"], send, job["clock"])
    for number, given, backends in job["cases"]:
        if job["deadline"] is not None and time.monotonic() > job["deadline"]:
            send({"late": number})
            continue
        options = tuple((name, value) for name, value in given["options"])
        try:
            bench.run(number, Case(given["op"], tuple(given["shape"]), given["dtype"], options), backends)
        except DeviceLost:
            sys.stderr.flush()
            os._exit(LOST)  # the interpreter's end would wait for the device
        except Exception as error:  # noqa: BLE001  inputs or timing failed: the other cases go on
            send({"case_failure": number, "error": f"{type(error).__name__}: {error}"[:2000]})
            _clean_up()
    return 0


def _clean_up() -> None:
    if torch.cuda.is_available():
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except Exception:  # noqa: BLE001
            os._exit(LOST)


if __name__ == "__main__":
    sys.exit(main())
