"""Damaged PTX gives a located error, never a crash of the process, a hang, or an error of the emulator's own."""

import pytest

from tests.emu import fuzz


def own_failures(outcomes):
    return {key: count for key, count in outcomes.items() if key.startswith("The emulator failed")}


def test_500_damaged_texts():
    outcomes = fuzz.run(500, seed=1)
    assert sum(outcomes.values()) == 500
    assert own_failures(outcomes) == {}
    assert outcomes.get("runs", 0) > 20 and len(outcomes) > 20


@pytest.mark.slow
def test_10000_damaged_texts():
    outcomes = fuzz.run(10_000, seed=2)
    assert own_failures(outcomes) == {}


@pytest.mark.parametrize(
    "text", ["", "\0", "(" * 5000, "{" * 5000, ".func f() {" + "{" * 5000, ".global .b8 x[" + "9" * 30 + "];"]
)
def test_odd_texts(text):
    assert "line" in fuzz.attempt(text + "\n.visible .entry k() { ret; }", True) or text in ("", "\0")
