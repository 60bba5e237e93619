"""The C++ that is emitted now is what ran in wolfpine last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tenstorrent.isa.programs import digest, named

RAN = json.loads((Path(__file__).parent / "isa" / "ran.json").read_text())


@pytest.mark.parametrize("name", named())
def test_the_text_has_not_changed(name):
    assert digest(named()[name].compiled()) == RAN[name], "run make test-tenstorrent, which runs it and notes that"
