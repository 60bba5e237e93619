"""Call flash-attention's interface with small sizes, and compare with float64: `flash_attention.py ARCH CASE...`.

ARCH picks its kernels (`sm_80`, `sm_90`; `sm_120` has the backward of the sm_80 kind). Rows of q are a multiple of the
tile's 128 there, as its kernels compute rows past the end from memory that nothing was written to. Without CASE all
cases of the architecture run; the program ends with status 1 if one is wrong.
"""

from __future__ import annotations

import math
import os
import sys
import time
from typing import Any

ARCH = sys.argv[1]
os.environ["FLASH_ATTENTION_ARCH"] = ARCH
if ARCH == "sm_80":
    os.environ["CUTE_DSL_ARCH"] = ARCH  # its epilogue asks what is compiled for

import torch  # noqa: E402
from flash_attn.cute import flash_attn_func, flash_attn_varlen_func  # noqa: E402

LENGTHS = (40, 0, 24), (30, 16, 50)
FORWARD = {
    "plain": {}, "causal": {"causal": True}, "gqa": {"heads": (4, 2)}, "mqa causal": {"heads": (2, 1), "causal": True},
    "local": {"window_size": (16, 8)}, "softcap": {"softcap": 5.0}, "d128": {"d": 128},
}  # fmt: skip
HOPPER = {
    "rows": {"rows": (37, 53)}, "sink": {"sink": True}, "paged 16": {"page": 16}, "paged 128": {"page": 128},
    "paged causal gqa": {"page": 32, "heads": (2, 1), "causal": True}, "varlen": {"lengths": LENGTHS},
    "varlen causal": {"lengths": LENGTHS, "causal": True},
}  # fmt: skip
BACKWARD = {f"backward {name}": case | {"backward": True} for name, case in FORWARD.items() if name != "d128"}
HOPPER_BACKWARD = {
    "backward rows": {"rows": (37, 53), "backward": True},
    "backward varlen": {"lengths": LENGTHS, "backward": True},
}
CASES = {"sm_80": FORWARD, "sm_120": FORWARD | BACKWARD, "sm_90": FORWARD | HOPPER | BACKWARD | HOPPER_BACKWARD}[ARCH]
DTYPE = torch.bfloat16


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, case: dict[str, Any], sink: Any) -> torch.Tensor:
    """Attention of one sequence in float64: `q` (rows, heads, d)."""
    rows, heads, d = q.shape
    columns, shared = k.shape[0], heads // k.shape[1]
    k, v = (item.repeat_interleave(shared, 1) for item in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(d)
    if "softcap" in case:
        scores = torch.tanh(scores / case["softcap"]) * case["softcap"]
    at, of = torch.arange(rows)[:, None] + columns - rows, torch.arange(columns)[None]
    left, right = case.get("window_size", (None, None))
    right = 0 if case.get("causal") else right
    seen = torch.ones(rows, columns, dtype=torch.bool)
    seen &= of <= at + right if right is not None else seen
    seen &= of >= at - left if left is not None else seen
    scores = scores.masked_fill(~seen, -math.inf)
    if sink is not None:
        scores = torch.cat([scores, sink.double()[:, None, None].expand(heads, rows, 1)], -1)
    return torch.einsum("hqk,khd->qhd", torch.softmax(scores, -1).nan_to_num(0)[..., :columns], v)


def random(*shape: int, grad: bool = False) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(*shape).to("cuda", DTYPE).requires_grad_(grad)


def starts(lengths: tuple[int, ...]) -> torch.Tensor:
    """Where sequences of these lengths begin, and where the last ends."""
    return torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32, device="cuda")


def run(case: dict[str, Any]) -> float:
    """The greatest error of the output, and of the gradients where they are asked for."""
    torch.manual_seed(0)
    heads, shared = case.get("heads", (1, 1))
    rows, columns = case.get("rows", (64, 128) if "page" in case else (128, 128))
    d, grad = case.get("d", 64), case.get("backward", False)
    call = {name: case[name] for name in ("causal", "window_size", "softcap") if name in case}
    sink = random(heads) if "sink" in case else None
    call |= {} if sink is None else {"learnable_sink": sink}
    if "lengths" in case:
        long, wide = case["lengths"]
        q, k, v = (random(sum(n), h, d, grad=grad) for n, h in ((long, heads), (wide, shared), (wide, shared)))
        out = flash_attn_varlen_func(
            q, k, v, cu_seqlens_q=starts(long), cu_seqlens_k=starts(wide), max_seqlen_q=max(long),
            max_seqlen_k=max(wide), **call,
        )  # fmt: skip
    elif "page" in case:
        return paged(case, call, (2, rows, columns, heads, shared, d))
    else:
        long, wide = (rows,), (columns,)
        q, k, v = (random(1, n, h, d, grad=grad) for n, h in ((rows, heads), (columns, shared), (columns, shared)))
        out = flash_attn_func(q, k, v, **call)
    out = out[0] if isinstance(out, tuple) else out
    flat = [item.detach().double().flatten(0, -3).requires_grad_(grad) for item in (q, k, v)]
    parts = zip(flat[0].split(long), flat[1].split(wide), flat[2].split(wide), strict=True)
    expected = torch.cat([attention(*part, case, sink) for part in parts])
    errors = [(out.double().flatten(0, -3) - expected).abs().max()]
    if grad:
        cotangent = random(*out.shape)
        given = torch.autograd.grad(out, (q, k, v), cotangent)
        wanted = torch.autograd.grad(expected, flat, cotangent.double().flatten(0, -3))
        errors += [(a.double().flatten(0, -3) - b).abs().max() / 2 for a, b in zip(given, wanted, strict=True)]
    return float(max(errors))


def paged(case: dict[str, Any], call: dict[str, Any], sizes: tuple[int, ...]) -> float:
    """Keys and values in pages that lie anywhere, of sequences of different lengths."""
    batch, rows, columns, heads, shared, d = sizes
    page = case["page"]
    count = columns // page
    q, k, v = random(batch, rows, heads, d), *(random(batch * count + 1, page, shared, d) for _ in range(2))
    table = torch.randperm(batch * count + 1)[: batch * count].reshape(batch, count).int().to("cuda")
    used = torch.tensor([columns - 3 - 5 * number for number in range(batch)], dtype=torch.int32, device="cuda")
    out = flash_attn_varlen_func(q, k, v, page_table=table, seqused_k=used, max_seqlen_k=columns, **call)
    out = out[0] if isinstance(out, tuple) else out
    errors = []
    for number in range(batch):
        own = [item[table[number].long()].flatten(0, 1)[: used[number]].double() for item in (k, v)]
        expected = attention(q[number].double(), *own, case, None)
        errors.append((out[number].double() - expected).abs().max())
    return float(max(errors))


def main() -> int:
    """Run the cases; gives the exit status."""
    wrong = 0
    for name in sys.argv[2:] or CASES:
        begun = time.monotonic()
        error = run(CASES[name])
        wrong += error >= 0.03
        print(f"{name:24} {time.monotonic() - begun:5.0f} s  error {error:.4f}{' WRONG' if error >= 0.03 else ''}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
