"""The kernel library: functions on tensors of PyTorch and NumPy, and the operators `torch.ops.tilewright._<op>`."""

from tilewright.ops.copy_transpose import copy_transpose
from tilewright.ops.cross_entropy import cross_entropy
from tilewright.ops.elementwise import elementwise
from tilewright.ops.gemm import gemm
from tilewright.ops.gemm_grouped import gemm_grouped
from tilewright.ops.gemm_scaled import gemm_scaled
from tilewright.ops.layernorm import layernorm
from tilewright.ops.reduce import reduce
from tilewright.ops.reduce_sum import reduce_sum
from tilewright.ops.rmsnorm import rmsnorm
from tilewright.ops.softmax_online import set_softmax_online_backend, softmax_online

__all__ = [
    "copy_transpose", "cross_entropy", "elementwise", "gemm", "gemm_grouped", "gemm_scaled", "layernorm", "reduce",
    "reduce_sum", "rmsnorm", "set_softmax_online_backend", "softmax_online",
]  # fmt: skip
