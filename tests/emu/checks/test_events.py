"""Composing observers."""

import numpy as np
import pytest

from tests.emu.checks.batch import Fed
from tilewright.base.errors import ArgumentError
from tilewright.targets.emu.checks import STANDARD, HappensBefore, Observer, Races, Unwritten
from tilewright.targets.emu.checks.events import ARGUMENTS, Events, nothing
from tilewright.targets.emu.checks.observer import EVENTS
from tilewright.targets.emu.options import Options


def observer(name, answer=None, heard=None, **members):
    """A class of observers of one event, with an answer."""

    def event(self, *arguments):
        if heard is not None:
            heard.append((answer, *arguments))
        return answer

    return type("Heard", (Observer,), {name: event, **members})


def test_an_event_that_no_one_wants_is_nothing():
    on = Events([observer("fence")(None)])
    assert on.shared_access is nothing and not on.wants("shared_access") and on.wants("fence")
    assert not on.guards_shared
    assert Events([observer("before_shared")(None)]).guards_shared


def test_one_observer_is_called_without_a_detour():
    one = Races(Fed([Races], "bar.sync 0;", cluster=2, blocks=2).batch)
    assert Events([one]).threads_ended == one.threads_ended


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("event", ["shared_access", "fence"])
def test_several_hear_in_order_and_the_last_answer_counts(event, count):
    heard = []
    answers = ["a", "b", None][:count] if count == 3 else ["a", None]
    on = Events([observer(event, answer, heard)(None) for answer in answers])
    arguments = ("x",) * ARGUMENTS[event]
    assert getattr(on, event)(*arguments) == ("b" if count == 3 else "a")
    assert heard == [(answer, *arguments) for answer in answers]


def test_ignored_events_are_not_told():
    quiet = observer("shared_access", ignored=frozenset(("shared_access",)))
    assert not Events([quiet(None)]).wants("shared_access")


def test_services_are_one_a_batch_and_hear_before_or_behind_the_checkers():
    fed = Fed([Races, Unwritten], "fence.acq_rel.gpu; bar.sync 1, 64;")
    names = [type(one).__name__ for one in fed.on.observers]
    assert names[0] == "History" and names[1:3] == ["Races", "Unwritten"]
    assert names[3:] == ["MemoryOrder", "BarrierOrder", "MbarrierOrder", "CopyOrder"]
    assert fed.batch.service(HappensBefore) is fed.batch.service(HappensBefore)
    assert fed.batch.of_launch(Shared) is fed.batch.of_launch(Shared)


class Shared(dict):
    def __init__(self, batch):
        super().__init__(batch=batch)


def test_a_kernel_with_barriers_alone_tells_the_memory_order_nothing():
    fed = Fed([Races], "bar.sync 0; st.shared.u32 [%r1], %r2;")
    (memory,) = [one for one in fed.on.observers if type(one).__name__ == "MemoryOrder"]
    assert "shared_access" in memory.ignored


def test_events_are_the_public_methods():
    assert {"shared_access", "barrier_done", "wgmma_read", "refused"} <= set(EVENTS)
    assert all(name[0] != "_" and getattr(Observer, name).__doc__ for name in EVENTS)


def test_all_lanes_at_once():
    """An event has arrays by lane; nothing is called a lane at a time."""
    heard = []
    fed = Fed([observer("shared_access", None, heard)], "ld.shared.u32 %r1, [%r2];", blocks=3, threads=96)
    fed.shared(0, np.arange(288) % 96, False)
    ((_, access),) = heard
    assert access.L.n == 288 and access.size == 4 and access.offsets[-1] == 2 * fed.batch.shared.stride + 95 * 4


# Which checkers a launch has.


def test_options_name_the_checkers():
    mine = observer("fence")
    assert Options(True).checkers == STANDARD and Options("collect").collects and not Options(True).collects
    assert Options(False).checkers == () and not Options(False).checked and Options(False, counters=True).checked
    assert Options([True, mine]).checkers == (*STANDARD, mine)
    assert Options([Races, mine, Races]).checkers == (Races, mine)
    assert Options([]).checkers == () and Options((False, mine), collect=True).collects


@pytest.mark.parametrize(("checks", "message"), [
    ("all", "checks='all' is unknown"), (3, "checks=3 is unknown"), ([Races, "collect"], "checks has 'collect'"),
    ([int], "checks has <class 'int'>, which is no checker"), ([Observer(None)], "which is no checker"),
])  # fmt: skip
def test_what_is_no_checker(checks, message):
    with pytest.raises(ArgumentError) as caught:
        Options(checks)
    assert message in caught.value.message
    assert "tilewright.emulate.Observer" in caught.value.hint or "checks=[True, Mine]" in caught.value.hint
