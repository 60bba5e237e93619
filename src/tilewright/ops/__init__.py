"""The kernel library: functions on tensors of PyTorch and NumPy, and the operators `torch.ops.tilewright._<op>`."""

from tilewright.ops.softmax_online import set_softmax_online_backend, softmax_online

__all__ = ["set_softmax_online_backend", "softmax_online"]
