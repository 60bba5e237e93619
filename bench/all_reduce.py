"""all_reduce on the GPUs of this host, beside NCCL and torch's symmetric memory (one-shot, two-shot), in CUDA graphs.

    python bench/all_reduce.py                # a process a GPU; two GPUs or more
    python bench/all_reduce.py --sizes 1024,1048576 --dtype bfloat16 --calls 50
    python bench/all_reduce.py --rounds 10000 # random sizes and delays instead: looks for wrong values

Prints JSON lines: backend, bytes, microseconds a call (the median of replays of a graph of so many calls, divided) and
bus bandwidth (2 (n - 1) / n * bytes / time). Each backend's sums are compared with the others' first.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as td
import torch.distributed._symmetric_memory as symm

from tilewright import dist

REPLAYS = 7
LARGE = 1 << 22


def timed(fn: Callable[[], Any], calls: int) -> float:
    """Microseconds of a call in a graph of so many."""
    fn()
    torch.cuda.synchronize()
    td.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
        for _ in range(calls):
            fn()
    found = []
    for _ in range(REPLAYS):
        td.barrier()
        torch.cuda.synchronize()
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        graph.replay()
        last.record()
        torch.cuda.synchronize()
        found.append(first.elapsed_time(last) * 1e3 / calls)
    graph.reset()  # one that is collected while the next is captured would spoil that
    return statistics.median(found)


def backends(comm: Any, x: Any, shared: Any, group: Any) -> dict[str, Callable[[], Any]]:
    """What is compared, by name; each gives the sum."""

    def nccl() -> Any:
        out = x.clone()
        td.all_reduce(out)
        return out

    out = torch.empty_like(x)
    made: dict[str, Callable[[], Any]] = {
        f"tilewright {algo}": lambda algo=algo: comm.all_reduce(x, algo=algo, out=out)  # type: ignore[misc]
        for algo in ("auto", "lamport", "one_shot", "two_shot")
    }
    made["nccl"] = nccl
    ops = torch.ops.symm_mem
    made["symm one_shot"] = lambda: ops.one_shot_all_reduce(shared, "sum", group.group_name)
    made["symm two_shot"] = lambda: ops.two_shot_all_reduce_(shared, "sum", group.group_name)
    return made


def compare(rank: int, world: int, options: argparse.Namespace, comm: Any) -> None:
    """One row a backend and size."""
    group, dtype = td.group.WORLD, getattr(torch, options.dtype)
    for nbytes in options.sizes:
        count = nbytes // dtype.itemsize
        torch.manual_seed(rank)
        x = torch.randint(-8, 9, (count,), device="cuda").to(dtype)
        shared = symm.empty(count, dtype=dtype, device="cuda")
        symm.rendezvous(shared, group.group_name)
        want = x.clone()
        td.all_reduce(want)
        for name, fn in backends(comm, x, shared, group).items():
            row: dict[str, Any] = {"op": "all_reduce", "backend": name, "bytes": nbytes, "ranks": world}
            try:
                shared.copy_(x)
                torch.cuda.synchronize()
                td.barrier()
                row["exact"] = bool(torch.equal(fn(), want))
                if name == "nccl":
                    out = x.clone()
                    fn = lambda out=out: td.all_reduce(out)  # noqa: E731  (without the copy, as the others)
                us = timed(fn, options.calls if nbytes <= LARGE else max(options.calls // 6, 1))
                row |= {"us": round(us, 2), "bus GB/s": round(nbytes / us / 1e3 * 2 * (world - 1) / world, 1)}
            except Exception as error:  # noqa: BLE001  (the other rows are wanted all the same)
                row["error"] = f"{type(error).__name__}: {str(error)[:160]}"
            if rank == 0:
                print(json.dumps(row), flush=True)


def rounds(rank: int, world: int, options: argparse.Namespace, comm: Any) -> None:
    """Random sizes, types, algorithms and delays; every sum is checked, and that all ranks have the same bits."""
    plan, own = random.Random(7), random.Random(rank)
    wrong = 0
    for number in range(options.rounds):
        count, algo = plan.randint(1, 1 << plan.randint(1, 18)), plan.choice(("lamport", "one_shot", "two_shot"))
        dtype = plan.choice((torch.float32, torch.float16, torch.bfloat16, torch.int32))
        torch.manual_seed(number * world + rank)
        x = torch.randint(-8, 9, (count,), device="cuda").to(dtype)
        want = x.clone()
        td.all_reduce(want)
        torch.cuda._sleep(own.choice((0, 0, 1000, 100000)))
        wrong += not torch.equal(comm.all_reduce(x, algo=algo), want)
    comm.synchronize()
    print(json.dumps({"op": "rounds", "rank": rank, "rounds": options.rounds, "wrong": wrong}), flush=True)


def work(rank: int, world: int, options: argparse.Namespace) -> None:
    """What each process does."""
    torch.cuda.set_device(rank)
    where = f"tcp://127.0.0.1:{options.port}"
    td.init_process_group("nccl", where, rank=rank, world_size=world, device_id=torch.device("cuda", rank))
    comm = dist.communicator(timeout=20)
    (rounds if options.rounds else compare)(rank, world, options, comm)
    td.destroy_process_group()


def main() -> None:
    """Start a process a GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(str(1 << k) for k in range(10, 29, 2)))
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--port", type=int, default=29513)
    options = parser.parse_args()
    options.sizes = [int(size) for size in options.sizes.split(",")]
    world = options.ranks or torch.cuda.device_count()
    if world < 2 or torch.cuda.device_count() < world:
        sys.exit(f"this benchmark takes two GPUs or more, and there are {torch.cuda.device_count()}")
    torch.multiprocessing.spawn(work, args=(world, options), nprocs=world)


if __name__ == "__main__":
    main()
