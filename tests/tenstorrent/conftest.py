"""Contracts that hold for every pass, checked by `applied`."""

from __future__ import annotations

import pytest

from tests.tenstorrent.programs import MODULES, before
from tilewright.tenstorrent import STANDARD, verify


@pytest.fixture(params=MODULES)
def traced(request):
    """Each of the example programs as it is traced."""
    return MODULES[request.param]()


@pytest.fixture
def applied(traced):
    """Run the pass of a name where it stands; the module before stays as it was, the one after keeps the rules."""

    def apply(name, ctx=None):
        (item,) = [item for item in STANDARD if item.name == name]
        given = before(name, traced, ctx)
        text = given.script()
        made = item.run_module(given, ctx)
        assert given.script() == text
        verify(made, f"pass {name}")
        return given, made

    return apply
