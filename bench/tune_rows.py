"""Tune the plans of row-wise kernels on this GPU, and write those that beat the rule to a table that ships.

`python -m bench.tune_rows --out src/tilewright/kernels/tuned/sm_90.json` times, for each kernel, row length and dtype,
the rule's plan beside its neighbours, interleaved, with the L2 cache flushed before each run. The best three run again,
for longer; one goes into the table where it is faster than the rule's by more than `LEAST_GAIN` in both halves of that
run. An entry of an old table that was not measured again is kept.

`cute.testing.tune` and `autotune_jit` time one configuration after the other, with warm caches; neighbours differ by a
few percent here, less than the device's clock drifts between them.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
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


def tuned(op: str, columns: int, dtype: Any) -> tuple[dict[str, Any] | None, str]:
    """The table's row, if a plan beats the rule's, and what was found, in words."""
    x = torch.randn(BYTES // columns // dtype.itemsize, columns, device="cuda", dtype=dtype)
    case = OPS[op](x)
    notes: list[str] = []
    plans = dict(plans_of(case))
    bound = {name: plan for name, plan in plans.items() if plan is not None and plan.resident and name != "bound"}
    plans |= {f"{name} free": dataclasses.replace(plan, resident=0) for name, plan in bound.items()}
    right = dict(_right(plans, case, dtype, notes))
    found = times(right, FIRST_ROUNDS)
    best = [name for name in sorted(found, key=found.__getitem__) if name != "rule"][:FINALISTS]
    finals = {name: right[name] for name in ("rule", *best)}
    halves = [times(finals, SECOND_ROUNDS // 2) for _ in range(2)]
    gains = {name: min(half["rule"] / half[name] for half in halves) for name in best}
    winner = max(gains, key=gains.__getitem__, default="rule")
    rate = case.bytes / statistics.median(half["rule"] for half in halves) / 1e6
    text = f"{op:<23} {str(dtype)[6:]:<8} {columns:<7} rule {rate:5.0f} GB/s | " + "  ".join(
        f"{name} {gain:.3f}" for name, gain in gains.items()
    )
    plan = plans.get(winner)
    if plan is None or gains[winner] < LEAST_GAIN:
        return None, text + "".join(f" [{note}]" for note in notes)
    return entry_of(op, columns, dtype.itemsize, case.reads, plan), f"{text} => {name_of(plan)} {plan.resident}"


def _right(
    plans: dict[str, RowPlan | None], case: Case, dtype: Any, notes: list[str]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Those that run and give the right result."""
    for name, function in working({n: lambda p=p: case.ours(p) for n, p in plans.items()}, notes).items():
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
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    entries = json.loads(arguments.out.read_text())["plans"] if arguments.out.exists() else []
    for length in map(int, arguments.length.split(",")):
        for op in arguments.op.split(","):
            for dtype in arguments.dtype.split(","):
                if time.monotonic() > end:
                    print("out of time at", op, length, dtype)
                    return
                entry, text = tuned(op, length, getattr(torch, dtype))
                print(text, flush=True)
                same = (op, length, getattr(torch, dtype).itemsize)
                entries = [item for item in entries if (item["kernel"], item["columns"], item["bytes"]) != same]
                entries += [entry] if entry else []
                _write(arguments.out, entries)
                torch.cuda.empty_cache()


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
