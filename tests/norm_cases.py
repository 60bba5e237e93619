"""What the tests of the norms share."""

import numpy as np
import pytest

from tests.op_cases import DTYPES, accuracy, close, normal, on_emulator, wide


class NormCases:
    """Tests of a norm: `op`, `backward` and `expected(h, weight, bias) -> out, dx of grad` are the subclass's."""

    op: staticmethod
    kernel: staticmethod
    centred: bool
    eps: float

    def moments(self, h):
        mean = h.mean(-1, keepdims=True) if self.centred else 0.0
        return mean, 1 / np.sqrt(((h - mean) ** 2).mean(-1, keepdims=True) + self.eps)

    def expected(self, h, weight=None, bias=None):
        mean, rstd = self.moments(h)
        return (h - mean) * rstd * (1 if weight is None else wide(weight)) + (0 if bias is None else wide(bias))

    def slopes(self, h, grad, weight=None):
        """Gradients of h, weight and bias."""
        mean, rstd = self.moments(h)
        normed, slope = (h - mean) * rstd, grad * (1 if weight is None else wide(weight))
        dh = slope - normed * (slope * normed).mean(-1, keepdims=True)
        dh = rstd * (dh - (slope.mean(-1, keepdims=True) if self.centred else 0.0))
        return dh, (grad * normed).sum(0), grad.sum(0)

    def check_values(self, dtype, shape):
        """Weight and bias in the type of x; then none."""
        x = normal(0, shape, dtype, shift=2)
        weight, bias = normal(1, shape[-1:], dtype), normal(2, shape[-1:], dtype)
        with on_emulator():
            found, plain = self.op(x, weight, bias), self.op(x)
        noise = 8 * accuracy(dtype)
        close(found, self.expected(wide(x), weight, bias), dtype, absolute=noise)
        close(plain, self.expected(wide(x)), dtype, absolute=noise)

    def check_residual(self, dtype):
        """What is normed is the sum before it is rounded."""
        x, residual = normal(3, (3, 500), dtype), normal(4, (3, 500), dtype)
        weight = normal(5, (500,), "float32")
        with on_emulator():
            found, total = self.op(x, weight, None, residual)
        close(total, wide(x) + wide(residual), dtype, absolute=accuracy(dtype))
        noise = 8e-6 if dtype != "float64" else 1e-14
        close(found, self.expected(wide(x) + wide(residual), weight), dtype, absolute=noise)

    def check_backward(self, dtype, columns, plan=None, more=False):
        """The gradients from the kernels of the backward pass; `more` is a gradient of x + residual."""
        x, grad = normal(6, (7, columns), dtype, shift=1), normal(7, (7, columns), dtype)
        weight = normal(8, (columns,), dtype)
        extra = normal(9, (7, columns), dtype) if more else None
        mean, rstd = (np.broadcast_to(item, (7, 1))[:, 0] for item in self.moments(wide(x)))
        stats = [item.astype(np.float64 if dtype == "float64" else np.float32) for item in (mean, rstd)]
        dx, dweight, dbias = np.empty_like(x), np.empty_like(weight), np.empty_like(weight)
        self.kernel(dx, dweight, dbias, grad, extra, x, weight, *stats[0 if self.centred else 1 :], plan=plan)
        wanted = self.slopes(wide(x), wide(grad), weight)
        noise = 3e-14 if dtype == "float64" else 2e-5
        close(dx, wanted[0] + (wide(extra) if more else 0), dtype, absolute=noise)
        close(dweight, wanted[1], dtype, absolute=noise)
        close(dbias, wanted[2], dtype, absolute=noise)

    def test_gradients(self):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        x, weight, bias, residual = (
            torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((2, 8), (8,), (8,), (2, 8))
        )
        for arguments in ((x,), (x, weight), (x, weight, bias), (x, weight, bias, residual), (x, None, None, residual)):
            assert torch.autograd.gradcheck(self.op, arguments)
        assert torch.autograd.gradgradcheck(self.op, (x, weight, bias, residual))
        with on_emulator():
            assert torch.autograd.gradcheck(self.op, (x, weight, bias, residual))
        (self.op(x, weight, bias, residual)[1]).sum().backward()  # the sum alone
        assert (x.grad == 1).all() and (residual.grad == 1).all() and weight.grad is None

    def test_vmap(self):
        """Over rows at once; over weights one by one; the gradients of weights of each element."""
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        x, weights, bias = torch.randn(3, 4, 8), torch.randn(3, 8), torch.randn(8)
        rows = torch.stack([self.op(part, weights[0], bias) for part in x])
        torch.testing.assert_close(torch.vmap(self.op, in_dims=(0, None, None))(x, weights[0], bias), rows)
        rows = torch.stack([self.op(part, weight, bias) for part, weight in zip(x, weights, strict=True)])
        torch.testing.assert_close(torch.vmap(self.op, in_dims=(0, 0, None))(x, weights, bias), rows)
        slope = torch.func.grad(lambda w, x: self.op(x, w).square().sum())
        wanted = torch.stack([slope(weights[0], part) for part in x])
        torch.testing.assert_close(torch.vmap(slope, in_dims=(None, 0))(weights[0], x), wanted)

    def test_same_bits_again(self):
        x, weight = normal(10, (3, 3000), "float32"), normal(11, (3000,), "float32")
        with on_emulator():
            np.testing.assert_array_equal(self.op(x, weight), self.op(x, weight))

    def test_references(self):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        x, weight = normal(12, (3, 50), "float64"), normal(13, (50,), "float64")
        wanted = self.expected(x, weight)
        close(self.op(x, weight), wanted, "float64", absolute=1e-14)
        close(self.op(torch.from_numpy(x), torch.from_numpy(weight)).numpy(), wanted, "float64", absolute=1e-14)

    def test_empty_tensors_and_strides(self):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        weight = torch.randn(8, requires_grad=True)
        with on_emulator():
            assert self.op(torch.empty(0, 8), weight).shape == (0, 8)
            self.op(torch.empty(0, 8), weight).sum().backward()
            assert (weight.grad == 0).all()
            x = torch.randn(8, 6).t()
            torch.testing.assert_close(self.op(x, weight.detach()), self.op(x.contiguous(), weight.detach()))

    def test_errors(self):
        name = self.op.__name__
        x = np.zeros((3, 4), np.float32)
        with pytest.raises(ValueError, match=rf"{name}: weight has shape \(3,\)") as raised:
            self.op(x, np.zeros(3, np.float32))
        assert "expected  (4,), as x has columns" in str(raised.value)
        with pytest.raises(ValueError, match=f"{name}: residual is not like x") as raised:
            self.op(x, None, None, np.zeros((3, 4)))
        assert "(3, 4) float64" in str(raised.value)
        with pytest.raises(ValueError, match=f"{name}: bias has dtype int32"):
            self.op(x, None, np.zeros(4, np.int32))
        with pytest.raises(ValueError, match=f"{name}: a tensor without dimensions has no rows"):
            self.op(np.ones(()))
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        with pytest.raises(ValueError, match=f"{name}: expected all tensors to be on the same device"):
            self.op(x, torch.zeros(4))


BACKWARD = [(dtype, columns) for dtype in DTYPES for columns in ((33, 1000) if dtype == "float32" else (33,))]
