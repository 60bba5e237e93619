"""Run a compiled program in wolfpine: `run.py FOLDER IN.npz OUT.npz`, with FOLDER as `tilewright compile` writes it.

It runs with the interpreter of `.venv-tenstorrent`. The arrays of IN.npz are the arguments by name; OUT.npz gets those that the
program writes.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(folder: str, given: str, written: str) -> None:
    """Run the program of a folder."""
    from framework.sim import simulator_dir

    os.environ |= {"TT_METAL_SLOW_DISPATCH_MODE": "1", "TT_METAL_SIMULATOR": str(simulator_dir("wormhole"))}
    import numpy
    import ttnn

    spec = importlib.util.spec_from_file_location("host", Path(folder) / "host.py")
    host = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(host)
    device = ttnn.open_device(device_id=0)
    try:
        results = host.run(device, **dict(numpy.load(given)))
        numpy.savez(written, **results)
    finally:
        ttnn.close_device(device)


if __name__ == "__main__":
    main(*sys.argv[1:])
