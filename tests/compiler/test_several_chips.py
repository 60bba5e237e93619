"""Programs for several chips in one process: compiled, cached and called beside each other."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright.base import settings

CHIPS = ("sm_80", "sm_90a", "sm_120a")


def check(run) -> None:
    x, out = floats()
    run(x, out)
    np.testing.assert_array_equal(out, 2 * x)


@pytest.mark.parametrize("cached", [False, True])
def test_one_function_for_several_chips(cache_dir, cached):
    made = {chip: cute.compile(double, *floats(), target="emu", arch=chip, no_cache=not cached) for chip in CHIPS}
    for chip in (*CHIPS, *reversed(CHIPS)):
        assert f".target {chip}" in made[chip].stages["ptx"]
        check(made[chip])
    if cached:
        again = {chip: cute.compile(double, *floats(), target="emu", arch=chip) for chip in reversed(CHIPS)}
        assert {found.cached for found in again.values()} == {"memory"}
        assert all(again[chip].stages["ptx"] == made[chip].stages["ptx"] for chip in CHIPS)


def test_threads_call_it_on_several_chips(cache_dir):
    wrong: list[object] = []

    def work(chip: str) -> None:
        with settings.scope(target="emu", arch=chip):
            for _ in range(20):
                check(double)
                found = cute.compile(double, *floats())
                if f".target {chip}" not in found.stages["ptx"]:
                    wrong.append(chip)

    threads = [threading.Thread(target=work, args=(chip,)) for chip in CHIPS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    for chip in CHIPS:  # one table of calls is for all of them
        with settings.scope(target="emu", arch=chip):
            check(double)
            assert f".target {chip}" in double.last_executor.stages["ptx"]
