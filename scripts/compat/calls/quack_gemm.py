"""Call quack's products with small sizes, and compare with float64: `quack_gemm.py [CASE...]`.

The program ends with status 1 if one is wrong.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import pairwise

import quack.gemm_interface as quack
import torch

M, N, K = 128, 128, 64


def random(*shape: int) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(*shape).to("cuda", torch.bfloat16)


def error(out: torch.Tensor, expected: torch.Tensor) -> float:
    """The greatest difference."""
    return float((out.double() - expected).abs().max())


def product(m: int = M, n: int = N, k: int = K, a_major: str = "k", b_major: str = "n") -> float:
    """`A @ B` of any major order."""
    a = random(m, k) if a_major == "k" else random(k, m).T
    b = (random(k, n) if b_major == "n" else random(n, k).T) / 8
    return error(quack.gemm(a, b, tuned=False), a.double() @ b.double())


def added() -> float:
    """`A @ B + C`."""
    a, b, c = random(M, K), random(K, N) / 8, random(M, N)
    return error(quack.gemm_add(a, b, c, tuned=False), a.double() @ b.double() + c.double())


def activated(name: str, function: Callable[[torch.Tensor], torch.Tensor]) -> float:
    """An activation of `A @ B`."""
    a, b = random(M, K), random(K, N) / 8
    _, out = quack.gemm_act(a, b, activation=name, tuned=False)
    return error(out, function(a.double() @ b.double()))


def gelu(x: torch.Tensor) -> torch.Tensor:
    """The approximation by a hyperbolic tangent."""
    return torch.nn.functional.gelu(x, approximate="tanh")


def backward_of_relu() -> float:
    """`A @ B` where a number before the activation is positive, and its activation."""
    a, b, before = random(M, K), random(K, N) / 8, random(M, N)
    gradient, out = quack.gemm_dact(a, b, before, activation="relu", tuned=False)
    kept = (a.double() @ b.double()) * (before.double() > 0)
    return max(error(gradient, kept), error(out, before.double().relu()))


def gated() -> float:
    """`silu(gate) * up` of the even and odd columns of `A @ B`."""
    a, b = random(M, K), random(K, 2 * N) / 8
    before, out = quack.gemm_gated(a, b, activation="swiglu", tuned=False)
    whole = a.double() @ b.double()
    return max(error(before, whole), error(out, torch.nn.functional.silu(whole[:, ::2]) * whole[:, 1::2]))


def batched() -> float:
    """Three products at once."""
    a, b = random(3, M, K), random(3, K, N) / 8
    return error(quack.gemm(a, b, tuned=False), a.double() @ b.double())


def ragged_m() -> float:
    """Products of rows of different numbers."""
    ends = [0, 100, 164, 256]
    a, b = random(256, K), random(3, K, N) / 8
    out = quack.gemm(a, b, cu_seqlens_m=torch.tensor(ends, dtype=torch.int32, device="cuda"), tuned=False)
    parts = zip(ends, ends[1:], b, strict=False)
    return error(out, torch.cat([a[start:end].double() @ item.double() for start, end, item in parts]))


def ragged_k() -> float:
    """Products over depths of different extents."""
    ends = [0, 64, 128, 192]
    a, b = random(192, M).T, random(192, N) / 8
    out = quack.gemm(a, b, cu_seqlens_k=torch.tensor(ends, dtype=torch.int32, device="cuda"), tuned=False)
    parts = [a[:, start:end].double() @ b[start:end].double() for start, end in pairwise(ends)]
    return error(out, torch.stack(parts))


CASES: dict[str, Callable[[], float]] = {
    "plain": product, "A m-major": lambda: product(a_major="m"), "B k-major": lambda: product(b_major="k"),
    "odd": lambda: product(100, 96, 72), "add": added, "relu": lambda: activated("relu", torch.relu),
    "gelu": lambda: activated("gelu_tanh_approx", gelu), "backward of relu": backward_of_relu, "gated": gated,
    "batched": batched, "ragged m": ragged_m, "ragged k": ragged_k,
}  # fmt: skip


def main() -> int:
    """Run the cases; gives the exit status."""
    torch.manual_seed(0)
    wrong = 0
    for name in sys.argv[1:] or CASES:
        begun = time.monotonic()
        found = CASES[name]()
        wrong += found >= 0.05
        print(f"{name:20} {time.monotonic() - begun:5.0f} s  error {found:.4f}{' WRONG' if found >= 0.05 else ''}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
