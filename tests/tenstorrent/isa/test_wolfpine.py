"""The emitted C++, compiled with the headers of ttnn 0.81.1 and run in wolfpine: `make test-tenstorrent`.

Needs `.venv-tenstorrent`, which `scripts/tenstorrent_isa/setup.py` makes. What ran is noted in ran.json, so that
`make test` can tell when the C++ has changed since.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.tenstorrent.isa.programs import digest, named, random_programs
from tilewright.targets.tenstorrent.stages import files_of
from tilewright.tools.commands.compile import write_files

ROOT = Path(__file__).resolve().parents[3]
VENV = ROOT / ".venv-tenstorrent"
RAN = Path(__file__).with_name("ran.json")
SECONDS = 1500

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (VENV / "ready").exists(), reason="no .venv-tenstorrent: run make test-tenstorrent"),
]


def run_all(programs, folder):
    """Run programs in one process of the other interpreter; the log, and results by name."""
    compiled = {name: item.compiled() for name, item in programs.items()}
    for name, item in programs.items():
        made = compiled[name]
        made.stages["cpp"]
        write_files(folder / name, files_of(made.job))
        parameters = [launch["arguments"][tensor["name"]]["parameter"] for launch in made.plan["launches"]
                      for tensor in launch["tensors"]]  # fmt: skip
        arrays = {key: array.astype(np.float32) for key, array in zip(parameters, item.arrays, strict=True)}
        np.savez(folder / name / "in.npz", **arrays)
    log = (folder / "log.txt").open("w")
    environment = {**os.environ, "HOME": str(folder), "TT_METAL_CACHE": str(folder / "cache"),
                   "PATH": f"{VENV / 'bin'}:{os.environ['PATH']}"}  # fmt: skip
    command = [str(VENV / "bin/python"), str(ROOT / "scripts/tenstorrent_isa/run.py"),
               *(str(folder / name) for name in programs)]  # fmt: skip
    process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder, start_new_session=True)
    try:
        process.wait(SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # wolfpine's server outlives a client that was killed
    return compiled


def result(folder, name):
    """What a program wrote."""
    place = folder / name / "out.npz"
    log = (folder / "log.txt").read_text()
    assert place.exists(), f"{name} did not finish:\n{log[-3000:]}"
    (found,) = np.load(place).values()
    return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wolfpine")
    return folder, run_all(named(), folder)


@pytest.mark.parametrize("name", named())
def test_a_program(ran, name):
    folder, compiled = ran
    item, got = named()[name], result(folder, name)
    assert np.linalg.norm(got - item.expected) <= item.bound * np.linalg.norm(item.expected)
    compiled[name](*item.arrays)
    own = item.arrays[-1].astype(np.float64)
    assert np.linalg.norm(got - own) <= 1e-2 * np.linalg.norm(own)
    known = json.loads(RAN.read_text()) if RAN.exists() else {}
    RAN.write_text(json.dumps({**known, name: digest(compiled[name])}, indent=2, sort_keys=True) + "\n")


@pytest.fixture(scope="module")
def random_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("random")
    run_all(random_programs(), folder)
    return folder


@pytest.mark.parametrize("seed", sorted({int(name.split("_")[1]) for name in random_programs()}))
def test_a_random_program_is_the_same_on_two_grids(random_run, seed):
    item = random_programs()[f"random_{seed}_0"]
    first, second = (result(random_run, f"random_{seed}_{grid}") for grid in (0, 1))
    assert (first == second).all()
    assert np.linalg.norm(first - item.expected) <= item.bound * np.linalg.norm(item.expected)
