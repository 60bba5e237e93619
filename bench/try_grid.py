# ruff: noqa: B023, E501, E731, I001
"""Times the kernels of `copy_transpose` and `reduce` under many plans on a GPU, beside a copy, torch and torch.compile.

    python bench/try_grid.py [--op transpose|rows|columns|others|elementwise|all] [--shape 8192x16384] [--dtype float32] [--reps 12] [--no-compile]

Each result is checked against float64 first. Each line has GB/s of a plan; times are medians, interleaved, L2 flushed.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from dataclasses import replace

import torch

import tilewright.cute as cute
from tilewright import ops
from tilewright.cute.runtime import make_fake_tensor
from tilewright.kernels import copy_transpose as transposes
from tilewright.kernels import elementwise
from tilewright.kernels import reduce as reductions
from tilewright.kernels import reducing
from tilewright.kernels.functions import FUNCTIONS
from tilewright.kernels.reductions import Reduction

DTYPES = {"float32": cute.Float32, "bfloat16": cute.BFloat16, "float16": cute.Float16, "int8": cute.Int8}
TRANSPOSES = {
    "float32": ["64/64/256/0", "128/128/256/0", "64/256/256/0", "64/256/1024/0", "128/256/1024/0", "64/128/512/0", "64/256/256/1", "128/64/256/0"],
    "bfloat16": ["128/128/256/0", "128/256/256/0", "128/256/256/1", "128/256/512/0", "128/256/1024/0", "256/128/512/0", "128/128/256/1"],
}  # fmt: skip
ROWS = ["64/2/4", "128/1/4", "256/1/4", "512/1/8", "1024/1/4"]
COLUMNS = ["32/8/8", "16/16/8", "32/16/4", "64/4/8", "32/32/4", "32/32/2", "16/32/4", "64/16/4"]


def symbols(rank, step):
    extents = [cute.sym_int() for _ in range(rank - 1)] + [cute.sym_int(divisibility=step)]
    return extents, [*(cute.sym_int64(divisibility=step) for _ in range(rank - 1)), 1]


def fake(dtype, rank, step=1, extents=None):
    shape, stride = symbols(rank, step)
    return make_fake_tensor(
        dtype, extents or shape, stride=stride, assumed_align=max(step * dtype.width // 8, dtype.width // 8)
    )


ODD = {
    "float32": ["64/64/512/0", "64/64/256/0", "64/64/1024/0", "32/64/256/0", "64/128/1024/0"],
    "bfloat16": ["128/128/1024/0", "64/64/256/0", "64/64/512/0", "128/128/512/0", "64/128/512/0"],
}


def transpose(name, plan, target, single=False):
    dtype, (m, n, threads, group) = DTYPES[name], plan.split("/")
    v = 1 if single else 128 // dtype.width
    plan = transposes.TransposePlan(dtype, int(m), int(n), v, v, int(threads), group == "1")
    b, m, n = cute.sym_int(), cute.sym_int(divisibility=v), cute.sym_int(divisibility=v)
    return cute.compile(
        transposes.launch_copy_transpose,
        fake(dtype, 3, v, (b, n, m)),
        fake(dtype, 3, v, (b, m, n)),
        plan,
        target=target,
    )


def rows(name, plan, target):
    dtype, (threads, rows, unroll) = DTYPES[name], map(int, plan.split("/"))
    v = 128 // dtype.width
    plan = reductions.RowReduction(Reduction("sum", dtype), v, threads, rows, unroll)
    return cute.compile(
        reductions.launch_rows, fake(dtype, 2, v), fake(dtype, 1), None, cute.Float64(1), plan, None, target=target
    )


def columns(name, plan, target, parts=1):
    dtype, (across, along, unroll) = DTYPES[name], map(int, plan.split("/"))
    v = 128 // dtype.width
    plan = reductions.ColumnReduction(Reduction("sum", dtype), v, across, along, unroll)
    states, second = None, None
    if parts > 1:
        states, second = (
            (fake(cute.Float32, 3),),
            reductions.ColumnReduction(Reduction("sum", cute.Float32), 1, 32, 8, 4),
        )
    arguments = fake(dtype, 3, v), fake(dtype, 2), states, cute.Float64(1), plan, second
    return cute.compile(reductions.launch_columns, *arguments, target=target)


def medians(functions, reps):
    """Median milliseconds of each function, taken in turn; a read of 512 MB before each leaves clean lines in L2."""
    other = torch.zeros(1 << 27, device="cuda")
    times = {key: [] for key in functions}
    for rep in range(reps + 2):
        for key, function in functions.items():
            other.amax()
            start, end = torch.cuda.Event(True), torch.cuda.Event(True)
            start.record()
            function()
            end.record()
            if rep > 1:
                times[key].append((start, end))
        torch.cuda.synchronize()
    return {key: statistics.median(a.elapsed_time(b) for a, b in pairs) for key, pairs in times.items()}


def report(title, bytes_, functions, reps, roof=None):
    found = medians(functions, reps)
    rate = {key: bytes_ / ms / 1e6 for key, ms in found.items()}
    top = roof or max(rate.values())
    ours = max((key for key in rate if "/" in key), key=rate.get)
    print(f"{title}: best {ours} {rate[ours]:.0f} = {rate[ours] / top:.3f} of {top:.0f} | "
          + " ".join(f"{key}:{value:.0f}" for key, value in rate.items()), flush=True)  # fmt: skip
    return rate


def compiled_by_torch(function, x, wanted):
    if not wanted:
        return {}
    torch._dynamo.reset()
    made = torch.compile(function, dynamic=False)
    made(x)
    return {"inductor": lambda: made(x)}


def kept(cache, key, make):
    if key not in cache:
        cache[key] = make()
    return cache[key]


def try_transposes(shapes, names, args, cache):
    for name in names:
        for m, n in shapes or [(16384, 16384), (8192, 30000), (16383, 16381)]:
            x = torch.randn(m, n, device="cuda").to(getattr(torch, name))
            y, same = torch.empty(n, m, device="cuda", dtype=x.dtype), torch.empty_like(x)
            functions = {
                "copy": lambda: same.copy_(x),
                "clone": lambda: x.view(-1).clone(),
                "torch": lambda: y.copy_(x.t()),
            }
            functions |= compiled_by_torch(lambda x: x.t().contiguous(), x, args.compile)
            odd = m % 8 + n % 8 > 0
            for plan in (ODD if odd else TRANSPOSES)[name]:
                run = kept(cache, ("t", name, plan, odd), lambda plan=plan: transpose(name, plan, args.target, odd))
                y.zero_()
                run(y[None], x[None])
                assert torch.equal(y, x.t()), plan
                functions[plan] = lambda run=run: run(y[None], x[None])
            transposes.copy_transpose(y.zero_(), x)
            assert torch.equal(y, x.t())
            functions["auto/"] = lambda: transposes.copy_transpose(y, x)
            copies = medians({key: functions[key] for key in ("copy", "clone")}, args.reps)
            report(
                f"transpose {name} {m}x{n}",
                2 * x.nbytes,
                functions,
                args.reps,
                2 * x.nbytes / min(copies.values()) / 1e6,
            )


def check_sum(out, x, dim):
    exact, size = x.double().sum(dim), x.double().abs().sum(dim)
    bound = size * 2.0**-22 + exact.abs() * (2.0**-8 if x.dtype == torch.bfloat16 else 2.0**-23)
    assert ((out.double() - exact).abs() <= bound).all()


def try_rows(shapes, names, args, cache):
    for name in names:
        for m, n in shapes or [(32768, 1024), (32768, 4096), (8192, 16384), (4096, 65536), (1024, 262144)]:
            x = torch.randn(m, n, device="cuda").to(getattr(torch, name))
            y = torch.empty(m, device="cuda", dtype=x.dtype)
            flat, total = x.view(-1, 16384), torch.empty(x.numel() // 16384, device="cuda", dtype=x.dtype)
            functions = {"torch": lambda: torch.sum(x, -1, out=y)}
            functions |= compiled_by_torch(lambda x: x.sum(-1), x, args.compile)
            for plan in ROWS:
                run = kept(cache, ("r", name, plan), lambda plan=plan: rows(name, plan, args.target))
                y.zero_()
                run(x, y, 1.0)
                check_sum(y, x, -1)
                functions[plan] = lambda run=run: run(x, y, 1.0)
                if plan.endswith("1/8"):
                    functions[f"flat:{plan.split('/')[0]}"] = lambda run=run: run(flat, total, 1.0)
            functions["auto/"] = lambda: reducing.reduce(y, x, "sum", (1,))
            y.zero_()
            functions["auto/"]()
            check_sum(y, x, -1)
            report(f"rows {name} {m}x{n}", x.nbytes, functions, args.reps)


def try_columns(shapes, names, args, cache):
    for name in names:
        for m, n in shapes or [(16384, 16384), (65536, 1024), (1024, 262144)]:
            x = torch.randn(m, n, device="cuda").to(getattr(torch, name))
            y = torch.empty(n, device="cuda", dtype=x.dtype)
            functions = {"torch": lambda: torch.sum(x, 0, out=y)}
            functions |= compiled_by_torch(lambda x: x.sum(0), x, args.compile)
            for parts in (1, 8, 32):
                for plan in COLUMNS if parts == 1 else COLUMNS[:3]:
                    run = kept(cache, ("c", name, plan, parts > 1), lambda: columns(name, plan, args.target, parts))
                    work = () if parts == 1 else ((torch.empty(1, parts, n, device="cuda"),),)
                    y.zero_()
                    run(x[None], y[None], *work, 1.0)
                    check_sum(y, x, 0)
                    label = plan if parts == 1 else f"{plan}x{parts}"
                    functions[label] = lambda run=run, work=work: run(x[None], y[None], *work, 1.0)
            functions["auto/"] = lambda: reducing.reduce(y, x, "sum", (0,))
            y.zero_()
            functions["auto/"]()
            check_sum(y, x, 0)
            report(f"columns {name} {m}x{n}", x.nbytes, functions, args.reps)


def try_others(shapes, names, args, cache):
    """The plans that `reduce` chooses: all of a tensor, the middle dimension, other reductions, odd rows."""
    for name in names:
        x = torch.randn(32768, 4096, device="cuda").to(getattr(torch, name))
        odd, cube = x.view(-1)[1:].view(-1)[: 32768 * 4095].view(32768, 4095), x.view(64, 2048, 1024)
        cases = [("few columns", x.view(-1, 1024), (0,), "sum"), ("all", x, (0, 1), "sum"), ("middle", cube, (1,), "sum"), ("odd", odd, (1,), "sum"), ("first, last", cube, (0, 2), "sum"),
                 ("max", x, (1,), "max"), ("argmax", x, (1,), "argmax"), ("mean", x, (1,), "mean"), ("argmax columns", x, (0,), "argmax")]  # fmt: skip
        for title, t, dims, op in cases:
            theirs = {"max": torch.amax, "mean": torch.mean, "sum": torch.sum}.get(op)
            run = (
                (lambda t=t, dims=dims: torch.argmax(t, dims[0]))
                if op == "argmax"
                else (lambda t=t, dims=dims, f=theirs: f(t, dims))
            )
            expected = run()
            out = torch.empty_like(expected)
            reducing.reduce(out, t, op, dims)
            if op in ("max", "argmax"):
                assert torch.equal(out, expected), title
            elif op == "sum":
                check_sum(out, t, dims)
            ours = lambda out=out, t=t, op=op, dims=dims: reducing.reduce(out, t, op, dims)
            functions = {"torch": run, "auto/": ours}
            if title == "all" or title == "few columns":
                functions |= split_in_other_ways(out, t, op, dims)
            report(f"{title} {name}", t.nbytes, functions, args.reps)


def split_in_other_ways(out, t, op, dims):
    """The same reduction with more or fewer parts, and with passes that overlap."""
    rule = reducing.row_plan, reducing.column_plan, reducing.second_plan, reducing._PER_MULTIPROCESSOR
    made = {}
    for blocks, overlap, threads in itertools.product((1, 2, 4, 8), (False, True), (256, 1024)):
        marked = lambda plan, role, overlap=overlap: replace(plan, overlap=role) if overlap else plan
        chosen = lambda rule, *args, threads=threads: (
            lambda plan, parts: (marked(plan, "leads") if parts > 1 else plan, parts)
        )(*rule(*args))
        reducing._PER_MULTIPROCESSOR = blocks
        reducing._BLOCK = threads
        reducing.VARIANTS["auto"] = lambda *args, chosen=chosen: chosen(rule[0], *args)
        reducing.column_plan = lambda *args, chosen=chosen: chosen(rule[1], *args)
        reducing.second_plan = lambda *args, marked=marked: marked(rule[2](*args), "follows")
        passes = reducing.prepare(out, t, op, [dim % t.ndim for dim in dims], "auto")
        want = out.clone()
        out.zero_()
        run_passes(passes, out, t)
        assert torch.equal(out, want) or (out - want).abs().max() <= 1e-2 * want.abs().max(), (blocks, overlap)
        made[f"{blocks}/{'o' if overlap else ''}/{threads}"] = lambda passes=passes: run_passes(passes, out, t)
    reducing.VARIANTS["auto"], reducing.column_plan, reducing.second_plan, reducing._PER_MULTIPROCESSOR = rule
    reducing._BLOCK = 256
    return made


def run_passes(passes, out, x):
    for step in passes:
        x = step.run(out, x)


def try_elementwise(shapes, names, args, cache):
    """`elementwise` beside torch: a copy, a sum, a row and a column that broadcast, a function."""
    for name in names:
        a, b = (torch.randn(16384, 8192, device="cuda").to(getattr(torch, name)) for _ in range(2))
        odd = a.view(-1)[:-3]
        row, column, out = a[:1].clone(), a[:, :1].clone(), torch.empty_like(a)
        cases = [("copy", (a,), lambda a: out.copy_(a)), ("neg", (odd,), torch.neg), ("add", (a, b), lambda a, b: torch.add(a, b, out=out)),
                 ("add", (a, row), lambda a, b: torch.add(a, b, out=out)), ("mul", (a, column), lambda a, b: torch.mul(a, b, out=out)),
                 ("silu", (a,), lambda a: torch.nn.functional.silu(a)), ("gelu", (a,), lambda a: torch.nn.functional.gelu(a))]  # fmt: skip
        for op, inputs, theirs in cases:
            expected = theirs(*inputs).clone()
            out = torch.empty_like(expected)
            function = FUNCTIONS[op]
            ours = lambda inputs=inputs, function=function, out=out: elementwise.elementwise(
                out, inputs, function, cute.Float32
            )
            out.zero_()
            ours()
            torch.testing.assert_close(out, expected, rtol=1e-2 if name == "bfloat16" else 2e-6, atol=1e-6)
            bytes_ = out.nbytes + sum(item.nbytes for item in inputs)
            title = f"elementwise {op} {name} {[tuple(item.shape) for item in inputs]}"
            report(title, bytes_, {"torch": lambda: theirs(*inputs), "auto/": ours}, args.reps)


def try_host(shapes, names, args, cache):
    """Microseconds of the host for a call on a small tensor, queued back to back."""
    x = torch.randn(64, 128, device="cuda")
    out, total = torch.empty(128, 64, device="cuda"), torch.empty(64, device="cuda")
    operators = torch.ops.tilewright
    for title, calls in {
        "copy_transpose": (
            lambda: ops.copy_transpose(x),
            lambda: operators._copy_transpose(out, x),
            lambda: x.t().contiguous(),
        ),
        "reduce": (
            lambda: ops.reduce(x, "sum", -1),
            lambda: operators._reduce(total, x, "sum", [-1]),
            lambda: x.sum(-1),
        ),
        "reduce_sum": (lambda: ops.reduce_sum(x), lambda: operators._reduce_sum(total, x), lambda: x.sum(-1)),
        "elementwise": (
            lambda: ops.elementwise("add", x, x),
            lambda: operators._elementwise(x, "add", x, x),
            lambda: x + x,
        ),
        "empty": (lambda: torch.empty((64,), dtype=x.dtype, device=x.device),),
    }.items():
        found = []
        for call in calls:
            for _ in range(100):
                call()
            torch.cuda.synchronize()
            runs = []
            for _ in range(5):
                start = time.perf_counter()
                for _ in range(500):
                    call()
                runs.append((time.perf_counter() - start) / 500 * 1e6)
                torch.cuda.synchronize()
            found.append(min(runs))
        print(f"host us {title}: ours, through torch.ops, torch:", *(f"{value:.1f}" for value in found), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--op", default="all", choices=["transpose", "rows", "columns", "others", "elementwise", "host", "all"]
    )
    parser.add_argument("--shape", action="append", type=lambda text: tuple(map(int, text.split("x"))))
    parser.add_argument("--dtype", action="append", choices=["float32", "bfloat16"])
    parser.add_argument("--reps", type=int, default=12)
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--only-build", action="store_true", help="compile all plans, without a GPU")
    args = parser.parse_args()
    args.target = "emu" if args.only_build else "cuda"
    names = args.dtype or ["float32", "bfloat16"]
    if args.only_build:
        for name in names:
            for plans, make in ((TRANSPOSES[name], transpose), (ROWS, rows), (COLUMNS, columns)):
                for plan in plans:
                    made = make(name, plan, "emu")
                    fields = [line.split() for line in str(made.report()).splitlines()]
                    print(
                        make.__name__,
                        name,
                        plan,
                        *(words[-1] for words in fields if words[0] in ("registers", "spill")),
                    )
        return
    print(torch.cuda.get_device_name(), torch.__version__)
    start = time.time()
    for op, function in (
        ("transpose", try_transposes),
        ("rows", try_rows),
        ("columns", try_columns),
        ("others", try_others),
        ("elementwise", try_elementwise),
        ("host", try_host),
    ):
        if args.op in (op, "all"):
            function(args.shape, names, args, {})
            print(f"-- {op}: {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
