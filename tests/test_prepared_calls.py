"""`Prepared`: when the calls of an op that were prepared are found."""

from types import SimpleNamespace

import pytest

from tilewright.kernels import views
from tilewright.ops.registration import Operator, Prepared

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def kept(monkeypatch):
    """Prepared calls of an operator, one of which is kept; tensors' keys are their names."""
    monkeypatch.setattr(views, "native_key", [lambda *tensors: tuple(item.name for item in tensors)])
    kept = Prepared(Operator("_op", 1, print, print, print))
    kept.keep(("sum", 1), [tensor("x")], str)
    return kept


def tensor(name, is_cuda=True):
    return SimpleNamespace(name=name, is_cuda=is_cuda)


def test_it_is_found_by_options_and_tensors(kept):
    assert kept.find(("sum", 1), tensor("x")) is str
    for options, *tensors in ((("sum", 2), "x"), (("sum", 1), "y"), (("sum", 1), "x", "x"), ((), "x")):
        assert kept.find(options, *map(tensor, tensors)) is None


def test_tensors_of_the_host_are_not_kept(kept):
    """Which way these go depends on settings."""
    kept.keep((), [tensor("x", is_cuda=False)], str)
    assert kept.find((), tensor("x")) is None


def test_nothing_is_found_where_another_backend_is_chosen(kept):
    kept._operator.backend = "ref"
    assert kept.find(("sum", 1), tensor("x")) is None


def test_nothing_is_found_where_somebody_sees_the_tensors(kept):
    found = []

    def look(x):
        found.append(kept.find(("sum", 1), tensor("x")))
        return x

    torch.vmap(look)(torch.zeros(2))
    torch.func.grad(look)(torch.tensor(0.0))
    with torch.autograd.forward_ad.dual_level():
        look(None)
    with torch.utils._python_dispatch.TorchDispatchMode():
        look(None)
    assert found == [None] * 4
    look(None)
    assert found[-1] is str


def test_what_has_no_key_is_not_kept(kept, monkeypatch):
    monkeypatch.setattr(views, "native_key", [lambda *_: None])
    kept.keep((), [tensor("x")], str)
    assert kept.find((), tensor("x")) is None
