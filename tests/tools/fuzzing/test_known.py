"""The programs of the known faults are legal, and of the form that the compiler looks for."""

import pytest

from tilewright.targets.nvidia.mends.mend_ptx import mend
from tilewright.targets.nvidia.mends.ptxas_faults import FAULTS
from tilewright.tools.fuzzing.campaign import same
from tilewright.tools.fuzzing.known import PROGRAMS
from tilewright.tools.fuzzing.machines import emulated
from tilewright.tools.fuzzing.program import module


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_programs_of_a_fault(fault):
    for program in PROGRAMS[fault.name]:
        text = module([program])
        assert fault.meets(text)
        wanted = emulated(program)
        assert not isinstance(wanted, str), wanted
        if fault.mend:
            assert not fault.meets(mend(text))
            assert same(emulated(program, mend(text)), wanted)
