"""The kernel library: functions on tensors of PyTorch and NumPy, and the operators `torch.ops.tilewright._<op>`."""

from tilewright.ops.cross_entropy import cross_entropy
from tilewright.ops.layernorm import layernorm
from tilewright.ops.rmsnorm import rmsnorm
from tilewright.ops.softmax_online import set_softmax_online_backend, softmax_online

__all__ = ["cross_entropy", "layernorm", "rmsnorm", "set_softmax_online_backend", "softmax_online"]
