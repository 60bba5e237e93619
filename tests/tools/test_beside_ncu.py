"""Five kernels that ncu measured on an H200: the emulator's counts are the same, and its estimate blames the same."""

import numpy as np
import pytest

import tilewright.cute as cute
from tests.tools.explorer.cases import fake, row_sum
from tests.tools.test_ncu_lines import naive_transpose
from tilewright import ops
from tilewright.base import settings
from tilewright.compiler import hooks
from tilewright.emulate import observe
from tilewright.kernels import gemm
from tilewright.kernels.copy_transpose import _chosen, _compiled
from tilewright.kernels.softmax_online import softmax_online
from tilewright.tools.function_runs import Run, run_executor
from tilewright.tools.profiling.line_profile import line_profiles


@pytest.fixture(autouse=True)
def compiled_anew():
    """What an earlier test compiled would not be seen to be compiled."""
    for table in (_chosen, _compiled, softmax_online._chosen, softmax_online._compiled):
        table.clear()
    gemm._executor.cache_clear()


def called(call):
    """The run of a call of the library, compiled for the chip that was measured."""
    found = []
    with settings.scope(target="emu", arch="sm_90a", no_cache=True), hooks.after_compile(found.append):
        with observe(counters=True, collect=True, checks=False) as reports:
            call()
    return Run("call", found, reports)


def transposed():
    values = [np.ones((512, 512), np.float32), np.zeros((512, 512), np.float32)]
    return run_executor(cute.compile(naive_transpose, *map(fake, values), target="emu"), values)


def product():
    """The product by cp.async and mma.sync that was measured."""
    a, b, out = (np.ones(shape, np.float32) for shape in ((512, 256), (256, 512), (512, 512)))
    with settings.scope(target="emu", arch="sm_80"):
        plan = gemm.plans_of(out, a, b)[0]
    assert plan.tile == (64, 64, 16)
    return called(lambda: gemm.prepare(out, a, b, plan).plain(out, a, b))


KERNELS = {
    "row sum": (lambda: run_executor(*row_sum(1024, 1024)), 132_096, 5_120, "long scoreboard"),
    "transposition": (transposed, 65_536, 270_336, "short scoreboard"),
    "copy_transpose": (lambda: called(lambda: ops.copy_transpose(np.ones((512, 768), np.float16))),
                       49_152, 12_288, "long scoreboard"),
    "softmax_online": (lambda: called(lambda: ops.softmax_online(np.ones((128, 4096), np.float32))),
                       131_072, 1_024, "long scoreboard"),
    "gemm": (product, 294_912, 247_808, None),
}  # fmt: skip
"""Of each: its run, ncu's sectors and wavefronts, and what ncu saw warps wait for most; None where that is not kept."""


@pytest.mark.parametrize("name", KERNELS)
def test_counts_and_the_largest_reason(name):
    run, sectors, wavefronts, reason = KERNELS[name]
    (found,) = line_profiles(run())
    total = found.total
    assert (total.sectors, total.wavefronts) == (sectors, wavefronts)
    if reason is not None:
        assert max(total.stalls, key=total.stalls.get) == reason
    else:  # the GPU hides the copies, which are fetched five steps ahead: 6 % of the samples wait for them
        assert total.stalls["long scoreboard"] < 0.15 * total.stalled
