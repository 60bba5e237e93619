"""Tests of the cache begin with nothing in memory."""

import pytest

from tests.compiler.cache.programs import forget


@pytest.fixture(autouse=True)
def nothing_in_memory():
    forget()
    yield
    forget()
