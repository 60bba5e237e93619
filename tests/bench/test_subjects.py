"""What the benchmarks compare: peers and references compute the op, on the processor."""

import pytest

torch = pytest.importorskip("torch")

from tilewright.tools.benching import checking  # noqa: E402
from tilewright.tools.benching.cases import Case  # noqa: E402
from tilewright.tools.benching.checking import WrongResult  # noqa: E402
from tilewright.tools.benching.subjects import SUBJECTS, subject  # noqa: E402
from tilewright.tools.benching.subjects.subject import Inputs, as_tuple, optional  # noqa: E402

ON_A_GPU_ONLY = {("rmsnorm_backward", "torch"), ("layernorm_backward", "torch")}
"""PyTorch has these on a GPU, or there with mixed dtypes."""
NEEDED = {"elementwise": (("op", "fma"),)}
"""Options without which there is no op."""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("op", SUBJECTS)
def test_references_and_peers_compute_the_op(op, dtype):
    case, found = Case(op, (37, 300), dtype, NEEDED.get(op, ())), SUBJECTS[op]
    inputs = found.inputs(Inputs(case, "cpu"))
    exact = found.wanted(case, inputs)
    assert all(item.dtype == torch.float64 or not item.is_floating_point() for item in exact)
    functions = {"ref": found.backend("ref", case), "torch": found.backend("torch", case), "compiled": found.compiled}
    for name, function in functions.items():
        if function is not None and (op, name) not in ON_A_GPU_ONLY:
            options = dict(case.options) if name == "compiled" else {}
            checking.check(as_tuple(function(*inputs, **options)), exact, dtype)


@pytest.mark.parametrize("op", [name for name in SUBJECTS if name.endswith("_backward")])
def test_backwards_are_those_of_autograd(op):
    """The formula that results are checked against, beside PyTorch's gradient of the forward, in float64."""
    forward = SUBJECTS[op.removesuffix("_backward")]
    case = Case(op, (5, 12), "float64")
    grad, *kept = SUBJECTS[op].inputs(Inputs(case, "cpu"))
    if op == "softmax_online_backward":
        logits = kept[0].log().requires_grad_()  # softmax(log(y)) is y
        (dx,) = torch.autograd.grad(forward.exact(logits), logits, grad)
        wanted = (dx,)
    else:
        count = {"rmsnorm_backward": 2, "layernorm_backward": 2, "cross_entropy_backward": 1}[op]
        floats = [item.clone().requires_grad_() for item in kept[:count]]
        bias = [torch.zeros(12, dtype=torch.float64, requires_grad=True)] if op == "layernorm_backward" else []
        rest = kept[1:2] if op == "cross_entropy_backward" else bias
        wanted = torch.autograd.grad(forward.exact(*floats, *rest), [*floats, *bias], grad)
    checking.check(SUBJECTS[op].wanted(case, (grad, *kept)), wanted, "float64")


def test_a_row_gone_wrong_shows_in_bfloat16():
    exact = torch.randn(32768, 64, dtype=torch.float64)
    found = exact.to(torch.bfloat16)
    checking.check((found,), (exact,), "bfloat16")
    found[17] = 0
    with pytest.raises(WrongResult, match="largest error is"):
        checking.check((found,), (exact,), "bfloat16")


def test_integers_must_be_equal():
    exact = torch.arange(5)
    checking.check((exact.int(),), (exact,), "float32")
    with pytest.raises(WrongResult, match="result 0 differs"):
        checking.check((exact.int() + (exact == 3),), (exact,), "float32")


def test_spoiled_memory_has_no_results():
    checking.spoil([((3, 4), torch.float32), ((5,), torch.int64)], "cpu")


def test_an_op_without_a_benchmark_is_named():
    with pytest.raises(ValueError, match="there is no benchmark of 'convolution'"):
        subject("convolution")


def test_a_peer_that_does_not_import_is_missing_and_tried_once(tmp_path, monkeypatch):
    (tmp_path / "broken_peer.py").write_text("raise ImportError('wrong ABI')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="ImportError: wrong ABI"):
            optional("broken_peer")
        (tmp_path / "broken_peer.py").write_text("raise SystemExit('imported again')\n")
