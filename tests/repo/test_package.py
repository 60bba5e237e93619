"""Facts about the package that users rely on: what it pulls in, and that one command finds everything it needs."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements):
    return {re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0].lower().replace("_", "-") for line in requirements}


def pins(file):
    return [line for line in (ROOT / file).read_text().splitlines() if line and not line.startswith("#")]


def test_nothing_a_user_installs_brings_cuda_torch():
    assert "torch" not in names(PROJECT["dependencies"])
    assert not names(PROJECT["dependencies"]) & {"cupy", "triton", "nvidia-cudnn-cu13", "nvidia-cublas"}
    assert PROJECT["optional-dependencies"]["torch"] == ["torch>=2.11"]


def test_every_development_pin_is_exact():
    lines = pins("requirements-dev.txt") + pins("requirements-torch.txt")
    assert lines
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!-]+", line) for line in lines)


def test_pinned_torch_cannot_be_a_cuda_build():
    assert [line for line in pins("requirements-torch.txt") if line.startswith("torch==")] == ["torch==2.13.0+cpu"]
    assert "torch" not in names(pins("requirements-dev.txt"))


def test_every_dependency_is_pinned():
    assert names(PROJECT["dependencies"]) <= names(pins("requirements-dev.txt"))


def test_continuous_integration_runs_check_and_test_only():
    script = (ROOT / ".ci" / "run").read_text()
    assert "exec make check test\n" in script
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
