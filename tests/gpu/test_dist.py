"""Collectives on GPUs: one rank, two ranks on one device, and where there are two GPUs one rank on each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tilewright import dist  # noqa: E402  (only where PyTorch is)

TWO = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.device_count() < 2, reason="two GPUs are needed, and there are fewer"
)
PLACES = [pytest.param((0,), id="one rank"), pytest.param((0, 0), id="two ranks on one device"),
          pytest.param((0, 1), id="two devices", marks=TWO)]  # fmt: skip
ALGORITHMS = ("lamport", "one_shot", "two_shot")


class Ranks:
    """Communicators of one process, each with a stream of its own."""

    def __init__(self, devices: tuple[int, ...], **options: Any) -> None:
        self.devices = [torch.device("cuda", number) for number in devices]
        self.comms = dist.communicators(list(devices), timeout=10, **options)
        self.streams = [torch.cuda.Stream(device) for device in self.devices]

    def each(self, call: Callable[[int, Any], Any]) -> list[Any]:
        """`call(rank, communicator)` for every rank on its stream, then wait for all."""
        found = []
        for rank, (comm, stream) in enumerate(zip(self.comms, self.streams, strict=True)):
            with torch.cuda.device(self.devices[rank]), torch.cuda.stream(stream):
                found.append(call(rank, comm))
        for comm in self.comms:
            comm.synchronize()
        return found


@pytest.fixture(params=PLACES, scope="module")
def ranks(request: pytest.FixtureRequest) -> Ranks:
    return Ranks(request.param, part=1 << 22, lines=1 << 18, heap=1 << 20)


def numbers(ranks: Ranks, count: int, dtype: Any) -> list[Any]:
    """Small whole numbers, so that sums are exact in any order."""
    made = []
    for rank, device in enumerate(ranks.devices):
        torch.manual_seed(rank)
        made.append(torch.randint(-8, 9, (count,)).to(dtype).to(device))
    torch.cuda.synchronize()
    return made


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int8], ids=str)
@pytest.mark.parametrize("count", [1, 1000, 70001, 1 << 20])
def test_sums(ranks: Ranks, algo: str, dtype: Any, count: int) -> None:
    given = numbers(ranks, count, dtype)
    want = sum(x.cpu() for x in given).to(dtype)
    outs = [torch.empty_like(x) for x in given]
    ranks.each(lambda rank, comm: comm.all_reduce(given[rank], algo=algo, out=outs[rank]))
    assert all(torch.equal(out.cpu(), want) for out in outs)


def test_the_other_collectives(ranks: Ranks) -> None:
    world = len(ranks.devices)
    given = numbers(ranks, 3003 * world, torch.float16)
    gathered = [torch.empty(3003 * world * world, dtype=torch.float16, device=d) for d in ranks.devices]
    scattered = [torch.empty(3003, dtype=torch.float16, device=d) for d in ranks.devices]
    turned = [torch.empty_like(x) for x in given]
    ranks.each(lambda rank, comm: comm.all_gather(given[rank], gathered[rank]))
    ranks.each(lambda rank, comm: comm.reduce_scatter(given[rank], scattered[rank]))
    ranks.each(lambda rank, comm: comm.all_to_all(given[rank], turned[rank]))
    every = [x.cpu() for x in given]
    total = sum(every)
    for rank in range(world):
        part = slice(3003 * rank, 3003 * (rank + 1))
        assert torch.equal(gathered[rank].cpu(), torch.cat(every))
        assert torch.equal(scattered[rank].cpu(), total[part])
        assert torch.equal(turned[rank].cpu(), torch.cat([x[part] for x in every]))
    ranks.each(lambda rank, comm: comm.broadcast(given[rank], world - 1))
    assert all(torch.equal(x.cpu(), every[-1]) for x in given)
    ranks.each(lambda rank, comm: comm.barrier())


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_graphs_of_fifty_calls(ranks: Ranks, algo: str) -> None:
    given = numbers(ranks, 4096, torch.int32)
    outs = [torch.empty_like(x) for x in given]
    ranks.each(lambda rank, comm: comm.all_reduce(given[rank], algo=algo, out=outs[rank]))  # compiles
    graphs = []
    for rank, comm in enumerate(ranks.comms):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(ranks.devices[rank]), torch.cuda.graph(graph, stream=ranks.streams[rank]):
            for _ in range(50):
                comm.all_reduce(given[rank], algo=algo, out=outs[rank])
        graphs.append(graph)
    want = sum(x.cpu() for x in given)
    for _ in range(3):
        for out in outs:
            out.zero_()
        torch.cuda.synchronize()
        ranks.each(lambda rank, comm: graphs[rank].replay())
        assert all(torch.equal(out.cpu(), want.to(torch.int32)) for out in outs)


ABSENT = """
import torch
from tilewright import dist
from tilewright.base.errors import LaunchError
comms = dist.communicators([0, 0], timeout=0.2, part=1 << 16, lines=1 << 12, heap=1 << 12)
try:
    comms[1].all_reduce(torch.ones(100, device="cuda"), algo={algo!r})
    comms[1].synchronize()
except LaunchError as error:
    print(error)
"""


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_an_absent_rank_is_named(algo: str) -> None:
    done = subprocess.run([sys.executable, "-c", ABSENT.format(algo=algo)], capture_output=True, text=True, timeout=120)
    assert "Rank 1 has waited in vain for" in done.stdout, done.stderr
    assert "of rank 0" in done.stdout
