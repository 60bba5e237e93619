"""Random edits of what a program reads while it is traced: no stale result, and a hit where nothing changed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tilewright.cute as cute
from tests.compiler.cache.edits import OPTIONAL, PARTS, World
from tilewright.compiler import build, hooks
from tilewright.compiler.cache import lookup


@pytest.fixture(autouse=True)
def fresh(monkeypatch, cache_dir):
    """No bytecode, which counts as fresh when a file of the same size is written within a second."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def forget():
    """As in a new process: only the disk knows."""
    lookup.forget()
    build._cache.clear()


def compiled_with_pass(world: World, out: np.ndarray) -> Any:
    return cute.compile(world.main.run, *world.arguments(out), passes=world.renumber)


def check_results(world: World, what: str) -> None:
    """What `cute.compile` and a direct call give."""
    for passed in (True, False):
        expected = world.expected(passed)
        out = np.zeros(len(expected), np.int32)
        if passed:
            compiled_with_pass(world, out)(out)
        else:
            world.main.run(*world.arguments(out))
        np.testing.assert_array_equal(out, expected, err_msg=f"{what}, {'' if passed else 'not '}passed")


def check(world: World, what: str, provable: bool) -> None:
    """Right results, and at once again nothing to compile; by what is known before tracing, where that is provable."""
    check_results(world, what)
    compiled: list[object] = []
    with hooks.after_compile(compiled.append):
        out = np.zeros(len(world.expected()), np.int32)
        for _ in range(2):
            found = compiled_with_pass(world, out)
            assert found.cached
            forget()
        assert found.cached == "disk"
        check_results(world, what)
    assert not compiled, f"compiled again after: {what}"
    with lookup.Turn(build.plan(world.main.run, world.arguments(out), {}, passes=world.renumber)) as turn:
        assert (turn.before_tracing() is not None) == provable, f"{turn.reason} after: {what}"


def edited(folder, seed: int, edits: int, optional: tuple[str, ...], *, disk_only: bool) -> None:
    world = World(folder, seed, optional)
    provable = not {"environment", "file"} & set(optional)
    try:
        check(world, "the first state", provable)
        for number in range(edits):
            what = f"{number}: {world.edit()}"
            if disk_only and world.random.random() < 0.5:
                forget()
            if "toolkit_function" in what or world.state["toolkit_function"] != 2:
                check_results(world, what)  # with a module of ours changed there is no cache, but in memory
            else:
                check(world, what, provable)
    finally:
        world.close()


@pytest.mark.parametrize("seed", range(2))
def test_a_few_edits(tmp_path, seed):
    edited(tmp_path, seed, 20, ("operation",), disk_only=True)


def test_programs_that_read_files_and_the_environment(tmp_path):
    edited(tmp_path, 7, 10, tuple(OPTIONAL), disk_only=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_a_thousand_edits(tmp_path, seed):
    optional = tuple(OPTIONAL) if seed % 2 else ("operation",)
    edited(tmp_path, seed, 100, optional, disk_only=seed % 3 == 0)


def test_every_part_is_edited_in_some_way():
    assert len(PARTS) + len(OPTIONAL) == 39
