"""Facts about the package that users rely on: what it pulls in, and that one command finds everything it needs."""

import re
import subprocess
import sys
import tomllib
import zipfile
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


def test_continuous_integration_runs_targets_of_make_only():
    script = (ROOT / ".ci" / "run").read_text()
    assert "exec make check test docs\n" in script
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_a_wheel_holds_every_file_of_the_package(tmp_path):
    """Also those that are no Python: headers, C sources, LLVM IR."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    kept = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
    assert packed == kept
    assert "tilewright/targets/host/llvm/launch.ll" in packed


def test_contributing_names_the_folders_of_tests_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"^\| `(tests/\w+)` \|", text, re.MULTILINE)
    there = {f"tests/{path.parent.name}" for path in (ROOT / "tests").glob("*/*.py")}
    assert set(named) == there
    assert len(named) == len(there)
