"""What communicators refuse, and how a rank that does not come is named."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tilewright import dist, emulate
from tilewright.base.errors import ArgumentError, LaunchError

SMALL = {"part": 1 << 12, "lines": 1 << 11, "heap": 1 << 12, "signals": 4}


@pytest.mark.parametrize(
    ("algo", "what"), [("lamport", "data that carries flags"), ("one_shot", "data"), ("two_shot", "data")]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_an_absent_rank_is_named(algo: str, what: str, seed: int) -> None:
    with emulate.devices(3, seed=seed) as devices:
        comms = dist.communicators(devices, timeout=1e-5, **SMALL)
        for comm in (comms[0], comms[2]):
            comm.all_reduce(devices[comm.rank].array(np.ones(8, np.float32)), algo=algo)
        with pytest.raises(LaunchError, match=rf"Rank [02] has waited in vain for {what} of rank 1") as raised:
            for comm in comms:
                comm.synchronize()
    text = str(raised.value)
    assert re.search(r"rank +[02]\n", text)
    assert re.search(r"block +0\n", text)
    assert re.search(r"slot +\d+\n", text)
    assert "hint: does every rank run, and make the same calls in the same order? timeout= allows for more" in text


def test_a_rank_that_has_timed_out_refuses_further_calls() -> None:
    with emulate.devices(2) as devices:
        comms = dist.communicators(devices, timeout=1e-5, **SMALL)
        x = devices[0].array(np.ones(8, np.float32))
        comms[0].all_reduce(x)
        with pytest.raises(LaunchError):
            comms[0].synchronize()
        with pytest.raises(LaunchError, match="Rank 0 has waited in vain"):
            comms[0].all_reduce(x)


def test_emulated_devices_must_be_open() -> None:
    with emulate.devices(2) as devices:
        comm = dist.communicators(devices, **SMALL)[0]
        x = ones(devices[0], 4)
    with pytest.raises(ArgumentError, match="this communicator's emulated devices are not open"):
        comm.all_reduce(x)


def check(call: Any, message: str) -> None:
    """`call(communicator, device, other device)` is refused with this text."""
    with emulate.devices(2) as devices:
        comms = dist.communicators(devices, **SMALL)
        with pytest.raises(ArgumentError) as raised:
            call(comms[0], devices[0], devices[1])
    assert message in str(raised.value)
    assert raised.value.hint


def ones(device: emulate.Device, *shape: int) -> Any:
    return device.array(np.ones(shape, np.float32))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c, d, e: c.all_reduce(ones(e, 4)), "rank 0 works on device 0, and the array is elsewhere"),
        (lambda c, d, e: c.all_reduce(np.ones(4)), "hint: devices[0].array(values) puts it there"),
        (lambda c, d, e: c.all_reduce(ones(d, 4), "mean"), "there is no operation 'mean'"),
        (lambda c, d, e: c.all_reduce(ones(d, 4), algo="ring"), "there is no algorithm 'ring'"),
        (lambda c, d, e: c.all_reduce(ones(d, 4), algo="nccl"), "this communicator has no NCCL"),
        (lambda c, d, e: c.all_reduce(ones(d, 4), out=ones(d, 5)), "out has another shape"),
        (lambda c, d, e: c.all_reduce(ones(d, 4), out=d.empty(4, np.float64)), "out has another type than t"),
        (lambda c, d, e: c.all_reduce(ones(d, 4, 4).T), "a tensor is not contiguous"),
        (lambda c, d, e: c.all_reduce(d.zeros(4, np.bool_)), "tensors of bool are not exchanged"),
        (lambda c, d, e: c.reduce_scatter(ones(d, 5)), "dimension 0 has no 2 equal slices"),
        (lambda c, d, e: c.all_gather(ones(d, 5), ones(d, 9)), "a tensor must have the tensors of all ranks"),
        (lambda c, d, e: c.reduce_scatter(ones(d, 6), ones(d, 2)), "a tensor must have a slice like out for each rank"),
        (lambda c, d, e: c.all_to_all(ones(d, 6), ones(d, 4)), "a tensor must have as many elements as t"),
        (lambda c, d, e: (lambda x: c.all_to_all(x, x))(ones(d, 6)), "all_to_all cannot write over its input"),
        (lambda c, d, e: c.broadcast(ones(d, 6), 2), "there is no rank 2"),
        (lambda c, d, e: c.empty(1 << 13, np.uint8), "the heap has no room for this tensor"),
        (lambda c, d, e: c.signals(5), "there are no more slots for signals"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(call: Any, message: str) -> None:
    check(call, message)


def test_torch_distributed_must_have_begun() -> None:
    pytest.importorskip("torch")
    with pytest.raises(ArgumentError, match=r"torch\.distributed has not been initialised"):
        dist.communicator()
    with pytest.raises(ArgumentError, match=r"torch\.distributed has not been initialised"):
        dist.all_reduce(np.ones(4))
