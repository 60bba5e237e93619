"""The fixture for users: any finding fails the test, however the launch was made."""

import subprocess
import sys

import pytest

CONFTEST = 'pytest_plugins = ["tilewright.testing"]\n'
KERNEL = '''
import threading
import numpy as np
import pytest
from tilewright.emulate import EmulationError, run_ptx

PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{
  .reg .b32 %r<5>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [a];
  mov.u32 %r1, %ctaid.x;
  ACCESS
  ret;
}
"""
GOOD = PTX.replace("ACCESS", "ld.global.u32 %r2, [%d1];")
RACE = PTX.replace("ACCESS", "st.global.u32 [%d1], %r1;")
BEYOND = PTX.replace("ACCESS", "ld.global.u32 %r2, [%d1+4];")

def run(text, checks="collect"):
    return run_ptx(text, "k", 4, 1, [np.full(1, 9, np.int32)], checks=checks)
'''
CASES = {
    "def test_good(no_findings): run(GOOD)": "passed",
    "def test_without_fixture(): run(RACE)": "passed",
    "def test_collected(no_findings): run(RACE)": "failed",
    "def test_raised(no_findings): run(RACE, True)": "failed",
    "def test_swallowed(no_findings):\n    with pytest.raises(EmulationError): run(BEYOND, False)": "failed",
    "def test_thread(no_findings):\n    t = threading.Thread(target=run, args=(RACE,)); t.start(); t.join()": "failed",
    "def test_wanted(no_findings):\n    run(RACE); assert len(no_findings) == 1; no_findings.clear()": "passed",
    "@pytest.mark.usefixtures('no_findings')\ndef test_marked(): run(RACE)": "failed",
    "def test_other_failure(no_findings):\n    run(RACE); assert 1 == 2": "failed",
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """(text, exit status) of pytest on a user's project."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_kernels.py").write_text(KERNEL + "\n\n".join(CASES))
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-v", "-rA", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("source", CASES, ids=lambda source: source.split("test_")[1].split("(")[0])
def test_each_launch_is_judged(outcome, source):
    name = "test_" + source.split("test_")[1].split("(")[0]
    assert f"::{name} {CASES[source].upper()}" in outcome


def test_the_failure_names_the_race(outcome):
    part = outcome[outcome.index("_ test_collected _") : outcome.index("_ test_raised _")]
    assert "The emulator found an error:\nError: Race condition in global memory access" in part
    assert "PTX line" in part and "st.global.u32 [%d1], %r1" in part
    beside = outcome[outcome.index("_ test_other_failure _") :]
    assert "assert 1 == 2" in beside and "Captured emulator call" in beside


def test_a_raised_error_is_told_once(outcome):
    part = outcome[outcome.index("_ test_raised _") : outcome.index("_ test_swallowed _")]
    assert "Race condition" in part and "Captured emulator call" not in part


def test_the_package_does_not_import_pytest():
    code = "import sys, tilewright.emulate, tilewright.cute; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
