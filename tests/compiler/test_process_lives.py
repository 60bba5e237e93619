"""Nothing that a user writes ends the process; checked on a child's exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DEADLY = Path(__file__).with_name("deadly.py")
WANTED = {
    "constraint": "CompileError: inline assembly: there is no constraint 'Q'",
    "constraint count": "CompileError: inline assembly: 2 input constraints for 1 operands",
    "operand number": "CompileError: inline assembly: `$7` is used, but the last operand is $1",
    "dollar": "CompileError: inline assembly: `$ ` names no operand",
    "elect": "CompileError: nvvm.elect.sync is not available on sm_80",
    "cluster": "CompileError: nvvm.cluster.wait is not available on sm_86",
    "wgmma": "CompileError: nvvm.wgmma.fence.aligned is not available on sm_100a",
    "cluster rank": "CompileError: block_in_cluster_rank is not available on sm_75",
    "no dialect": "PassError: Error: unknown operation 'custom.my_op'",
    "no operation": "PassError: Error: unknown operation 'nvvm.no_such_op'",
    "not lowered": "PassError: Error: unknown operation 'gpu.no_such_op'",
    "no intrinsic": "CompileError: NVVM Compilation Error:",
    "intrinsic type": "CompileError: NVVM Compilation Error:",
    "intrinsic on chip": "CompileError: llvm.nvvm.elect.sync, elect.sync is not available on sm_80",
    "device on host": "CompileError: nvvm.barrier0 is device code in a host function",
    "host assertion": "LaunchError: n is large",
    "division": "LaunchError: division by zero",
    "remainder": "LaunchError: division by zero",
    "nvvm text": "PassError: Error: unknown operation 'llvm.retern'",
    "llvm text": "CompileError: NVVM Compilation Error:",
    "llvm intrinsic": "CompileError: NVVM Compilation Error:",
    "ptx text": "CompileError: PTX Compilation Error:",
    "block": "CompileError: a block of 2000 threads",
    "out of bounds": "EmulationError: Out-of-bounds write of global memory",
}


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    done = subprocess.run([sys.executable, str(DEADLY)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", WANTED)
def test_an_error_of_ours(printed, name):
    assert printed[name].startswith(WANTED[name])


def test_the_process_works_on(printed):
    assert printed["alive"] == "True" and set(printed) == {*WANTED, "alive"}
