"""Row-wise kernels on a GPU: checked against float64, then timed beside a copy of equal bytes, PyTorch and quack.

`python -m bench.kernels_rows --op softmax_online,rmsnorm --shape 32768x4096 --dtype float32 --tune` prints a line for
each op, dtype and shape: the GB/s of the copy, and the fraction of it that each candidate reaches. Medians, L2 flushed
before each run, candidates taking turns.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib
import importlib.util
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tilewright import ops
from tilewright.kernels import cross_entropy as cross_entropy_kernels
from tilewright.kernels import layernorm as layernorm_kernels
from tilewright.kernels import rmsnorm as rmsnorm_kernels
from tilewright.kernels import softmax_online as softmax_kernels
from tilewright.kernels.launching import widest
from tilewright.kernels.plans import (
    ACCESS_BYTES,
    SHARED_BYTES,
    RowPlan,
    gathering_plan,
    reading_plan,
    row_plan,
    streaming_plan,
)
from tilewright.tools.benching import timing

SHAPES = ("32768x1024", "32768x4096", "8192x16384", "4096x65536", "1024x262144")
DTYPES = ("float32", "bfloat16")
CHECKED_ROWS = 32  # of each end
KERNELS = {
    "softmax_online": softmax_kernels.softmax_online,
    "softmax_online_backward": softmax_kernels.softmax_online_backward,
    "rmsnorm": rmsnorm_kernels.rmsnorm,
    "layernorm": layernorm_kernels.layernorm,
    "rmsnorm_backward": rmsnorm_kernels.rmsnorm_backward,
    "layernorm_backward": layernorm_kernels.layernorm_backward,
    "cross_entropy": cross_entropy_kernels.cross_entropy,
    "cross_entropy_backward": cross_entropy_kernels.cross_entropy_backward,
}
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 2e-2}  # rounding of the result, and of sums of float32


@dataclasses.dataclass
class Case:
    """An op on one shape: `ours(plan)` runs the kernel, `reads` how many rows it holds, `bytes` what it must move."""

    ours: Callable[[RowPlan | None], Any]
    reference: Callable[[slice], Any]
    result: Any
    peers: dict[str, Callable[[], Any] | None]
    bytes: int
    reads: int
    matrices: list[Any]
    plans: Callable[..., RowPlan] = row_plan


def softmax_online(x: Any) -> Case:
    out = torch.empty_like(x)
    peers = {"torch": lambda: torch.softmax(x, -1), "quack": _quack("softmax", "softmax", x)}
    reference = lambda rows: torch.softmax(x[rows].double(), -1)  # noqa: E731
    return Case(
        lambda plan: KERNELS["softmax_online"](out, x, plan=plan), reference, out, peers, 2 * x.nbytes, 1, [x, out]
    )


def rmsnorm(x: Any) -> Case:
    out, weight = torch.empty_like(x), torch.randn(x.shape[1], device=x.device)
    narrow = weight.to(x.dtype)
    peers = {
        "torch": lambda: torch.nn.functional.rms_norm(x, x.shape[1:], narrow, 1e-6),
        "quack": _quack("rmsnorm", "rmsnorm", x, weight),
    }

    def reference(rows: slice) -> Any:
        wide = x[rows].double()
        return wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * weight.double()

    def ours(plan: RowPlan | None) -> None:
        KERNELS["rmsnorm"](out, None, None, x, weight, None, None, 1e-6, plan=plan)

    return Case(ours, reference, out, peers, 2 * x.nbytes, 1, [x, out])


def layernorm(x: Any) -> Case:
    out = torch.empty_like(x)
    weight, bias = (torch.randn(x.shape[1], device=x.device, dtype=x.dtype) for _ in range(2))
    peers = {
        "torch": lambda: torch.nn.functional.layer_norm(x, x.shape[1:], weight, bias, 1e-5),
        "quack": _quack("rmsnorm", "layernorm_fwd", x, weight.float()),
    }

    def reference(rows: slice) -> Any:
        return torch.nn.functional.layer_norm(x[rows].double(), x.shape[1:], weight.double(), bias.double(), 1e-5)

    def ours(plan: RowPlan | None) -> None:
        KERNELS["layernorm"](out, None, None, None, x, weight, bias, None, 1e-5, plan=plan)

    return Case(ours, reference, out, peers, 2 * x.nbytes, 1, [x, out])


def cross_entropy(x: Any) -> Case:
    target = torch.randint(x.shape[1], (x.shape[0],), device=x.device)
    loss, lse = (torch.empty(x.shape[0], device=x.device) for _ in range(2))
    peers = {
        "torch": lambda: torch.nn.functional.cross_entropy(x, target, reduction="none"),
        "quack": _quack("cross_entropy", "cross_entropy", x, target, reduction="none"),
    }

    def reference(rows: slice) -> Any:
        return torch.nn.functional.cross_entropy(x[rows].double(), target[rows], reduction="none")

    def ours(plan: RowPlan | None) -> None:
        KERNELS["cross_entropy"](loss, lse, x, target, -100, 0.0, False, plan=plan)

    return Case(ours, reference, loss, peers, x.nbytes, 1, [x], reading_plan)


def softmax_online_backward(x: Any) -> Case:
    y, grad, dx = torch.softmax(x, -1), torch.randn_like(x), torch.empty_like(x)
    peers = {"torch": lambda: torch._softmax_backward_data(grad, y, -1, x.dtype)}

    def reference(rows: slice) -> Any:
        wide, slope = y[rows].double(), grad[rows].double()
        return wide * (slope - (wide * slope).sum(-1, keepdim=True))

    return Case(
        lambda plan: KERNELS["softmax_online_backward"](dx, grad, y, plan=plan),
        reference,
        dx,
        peers,
        3 * x.nbytes,
        2,
        [x, y, grad],
    )


def cross_entropy_backward(x: Any) -> Case:
    target = torch.randint(x.shape[1], (x.shape[0],), device=x.device)
    lse, grad, dx = torch.logsumexp(x.float(), -1), torch.randn(x.shape[0], device=x.device), torch.empty_like(x)

    def reference(rows: slice) -> Any:
        wide = x[rows].double()
        hot = torch.nn.functional.one_hot(target[rows], x.shape[1])
        return (torch.softmax(wide, -1) - hot) * grad[rows, None].double()

    def ours(plan: RowPlan | None) -> None:
        KERNELS["cross_entropy_backward"](dx, grad, x, target, lse, -100, 0.0, plan=plan)

    return Case(ours, reference, dx, {}, 2 * x.nbytes, 1, [x, dx])


def _norm_backward(op: str, x: Any) -> Case:
    grad, weight, dx = torch.randn_like(x), torch.randn(x.shape[1], device=x.device, dtype=x.dtype), torch.empty_like(x)
    wide = x.float()
    centred = op == "layernorm_backward"
    mean = wide.mean(-1) if centred else None
    variance = wide.var(-1, unbiased=False) if centred else wide.square().mean(-1)
    rstd = (variance + 1e-5).rsqrt()
    dweight, dbias = torch.empty_like(weight), torch.empty_like(weight) if centred else None
    statistics_ = (mean, rstd) if centred else (rstd,)
    del wide
    peers: dict[str, Any] = {}
    if centred:
        masks = [True, True, True]
        native = torch.ops.aten.native_layer_norm_backward
        two = mean[:, None], rstd[:, None]
        peers["torch"] = lambda: native(grad, x, x.shape[1:], *two, weight, weight, masks)
    elif hasattr(torch.ops.aten, "_fused_rms_norm_backward"):
        native = torch.ops.aten._fused_rms_norm_backward
        peers["torch"] = lambda: native(grad, x, x.shape[1:], rstd[:, None], weight, [True, True])

    def reference(rows: slice) -> Any:
        normal = (x[rows].double() - (mean[rows, None].double() if centred else 0)) * rstd[rows, None].double()
        slope = grad[rows].double() * weight.double()
        found = slope - normal * (slope * normal).mean(-1, keepdim=True)
        return rstd[rows, None].double() * (found - (slope.mean(-1, keepdim=True) if centred else 0))

    def ours(plan: RowPlan | None) -> None:
        KERNELS[op](dx, dweight, dbias, grad, None, x, weight, *statistics_, plan=plan)

    return Case(ours, reference, dx, peers, 3 * x.nbytes, 2, [x, grad, dx], gathering_plan)


def rmsnorm_backward(x: Any) -> Case:
    return _norm_backward("rmsnorm_backward", x)


def layernorm_backward(x: Any) -> Case:
    return _norm_backward("layernorm_backward", x)


OPS = {
    "softmax_online": softmax_online, "rmsnorm": rmsnorm, "layernorm": layernorm, "cross_entropy": cross_entropy,
    "softmax_online_backward": softmax_online_backward, "cross_entropy_backward": cross_entropy_backward,
    "rmsnorm_backward": rmsnorm_backward, "layernorm_backward": layernorm_backward,
}  # fmt: skip


def _quack(module: str, name: str, *args: Any, **options: Any) -> Callable[[], Any] | None:
    if importlib.util.find_spec("quack") is None:
        return None
    function = getattr(importlib.import_module(f"quack.{module}"), name)
    return lambda: function(*args, **options)


def plans_of(case: Case) -> Iterator[tuple[str, RowPlan | None]]:
    """The kernel's own plan, then others: fewer and more threads and blocks, in registers, shared memory, streamed."""
    yield "now", None
    columns, size = case.matrices[0].shape[1], case.matrices[0].element_size()
    vector = widest([("rows", item) for item in case.matrices])
    build = functools.partial(case.plans, columns, vector, size, held=case.reads)
    rule = build()
    seen = {rule}
    yield "bound", dataclasses.replace(rule, resident=max(1024 // rule.block, 1))
    yield "free", dataclasses.replace(rule, resident=0)
    if case.plans is reading_plan:
        for threads, count in itertools.product((256, 512), (2, 4, 8)):
            if columns >= 2 * threads * vector * count:
                yield f"stream T{threads}C{count}", streaming_plan(columns, vector, threads, count)
    for cluster, threads in itertools.product((1, 2, 4, 8, 16), (32, 64, 128, 256, 512, 1024)):
        for staged in (False, True) if vector * size == ACCESS_BYTES else (False,):
            plan = build(threads=threads, cluster=cluster, staged=staged)
            shared = ACCESS_BYTES * plan.count * plan.block * case.reads * plan.stages
            few = 1 <= plan.count <= (16 if staged else 8) and shared < SHARED_BYTES
            near = rule.cluster // 2 <= cluster <= rule.cluster * 2
            if few and near and plan.threads == threads and plan not in seen:
                seen.add(plan)
                yield name_of(plan), plan


def name_of(plan: RowPlan) -> str:
    """T threads, R rows, C accesses, K blocks, S stages in shared memory."""
    stages = f"S{plan.stages}" if plan.stages else ""
    return f"T{plan.threads}R{plan.rows}C{plan.count}K{plan.cluster}{stages}"


def candidates(case: Case, tune: bool, compiled: bool) -> dict[str, Callable[[], Any]]:
    """What is timed, by name."""
    found: dict[str, Callable[[], Any]] = {}
    for name, plan in plans_of(case):
        found[name] = lambda plan=plan: case.ours(plan)
        if not tune:
            break
    found |= {name: peer for name, peer in case.peers.items() if peer is not None}
    if compiled and "torch" in case.peers:
        found["compile"] = torch.compile(case.peers["torch"], dynamic=False)
    return found


def check(name: str, case: Case, dtype: Any) -> str:
    """How far the first and last rows are from float64; empty where they are near enough."""
    worst = 0.0
    for rows in (slice(0, CHECKED_ROWS), slice(-CHECKED_ROWS, None)):
        wanted = case.reference(rows)
        error = (case.result[rows].double() - wanted).abs() / wanted.abs().clamp(min=wanted.abs().mean().item())
        worst = max(worst, error.max().item()) if not error.isnan().any() else float("inf")
    return "" if worst <= TOLERANCE[dtype] else f"WRONG {name}: {worst:.1e}"


def times(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median milliseconds of each, as the suites measure them."""
    cache = timing.L2()
    return {name: spread.p50_us / 1e3 for name, spread in timing.interleaved(functions, 1, rounds, cache.flush).items()}


def working(functions: dict[str, Callable[[], Any]], notes: list[str]) -> dict[str, Callable[[], Any]]:
    """Those that run; why others do not goes to `notes`."""
    found = {}
    for name, function in functions.items():
        try:
            function()
            torch.cuda.synchronize()
            found[name] = function
        except Exception as error:  # noqa: BLE001  (a candidate that cannot run is reported, not timed)
            notes.append(f"{name}: {str(error).splitlines()[0][:90] if str(error) else repr(error)}")
    return found


def measure(op: str, shape: str, dtype: Any, arguments: argparse.Namespace, compiled: bool) -> str:
    """One line of the table."""
    rows, columns = map(int, shape.split("x"))
    x = torch.randn(rows, columns, device="cuda", dtype=dtype)
    notes: list[str] = []
    case = OPS[op](x)
    timed = working(candidates(case, arguments.tune, compiled), notes)
    for name in [name for name in timed if name not in ("torch", "compile", "quack")]:
        case.result.fill_(float("nan"))
        timed[name]()
        if wrong := check(name, case, dtype):
            notes.append(wrong)
            del timed[name]
    half = torch.empty(case.bytes // 8, device="cuda")
    target = torch.empty_like(half)
    found = times({"copy": lambda: target.copy_(half), **timed}, arguments.rounds)
    copy = found.pop("copy")
    shown = "  ".join(f"{name} {copy / taken:.3f}" for name, taken in _best_first(found))
    head = f"{op:<23} {str(dtype)[6:]:<8} {shape:<11} copy {case.bytes / copy / 1e6:5.0f}"
    return f"{head} | {shown}" + "".join(f" [{note}]" for note in notes)


def _best_first(found: dict[str, float]) -> list[tuple[str, float]]:
    """The kernel's own plan and the peers, then the three best of the other plans."""
    named = [name for name in ("now", "torch", "compile", "quack") if name in found]
    others = sorted((taken, name) for name, taken in found.items() if name not in named)
    return [(name, found[name]) for name in named] + [(name, taken) for taken, name in others[:3]]


def host_times() -> Iterator[str]:
    """Microseconds of the host for a call on a small tensor, beside PyTorch's own op."""
    x, weight = torch.randn(8, 1024, device="cuda"), torch.randn(1024, device="cuda")
    grown, target = x.clone().requires_grad_(), torch.randint(1024, (8,), device="cuda")
    out, functional = torch.empty_like(x), torch.nn.functional
    through = torch.ops.tilewright._softmax_online
    pairs = {
        "softmax_online": (lambda: ops.softmax_online(x), lambda: torch.softmax(x, -1)),
        "softmax_online through torch.ops": (lambda: through(out, x), lambda: torch.softmax(x, -1)),
        "softmax_online with gradient": (lambda: ops.softmax_online(grown), lambda: torch.softmax(grown, -1)),
        "rmsnorm": (lambda: ops.rmsnorm(x, weight), lambda: functional.rms_norm(x, (1024,), weight, 1e-6)),
        "layernorm": (
            lambda: ops.layernorm(x, weight, weight),
            lambda: functional.layer_norm(x, (1024,), weight, weight),
        ),
        "cross_entropy": (
            lambda: ops.cross_entropy(x, target, reduction="none"),
            lambda: functional.cross_entropy(x, target, reduction="none"),
        ),
    }
    for name, (ours, theirs) in pairs.items():
        yield f"host {name:<33} ours {_host_us(ours):5.1f} us, torch {_host_us(theirs):5.1f} us"


def _host_us(function: Callable[[], Any], calls: int = 200, batches: int = 15) -> float:
    """Fewer calls than the driver queues, so that the host never waits for the device."""
    found = []
    for _ in range(batches):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        found.append((time.perf_counter() - start) / calls * 1e6)
    return statistics.median(found)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--op", default=",".join(OPS))
    parser.add_argument("--shape", default=",".join(SHAPES))
    parser.add_argument("--dtype", default=",".join(DTYPES))
    parser.add_argument("--tune", action="store_true", help="other plans than the rule's, too")
    parser.add_argument("--no-host", action="store_true", help="leave out the time that a call takes on the host")
    parser.add_argument("--compile", default="32768x4096", help="shapes on which torch.compile is timed")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=225, help="begin no line after this long")
    arguments = parser.parse_args()
    start = time.monotonic()
    print(torch.cuda.get_device_name(), torch.__version__, "| fractions of the copy's rate")
    if not arguments.no_host:
        print(*host_times(), sep="\n", flush=True)
    for shape in arguments.shape.split(","):
        for op in arguments.op.split(","):
            for dtype in arguments.dtype.split(","):
                if time.monotonic() - start > arguments.seconds:
                    print("out of time at", op, shape, dtype)
                    return
                compiled = shape in arguments.compile.split(",")
                print(measure(op, shape, getattr(torch, dtype), arguments, compiled), flush=True)
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
