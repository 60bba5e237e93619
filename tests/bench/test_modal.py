"""Suites on a rented GPU: the notice, the pins, and the whole way with stand-ins for Modal and for the measuring."""

import importlib.util
import io
import json
import sys
import types
from pathlib import Path

import pytest
from rich.console import Console

from tilewright.tools.benching import remote
from tilewright.tools.benching.remote import PINS, Pins
from tilewright.tools.commands import bench

ROOT = Path(__file__).resolve().parents[2]
ROW = {
    "op": "reduce_sum", "backend": "kernel", "shape": [8, 16], "dtype": "float32", "bytes": 544, "p50_us": 2.0,
    "p90_us": 2.5, "gbs": 0.272, "fraction_of_copy": 0.5,
}  # fmt: skip


class Image:
    """Notes what an image is made of."""

    def __init__(self):
        self.steps = []

    def __getattr__(self, step):
        return lambda *args, **options: self.steps.append((step, args, options)) or self


@pytest.fixture
def modal(monkeypatch):
    """A stand-in for the package `modal`: a function's `remote` runs it here."""
    made = types.ModuleType("modal")
    made.Image, made.functions = Image(), []

    class App:
        def __init__(self, name, image):
            self.name, self.image = name, image

        def function(self, **options):
            def wrap(function):
                made.functions.append(options)
                return types.SimpleNamespace(remote=function)

            return wrap

        def local_entrypoint(self):
            return lambda function: function

    made.App = App
    monkeypatch.setitem(sys.modules, "modal", made)
    return made


def load():
    spec = importlib.util.spec_from_file_location("modal_bench", ROOT / "bench" / "modal_bench.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_run_from_the_command_line_to_the_file(modal, monkeypatch, tmp_path, capsys):
    asked = []

    def run_ops(request, suites, out, budget):
        asked.append((request, suites, budget))
        assert out.parent.is_dir()
        return {"machine": {"device": "NVIDIA B200"}, "results": [ROW], "failures": [{**ROW, "error": "no"}]}

    monkeypatch.setattr(bench, "run_ops", run_ops)
    module = load()
    out = tmp_path / "results.json"
    module.main(op="reduce_sum", out=str(out))
    ((request, suites, budget),) = asked
    assert (request.suite, request.op) == ("smoke", "reduce_sum")
    assert suites == Path(PINS.checkout) / "bench" / "suites.yaml"
    assert 0 < budget < PINS.timeout_seconds
    assert json.loads(out.read_text())["results"] == [ROW]
    printed = capsys.readouterr().out
    assert printed.startswith("This rents one B200 from Modal for at most 20 minutes")
    assert "GB/s on NVIDIA B200" in printed and "reduce_sum 8x16 float32 kernel: no" in printed
    assert modal.functions == [{"gpu": "B200", "timeout": 1200}]


def test_the_image_is_made_of_the_pins(modal):
    load()
    steps = {step: (args, options) for step, args, options in modal.Image.steps}
    assert steps["from_registry"] == ((PINS.image,), {"add_python": PINS.python})
    assert steps["pip_install"][0] == (PINS.torch,)
    assert steps["pip_install_from_requirements"][0] == (str(ROOT / "requirements-dev.txt"),)
    assert steps["add_local_dir"][0] == (ROOT, PINS.checkout)


def test_the_notice_comes_before_anything_is_rented():
    stream = io.StringIO()

    def rent(suite, op):
        assert "$12.50 an hour" in stream.getvalue()
        raise InterruptedError

    with pytest.raises(InterruptedError):
        remote.main(rent, "smoke", None, Path("unused"), Console(file=stream), Pins(dollars_an_hour=12.5))
    assert "at most about $4.17" in remote.notice(Pins(dollars_an_hour=12.5))


def test_without_modal_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "modal", None)
    with pytest.raises(SystemExit, match="Modal's client is not installed: pip install modal"):
        load()
