"""One case from inputs to rows, on a device whose clock the test sets."""

import pytest

torch = pytest.importorskip("torch")

from tests.bench.fake_gpu import FakeGpu  # noqa: E402
from tilewright.tools.benching import measuring, timing  # noqa: E402
from tilewright.tools.benching.cases import Case  # noqa: E402
from tilewright.tools.benching.measuring import Bench, DeviceLost  # noqa: E402
from tilewright.tools.benching.subjects.subject import Inputs, Subject  # noqa: E402

CASE = Case("double", (4, 100), "float32")
MICROSECONDS = {"kernel": 10.0, "torch": 20.0, "wrong": 1.0, "roof": 8.0}


@pytest.fixture
def gpu(monkeypatch):
    gpu = FakeGpu()
    monkeypatch.setattr(timing, "torch", gpu.module())
    monkeypatch.setattr(measuring, "torch", gpu.module())
    work = gpu.work(MICROSECONDS["roof"])
    monkeypatch.setattr(timing, "copy_functions", lambda bytes_: {"copy": work, "read": gpu.work(16.0)})
    return gpu


def subject(gpu, **changes):
    def timed(name):
        def call(x):
            gpu.now += MICROSECONDS[name]
            return 2 * x

        return call

    given = {
        "inputs": lambda make: (make.normal(*make.case.shape),), "kernel": timed("kernel"), "ref": timed("kernel"),
        "exact": lambda x: 2 * x, "torch": timed("torch"),
    }  # fmt: skip
    return Subject(**{**given, **changes})


def run(gpu, monkeypatch, backends=("kernel", "torch"), **changes):
    monkeypatch.setattr(measuring, "subject", lambda op: subject(gpu, **changes))
    messages = []
    bench = Bench("cuda", 1, 3, messages.append)
    bench.device = "cpu"
    bench.run(0, CASE, backends)
    return messages


def of(kind, messages):
    return [message[kind] for message in messages if kind in message]


def test_rows_have_what_the_file_of_results_promises(gpu, monkeypatch):
    messages = run(gpu, monkeypatch)
    bytes_ = 2 * 4 * 100 * 4
    kernel, peer = of("row", messages)
    assert kernel == {
        "op": "double", "backend": "kernel", "shape": [4, 100], "dtype": "float32", "bytes": bytes_,
        "p50_us": pytest.approx(10.0), "p90_us": pytest.approx(10.0), "gbs": pytest.approx(bytes_ / 10.0 / 1e3),
        "fraction_of_copy": pytest.approx(0.8),
    }  # fmt: skip
    assert peer["backend"] == "torch" and peer["fraction_of_copy"] == pytest.approx(0.4)
    (roof,) = of("roof", messages)
    assert roof["spread"] == pytest.approx(0.0)
    assert roof["gbs"] == {"copy": pytest.approx(bytes_ / 8e3), "read": pytest.approx(bytes_ / 16e3)}
    assert messages[0] == {"begin": 0, "backend": None} and messages[-1] == {"end": 0}


def test_times_of_the_host_are_those_of_series_of_calls(gpu, monkeypatch):
    monkeypatch.setattr(timing.time, "perf_counter", lambda: gpu.now / 1e6)
    monkeypatch.setattr(measuring, "subject", lambda op: subject(gpu))
    messages = []
    bench = Bench("cuda", 1, 3, messages.append, clock="host")
    bench.device = "cpu"
    bench.run(0, Case("double", (4, 100), "float32", (("gradient", True),)), ("kernel", "torch"))
    rows = of("row", messages)
    assert [(row["backend"], row["clock"], row["options"]) for row in rows] == [
        ("kernel", "host", {"gradient": True}), ("torch", "host", {"gradient": True}),
    ]  # fmt: skip
    assert [row["p50_us"] for row in rows] == [pytest.approx(10.0), pytest.approx(20.0)]
    assert not of("roof", messages) and not of("failure", messages) and "gbs" not in rows[0]


def test_recorded_inputs_want_gradients_and_their_operator_is_left_out(gpu):
    given = subject(gpu, operator=lambda: lambda x: x)
    plain, recorded = CASE, Case("double", (4, 100), "float32", (("gradient", True),))
    assert given.backend("torch.ops", plain) is not None and given.backend("torch.ops", recorded) is None
    assert recorded.arguments == {} and recorded.recorded and not plain.recorded


def test_a_wrong_result_is_not_timed_and_the_others_are(gpu, monkeypatch):
    messages = run(gpu, monkeypatch, kernel=lambda x: 2.001 * x)
    (failure,) = of("failure", messages)
    assert failure["backend"] == "kernel" and "result 0: its error has norm 5.00e-04" in failure["error"]
    assert [row["backend"] for row in of("row", messages)] == ["torch"]


def test_a_kernel_that_writes_nothing_is_caught(gpu, monkeypatch):
    def nothing(x):
        return torch.empty_like(x).fill_(float("nan"))

    (failure,) = of("failure", run(gpu, monkeypatch, kernel=nothing))
    assert "norm nan" in failure["error"]


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (lambda x: (2 * x, x), "2 results instead of 1"),
        (lambda x: 2 * x[0], r"result 0 has shape \(100,\) instead of \(4, 100\)"),
    ],
)
def test_results_of_another_form_are_wrong(gpu, monkeypatch, results, words):
    (failure,) = of("failure", run(gpu, monkeypatch, kernel=results))
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(failure["error"])


def test_a_backend_that_raises_leaves_the_others(gpu, monkeypatch):
    def broken(x):
        raise RuntimeError("no such kernel image")

    messages = run(gpu, monkeypatch, torch=broken)
    (failure,) = of("failure", messages)
    assert failure == {
        "op": "double", "backend": "torch", "shape": [4, 100], "dtype": "float32",
        "error": "RuntimeError: no such kernel image",
    }  # fmt: skip
    assert [row["backend"] for row in of("row", messages)] == ["kernel"]


def test_peers_that_are_missing_or_cannot_are_left_out(gpu, monkeypatch):
    def absent(case):
        raise ModuleNotFoundError("No module named 'quack'")

    peers = {"quack": absent, "triton": lambda case: None}
    messages = run(gpu, monkeypatch, ("kernel", "triton", "quack"), peers=peers)
    assert of("missing", messages) == ["quack"]
    assert [row["backend"] for row in of("row", messages)] == ["kernel"] and not of("failure", messages)


def test_a_device_that_does_not_answer_ends_the_process(gpu, monkeypatch):
    def lost():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    measuring.torch.cuda.synchronize = lost
    with pytest.raises(DeviceLost, match="illegal memory access"):
        run(gpu, monkeypatch)


def test_bytes_are_those_of_memory():
    wide = torch.zeros(3, 1).expand(3, 1000)
    assert measuring._bytes([wide, torch.zeros(5, dtype=torch.int64), None, torch.zeros(0, 7)]) == 12 + 40


def test_inputs_are_the_same_in_every_run_and_differ_between_cases():
    first, again = (Inputs(CASE, "cpu").normal(4, 100) for _ in range(2))
    other = Inputs(Case("double", (4, 100), "float32", (("dim", 0),)), "cpu").normal(4, 100)
    assert torch.equal(first, again) and not torch.equal(first, other)
    made = Inputs(Case("double", (1,), "bfloat16"), "cpu")
    assert made.normal(50).dtype == torch.bfloat16 and made.integers(7, 1000).max() == 6
