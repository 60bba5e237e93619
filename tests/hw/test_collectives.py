"""The cost model of collectives: it orders scopes and sizes as they are measured, and says what the code does."""

import pytest

from tilewright.hw.collectives import cost

F32 = {"widths": (32,), "integers": False}

# Nanoseconds on an H200, a block for each multiprocessor, less what the chain takes without a collective.
MEASURED = (
    ("warp", 32, 1, {}, 64), ("warp", 32, 1, {"widths": (32,), "integers": True}, 17),
    ("warp", 32, 1, {"widths": (64,), "integers": False}, 87), ("block", 128, 1, {"repeats": True}, 103),
    ("block", 512, 1, {"repeats": True}, 210), ("block", 1024, 1, {"repeats": True}, 234),
    ("cluster", 256, 4, {"repeats": True}, 308), ("cluster", 128, 8, {"repeats": True}, 348),
    ("cluster", 256, 4, {"repeats": True, "mode": "pull"}, 621), ("grid", 256, 132, {"repeats": True}, 1454),
)  # fmt: skip


@pytest.mark.parametrize(("scope", "threads", "blocks", "options", "nanoseconds"), MEASURED)
def test_predictions_are_near_what_was_measured(scope, threads, blocks, options, nanoseconds):
    found = cost("allreduce", scope, threads, blocks, **(F32 | options)).nanoseconds
    assert 0.8 * nanoseconds <= found <= 1.2 * nanoseconds


def test_each_scope_costs_more_than_the_one_inside():
    times = [
        cost("allreduce", scope, threads, blocks, **F32).nanoseconds
        for scope, threads, blocks in (("thread", 1, 1), ("warp", 8, 1), ("warp", 32, 1), ("block", 64, 1),
                                       ("block", 512, 1), ("cluster", 512, 8), ("grid", 512, 132))
    ]  # fmt: skip
    assert times == sorted(times) and times[0] == 0


def test_barriers_and_bytes():
    once, often = (cost("allreduce", "block", 256, 1, **F32, repeats=repeats) for repeats in (False, True))
    assert (once.barriers, often.barriers, once.bytes) == (1, 2, 32)
    two = cost("allreduce", "block", 256, 1, (32, 64), integers=False)
    assert (two.barriers, two.bytes) == (1, 96)
    assert cost("broadcast", "block", 256, 1, (64,), integers=False).bytes == 8
    assert cost("allreduce", "cluster", 256, 4, **F32).bytes == 4 * 8 * 4
    assert cost("allreduce", "warp", 32, 1, (32,), integers=True).algorithm == "redux"
    assert cost("scan", "warp", 32, 1, (32,), integers=True).algorithm == "shift"
