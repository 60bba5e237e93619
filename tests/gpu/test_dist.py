"""Collectives on GPUs: one rank, two ranks on one device, and where there are two GPUs one rank on each."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tilewright import dist  # noqa: E402  (only where PyTorch is)
from tilewright.base.settings import environment  # noqa: E402

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
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8], ids=str)
@pytest.mark.parametrize("count", [1, 70001])
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
    for graph in graphs:
        graph.reset()  # one that is collected while the next is captured would spoil that


@pytest.mark.parametrize("seed", [0])
def test_many_rounds_under_random_delays(ranks: Ranks, seed: int) -> None:
    """The ranks' streams drift apart by up to 60 microseconds between calls."""
    plan, delays = random.Random(seed), random.Random(seed + 100)
    given = numbers(ranks, 1 << 14, torch.int32)
    want = sum(x.cpu().to(torch.int64) for x in given)
    outs = [torch.empty_like(x) for x in given]
    bad = [torch.zeros((), dtype=torch.int64, device=device) for device in ranks.devices]
    wants = [want.to(torch.int32).to(device) for device in ranks.devices]
    torch.cuda.synchronize()
    for _ in range(200):
        algo, count = plan.choice(ALGORITHMS), plan.randint(1, 1 << plan.randint(1, 14))

        def call(rank: int, comm: Any, algo: str = algo, count: int = count) -> None:
            torch.cuda._sleep(delays.choice((0, 0, 2000, 100000)))
            comm.all_reduce(given[rank][:count], algo=algo, out=outs[rank][:count])

        for rank, (comm, stream) in enumerate(zip(ranks.comms, ranks.streams, strict=True)):
            with torch.cuda.device(ranks.devices[rank]), torch.cuda.stream(stream):
                call(rank, comm)
                bad[rank] += (outs[rank][:count] != wants[rank][:count]).sum()
    for comm in ranks.comms:
        comm.synchronize()
    assert [int(one) for one in bad] == [0] * len(bad)


ENVIRONMENT = {"TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NCCL_NVLS_ENABLE": "0"}

OF_A_GROUP = """
import sys
import torch
import torch.distributed as td
from tilewright import dist
from tilewright.base.errors import LaunchError

def work(rank, world, port, dies):
    torch.cuda.set_device(rank)
    td.init_process_group("nccl", f"tcp://127.0.0.1:{port}", rank=rank, world_size=world,
                          device_id=torch.device("cuda", rank))
    comm = dist.communicator(timeout=0.5, heap=1 << 20, part=1 << 20, lines=1 << 16)
    for algo in ("lamport", "one_shot", "two_shot", "nccl", "auto"):
        x = torch.full((10001,), rank + 1.0, device="cuda")
        assert (comm.all_reduce(x, algo=algo) == world * (world + 1) / 2).all()
    comm.synchronize()
    assert comm.empty((4, 4), torch.float16).shape == (4, 4)
    if dies and rank == 1:
        sys.stdout.flush()
        import os
        os._exit(0)
    if dies:
        try:
            comm.all_reduce(x)
            comm.synchronize()
        except LaunchError as error:
            print(error, flush=True)
        import os
        os._exit(0)
    print("rank", rank, "of", comm.world, "is done", flush=True)
    td.destroy_process_group()

if __name__ == "__main__":
    world, port, dies = map(int, sys.argv[1:])
    torch.multiprocessing.spawn(work, args=(world, port, dies), nprocs=world)
"""


def run_group(folder: Path, world: int, port: int, dies: bool) -> subprocess.CompletedProcess[str]:
    """Processes of torch.distributed, one a GPU."""
    file = folder / "group.py"
    file.write_text(OF_A_GROUP)
    command = [sys.executable, str(file), str(world), str(port), str(int(dies))]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, env=environment(ENVIRONMENT))


@pytest.mark.parametrize("world", [1, pytest.param(2, marks=TWO)])
def test_processes_of_torch_distributed(world: int, tmp_path: Path) -> None:
    done = run_group(tmp_path, world, 29520 + world, False)
    assert done.stdout.count("is done") == world, done.stderr


@TWO
def test_a_process_that_dies_is_named(tmp_path: Path) -> None:
    done = run_group(tmp_path, 2, 29530, True)
    assert "Rank 0 has waited in vain for" in done.stdout, done.stderr


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


@pytest.mark.parametrize("algo", ["lamport", "two_shot"])
def test_an_absent_rank_is_named(algo: str) -> None:
    done = subprocess.run([sys.executable, "-c", ABSENT.format(algo=algo)], capture_output=True, text=True, timeout=120)
    assert "Rank 1 has waited in vain for" in done.stdout, done.stderr
    assert "of rank 0" in done.stdout
