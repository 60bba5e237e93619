"""These tests compile for the emulator, on machines with a GPU too; tests/gpu has what runs there."""

import pytest

from tilewright.base import settings


@pytest.fixture(scope="module", autouse=True)
def on_the_emulator():
    with settings.scope(target="emu", arch="sm_90a"):
        yield
