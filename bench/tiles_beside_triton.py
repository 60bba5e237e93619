"""Block-level kernels (examples/tile) beside Triton's: softmax, layer norm, and a GEMM beside PyTorch's.

    python bench/tiles_beside_triton.py

Device times in microseconds, medians of calls that take turns, after the L2 cache was flushed. Results are checked
first.
Blocks are chosen by `plan`, the same rule for both kernels and every type.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import tilewright.cute as cute
from tilewright.tools.benching import triton_kernels
from tilewright.tools.benching.timing import L2, Spread, interleaved

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "tile"
SHAPES = ((16384, 1024), (8192, 4096), (4096, 8192), (8192, 1000), (8192, 5000))
DTYPES = (torch.float32, torch.bfloat16)
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 6e-2}
EPS = 1e-5
GEMM_SIZE = 4096
GEMM_PLANS = ((128, 128, 32, 128), (128, 128, 64, 128), (128, 128, 32, 256))
WARMUP, ITERATIONS = 3, 20

Calls = dict[str, Callable[[], object]]


def example(name: str) -> Any:
    """A module of examples/tile."""
    spec = importlib.util.spec_from_file_location(f"tile_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def plan(columns: int) -> tuple[int, int, int]:
    """Rows and columns of a tile, and threads of a block: 8 to 32 elements a thread, one row."""
    width = 1 << (columns - 1).bit_length()
    return 1, width, min(max(width // 16, 128), 512)


def known(tensor: torch.Tensor) -> Any:
    """The tensor with its layout and alignment known while compiling."""
    return cute.runtime.from_dlpack(tensor, assumed_align=16)


def ours(main: Any, tensors: list[torch.Tensor], wanted: torch.Tensor, *plan_: Any) -> Calls:
    """A compiled example on tensors, the last of which it writes: with known layouts, and as PyTorch has them."""
    calls: Calls = {}
    for name, given in (("known layouts", [known(t) for t in tensors]), ("any layouts", tensors)):
        made = cute.compile(main, *given, *plan_)
        tensors[-1].zero_()
        made(*given, *plan_[: len(plan_) - 3])
        torch.testing.assert_close(tensors[-1].float(), wanted, rtol=0, atol=TOLERANCE[tensors[-1].dtype])
        calls[name] = lambda made=made, given=given: made(*given, *plan_[: len(plan_) - 3])  # type: ignore[misc]
    return calls


def softmax(x: torch.Tensor) -> Calls:
    """Softmax of rows."""
    wanted = torch.softmax(x.float(), 1)
    calls: Calls = {"triton": lambda: triton_kernels.softmax(x)}
    return calls | ours(example("softmax").main, [x, torch.empty_like(x)], wanted, *plan(x.shape[1]))


def layer_norm(x: torch.Tensor) -> Calls:
    """Layer norm of rows, with weight and bias."""
    weight, bias = (torch.randn(1, x.shape[1], device="cuda", dtype=x.dtype) for _ in range(2))
    wanted = torch.nn.functional.layer_norm(x.float(), x.shape[1:], weight[0].float(), bias[0].float(), EPS)
    calls: Calls = {"triton": lambda: triton_kernels.norm(x, weight[0], bias[0], EPS, True)}
    tensors = [x, weight, bias, torch.empty_like(x)]
    return calls | ours(example("layer_norm").main, tensors, wanted, EPS, *plan(x.shape[1]))


def gemm() -> Calls:
    """A product of square matrices of bfloat16, and relu; PyTorch's has the product alone."""
    a, b = (torch.randint(-3, 4, (GEMM_SIZE, GEMM_SIZE), device="cuda").bfloat16() for _ in range(2))
    bias, c = torch.zeros(1, GEMM_SIZE, device="cuda").bfloat16(), torch.empty_like(a)
    calls: Calls = {"torch": lambda: a @ b}
    wanted, given = (a @ b).relu(), [known(t) for t in (a, b, bias, c)]
    for item in GEMM_PLANS:
        made = cute.compile(example("gemm").main, *given, *item)
        c.zero_()
        made(*given)
        assert torch.equal(c, wanted), item
        calls[str(item)] = lambda made=made: made(*given)  # type: ignore[misc]
    return calls


def show(name: str, found: dict[str, Spread], unit: Callable[[Spread], float]) -> None:
    """A line of the table."""
    print(f"{name:<34}", *(f"{key} {unit(item):.1f}" for key, item in found.items()), sep="  ", flush=True)


def main() -> None:
    """Measure everything."""
    flush = L2().flush
    for dtype in DTYPES:
        for shape in SHAPES:
            x = torch.randn(shape, device="cuda", dtype=dtype)
            for kernel in (softmax, layer_norm):
                found = interleaved(kernel(x), WARMUP, ITERATIONS, flush)
                show(f"{kernel.__name__} {str(dtype)[6:]} {shape[0]}x{shape[1]}", found, lambda item: item.p50_us)
    found = interleaved(gemm(), WARMUP, ITERATIONS, flush)
    show(f"gemm bfloat16 {GEMM_SIZE}, TFLOP/s", found, lambda item: 2e-6 * GEMM_SIZE**3 / item.p50_us)


if __name__ == "__main__":
    main()
