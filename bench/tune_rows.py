"""Tune the plans of row-wise kernels on this GPU, and write those that beat the rule to a table that ships.

`python -m bench.tune_rows --out src/tilewright/kernels/tuned/sm_90.json` times, for each kernel, row length and dtype,
the plan that the kernel takes now (the table's or the rule's) beside others, interleaved, with the L2 cache flushed
before each run. The best three run again, for longer; one goes into the table where it is faster by more than
`LEAST_GAIN` in both halves of that run.

`cute.testing.tune` and `autotune_jit` time one configuration after the other, with warm caches; neighbours differ by a
few percent here, less than the device's clock drifts between them.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import datetime
import functools
import json
import multiprocessing
import pathlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from bench.kernels_rows import KERNELS, OPS, TOLERANCE, Case, check, name_of, plans_of, times, working
from tilewright.kernels.plans import RowPlan
from tilewright.kernels.tuned_plans import entry_of

LENGTHS = (4096, 65536, 262144, 16384, 1024, 8192, 131072, 32768, 2048)
BYTES = 1 << 29  # of a matrix
LEAST_GAIN = 1.006
FIRST_ROUNDS, SECOND_ROUNDS, FINALISTS = 8, 24, 3
_shared: dict[str, Any] = {}  # of a process of the pool


def tuned(op: str, columns: int, dtype: Any, device: Any) -> tuple[dict[str, Any] | None, str]:
    """The table's row, if a plan beats the rule's, and what was found, in words.

    What compiles runs beside other processes; `device`, a lock, is held while this one measures.
    """
    notes: list[str] = []
    plans = _compiled(op, columns, dtype, notes)
    with device:
        return _measured(op, columns, dtype, plans, notes)


def _compiled(op: str, columns: int, dtype: Any, notes: list[str]) -> dict[str, RowPlan | None]:
    """The plans to be tried, each compiled, which a few rows are enough for."""
    case = OPS[op](torch.randn(8, columns, device="cuda", dtype=dtype))
    plans = dict(plans_of(case))
    bound = {name: plan for name, plan in plans.items() if plan is not None and plan.resident and name != "bound"}
    plans |= {f"{name} free": dataclasses.replace(plan, resident=0) for name, plan in bound.items()}
    runs = working({name: lambda plan=plan: case.ours(plan) for name, plan in plans.items()}, notes)
    return {name: plans[name] for name in runs}


def _measured(
    op: str, columns: int, dtype: Any, plans: dict[str, RowPlan | None], notes: list[str]
) -> tuple[dict[str, Any] | None, str]:
    case = OPS[op](torch.randn(BYTES // columns // dtype.itemsize, columns, device="cuda", dtype=dtype))
    right = dict(_right(plans, case, dtype, notes))
    found = times(right, FIRST_ROUNDS)
    best = [name for name in sorted(found, key=found.__getitem__) if name != "now"][:FINALISTS]
    finals = {name: right[name] for name in ("now", *best)}
    halves = [times(finals, SECOND_ROUNDS // 2) for _ in range(2)]
    gains = {name: min(half["now"] / half[name] for half in halves) for name in best}
    winner = max(gains, key=gains.__getitem__, default="now")
    rate = case.bytes / statistics.median(half["now"] for half in halves) / 1e6
    text = f"{op:<23} {str(dtype)[6:]:<8} {columns:<7} now {rate:5.0f} GB/s | " + "  ".join(
        f"{name} {gain:.3f}" for name, gain in gains.items()
    )
    plan = plans.get(winner)
    if plan is None or gains[winner] < LEAST_GAIN:
        return None, text + "".join(f" [{note}]" for note in notes)
    return entry_of(op, columns, dtype.itemsize, case.reads, plan), f"{text} => {name_of(plan)} {plan.resident}"


def _right(
    plans: dict[str, RowPlan | None], case: Case, dtype: Any, notes: list[str]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Those that give the right result."""
    for name, plan in plans.items():
        function = functools.partial(case.ours, plan)
        case.result.fill_(float("nan"))
        function()
        wrong = check(name, case, dtype)
        if wrong:
            notes.append(wrong)
        else:
            yield name, function


def main() -> None:
    """Tune what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", default=",".join(OPS), help=f"of {', '.join(KERNELS)}")
    parser.add_argument("--length", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--dtype", default="bfloat16,float32", help=f"of {', '.join(str(d)[6:] for d in TOLERANCE)}")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=300, help="begin no case after this long")
    parser.add_argument("--jobs", type=int, default=8, help="cases that compile at the same time")
    arguments = parser.parse_args()
    entries = json.loads(arguments.out.read_text())["plans"] if arguments.out.exists() else []
    cases = [
        (op, int(length), dtype) for length in arguments.length.split(",") for op in arguments.op.split(",")
        for dtype in arguments.dtype.split(",")
    ]  # fmt: skip
    end = time.time() + arguments.seconds
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(
        arguments.jobs, context, _start, (context.Lock(), end)
    ) as pool:  # fmt: skip
        for (op, length, dtype), found in zip(cases, pool.map(_tune_one, cases), strict=True):
            if found is None:
                print("out of time at", op, length, dtype)
                continue
            entry, text = found
            print(text, flush=True)
            same = (op, length, getattr(torch, dtype).itemsize)
            if entry:
                others = [item for item in entries if (item["kernel"], item["columns"], item["bytes"]) != same]
                entries = [*others, entry]
                _write(arguments.out, entries)


def _start(device: Any, end: float) -> None:
    """Give a process of the pool the lock of the device, and the time at which it shall begin no case any more."""
    _shared.update(device=device, end=end)


def _tune_one(case: tuple[str, int, str]) -> tuple[dict[str, Any] | None, str] | None:
    if time.time() > _shared["end"]:
        return None
    op, length, dtype = case
    found = tuned(op, length, getattr(torch, dtype), _shared["device"])
    torch.cuda.empty_cache()
    return found


def _write(out: pathlib.Path, entries: list[dict[str, Any]]) -> None:
    machine = {
        "gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda,
        "date": datetime.date.today().isoformat(),
    }  # fmt: skip
    rows = ",\n".join(
        "  " + json.dumps(item) for item in sorted(entries, key=lambda item: tuple(map(str, item.values())))
    )
    out.write_text(f'{{"machine": {json.dumps(machine)},\n "plans": [\n{rows}\n]}}\n')


if __name__ == "__main__":
    main()
