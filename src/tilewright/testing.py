"""For pytest: the fixture `no_findings` fails a test when the emulator finds anything in it.

    # conftest.py
    pytest_plugins = ["tilewright.testing"]

Name the fixture in a test, or in `pytestmark = pytest.mark.usefixtures("no_findings")` for all tests of a file.
Findings count however the launch was made: collected with `checks="collect"`, raised and swallowed, on another thread.
Nothing else of the package imports pytest.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.recording import findings

__all__ = ["no_findings", "pytest_pyfunc_call"]

FIXTURE = "no_findings"


@pytest.fixture
def no_findings() -> Iterator[list[EmulationError]]:
    """Fail the test if an emulated kernel of it raced or did something undefined.

    The value is the list of findings so far; `no_findings.clear()` forgets those that were provoked on purpose.
    """
    with findings() as found:
        yield found


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """After the test itself: its findings fail it, or are shown beside what failed it."""
    arguments: dict[str, Any] = pyfuncitem.funcargs
    try:
        result = yield
    except Exception as error:
        found = [one for one in arguments.get(FIXTURE, ()) if one is not error]
        if found:
            pyfuncitem.add_report_section("call", "emulator", described(found))
        raise
    found = arguments.get(FIXTURE, [])
    if found:
        pytest.fail(described(found), pytrace=False)
    return result


def described(found: list[EmulationError]) -> str:
    """All findings as text, numbered if there are several."""
    if len(found) == 1:
        return f"The emulator found an error:\n{found[0]}"
    parts = [f"{number}. {error}" for number, error in enumerate(found, 1)]
    return f"The emulator found {len(found)} errors:\n" + "\n".join(parts)
