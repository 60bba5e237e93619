"""The ops on arrays of NumPy where PyTorch is not installed, and how they meet PyTorch where it is."""

import subprocess
import sys

import numpy as np
import pytest

from tests.op_cases import normal
from tilewright import ops
from tilewright.ops.frameworks import check_tensor

SCRIPT = """
import sys
sys.modules["torch"] = None  # importing it raises ModuleNotFoundError
import numpy as np
from tilewright import ops
from tilewright.base import settings

x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)

def results():
    losses = ops.cross_entropy(x, np.array([2, 0]))
    return [ops.softmax_online(x), ops.rmsnorm(x, w), *ops.layernorm(x, w, w, x), losses]

plain = results()
with settings.scope(target="emu"):
    emulated = results()
for a, b in zip(plain, emulated, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
np.testing.assert_allclose(plain[0][0], np.exp(x[0]) / np.exp(x[0]).sum(), rtol=1e-6)
np.testing.assert_allclose(plain[-1], (np.log(1 + np.exp(-1) + np.exp(-2)) * 2 + 2) / 2, rtol=1e-6)
print("torch" in sys.modules and sys.modules["torch"] is None)
"""


def test_the_ops_need_no_torch():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "True", done.stderr


def test_results_of_numpy_arrays_are_arrays_of_the_same_type():
    x = normal(0, (3, 8), "bfloat16")
    assert ops.softmax_online(x).dtype == x.dtype
    assert ops.cross_entropy(x, np.zeros(3, np.int64), reduction="none").dtype == np.float32


def test_operators_are_registered_with_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for name in ("softmax_online", "rmsnorm", "layernorm", "cross_entropy"):
        for operator in (f"_{name}", f"_{name}_backward"):
            schema = getattr(torch.ops.tilewright, operator).default._schema
            assert schema.is_mutable and not schema.returns


@pytest.mark.parametrize("hidden", ("grad mode", "inference", "neg"))
def test_gradients_and_lazy_tensors_do_not_go_past_pytorch(hidden):
    """What `direct` decides: a gradient that is wanted, and a tensor that is only negated when it is read."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.randn(3, 8)
    if hidden == "neg":
        lazy = torch.complex(x, x).conj().imag
        assert lazy.is_neg()
        torch.testing.assert_close(ops.softmax_online(lazy), (-x).softmax(-1))
        return
    x.requires_grad_()
    with torch.no_grad() if hidden == "grad mode" else torch.inference_mode():
        assert not ops.softmax_online(x).requires_grad
    assert ops.softmax_online(x).requires_grad


def test_forward_mode_is_refused_not_ignored():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.randn(3, 8)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        with pytest.raises(RuntimeError, match=r"jvp|forward"):
            ops.softmax_online(dual)


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match="op: x is a tensor of PyTorch or an array of NumPy, not str") as raised:
        check_tensor("op", "x", "text")
    assert "numpy.asarray" in str(raised.value)
