"""Run compiled programs in wolfpine: `run.py FOLDER...`, each as `tilewright compile` writes it, with in.npz beside it.

It runs with the interpreter of `.venv-tenstorrent`. The arrays of in.npz are the arguments by name; out.npz gets those
that the program writes.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import ttnn
from framework.sim import simulator_dir


def main(folders: list[str]) -> None:
    """Run the programs of some folders on one device."""
    device = ttnn.open_device(device_id=0)
    try:
        for folder in map(Path, folders):
            spec = importlib.util.spec_from_file_location("host", folder / "host.py")
            host = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(host)
            np.savez(folder / "out.npz", **host.run(device, **dict(np.load(folder / "in.npz"))))
    finally:
        ttnn.close_device(device)


if __name__ == "__main__":
    os.environ |= {"TT_METAL_SLOW_DISPATCH_MODE": "1", "TT_METAL_SIMULATOR": str(simulator_dir("wormhole"))}
    main(sys.argv[1:])
