"""The programs of the known faults of assemblers, mended, compute on a device what the emulator does."""

import pytest

from tilewright.targets.nvidia.mends.mend_ptx import mend
from tilewright.targets.nvidia.mends.ptxas_faults import FAULTS
from tilewright.targets.nvidia.toolkit import toolchain
from tilewright.tools.fuzzing.assemblers import found_at
from tilewright.tools.fuzzing.campaign import disagreements, made
from tilewright.tools.fuzzing.known import PROGRAMS
from tilewright.tools.fuzzing.machines import CudaMachine


@pytest.fixture(scope="module")
def machine():
    opened = CudaMachine()
    yield opened
    opened.close()


@pytest.mark.parametrize("fault", [fault.name for fault in FAULTS if fault.mend])
def test_mended_programs(machine, fault):
    assemblers = found_at(str(toolchain.find("ptxas").path))
    batch = made(PROGRAMS[fault], assemblers, checks=True, change=mend)
    assert disagreements(batch, assemblers, machine) == []
