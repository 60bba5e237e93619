"""The Makefile's targets, and making the environment where Python is incomplete."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("setup_venv", ROOT / "scripts" / "setup_venv.py")
setup_venv = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(setup_venv)

TARGETS = ("setup", "demo", "test", "test-all", "check", "bench", "clean")


def make(*arguments):
    return subprocess.run(
        ["make", "--no-print-directory", "PYTHON=python3", *arguments], cwd=ROOT, capture_output=True, text=True
    )


def test_help_lists_the_targets():
    listed = [line.split()[0] for line in make("help").stdout.splitlines()]
    assert set(TARGETS) <= set(listed)


@pytest.mark.parametrize("target", [target for target in TARGETS if target not in ("setup", "clean")])
def test_every_target_sets_up_first(target, tmp_path):
    """With an environment that is not there, the first command of each target makes it."""
    commands = make("-n", f"VENV={tmp_path / 'none'}", target).stdout.splitlines()
    assert commands[0].startswith("python3 scripts/setup_venv.py")
    assert len(commands) > 1


def test_setup_is_keyed_on_what_it_depends_on():
    stamp = re.search(r"setup-\d+\.stamp", make("-n", "-B", "setup").stdout)
    assert stamp is not None


def test_python_that_is_too_old(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "version_info", (3, 10, 2))
    with pytest.raises(SystemExit, match=r"Python 3\.11 or newer is needed"):
        setup_venv.main([str(tmp_path / "venv"), str(tmp_path / "stamp")])
    assert not (tmp_path / "venv").exists()


def test_without_ensurepip_the_other_ways_are_tried(monkeypatch, tmp_path):
    monkeypatch.setattr(setup_venv.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(setup_venv.shutil, "which", lambda name: "/usr/bin/uv")
    assert [name for name, _ in setup_venv.ways(tmp_path)] == ["uv", "venv without pip"]


def test_message_when_there_is_no_way(monkeypatch, tmp_path):
    monkeypatch.setattr(setup_venv, "ways", lambda venv: [("nothing", ["false"])])
    with pytest.raises(SystemExit, match="apt install python3-venv"):
        setup_venv.create(tmp_path / "venv", tmp_path / "venv" / "bin" / "python")


def test_missing_torch_does_not_break_setup(monkeypatch, tmp_path, capsys):
    installed = []

    def pip(python, *arguments, check):
        installed.append(arguments[-1])
        return arguments[-1] != "requirements-torch.txt"

    monkeypatch.setattr(setup_venv, "pip", pip)
    monkeypatch.setattr(setup_venv, "has_pip", lambda python: True)
    stamp = tmp_path / "setup-1.stamp"
    (tmp_path / "setup-0.stamp").touch()
    assert setup_venv.main([str(tmp_path), str(stamp)]) == 0
    assert installed == ["requirements-dev.txt", ".", "requirements-torch.txt"]
    assert "tests that need torch" in capsys.readouterr().err.replace("\n", " ")
    assert list(tmp_path.glob("*.stamp")) == [stamp]


def test_the_lock_of_uv_has_what_the_project_needs():
    """Every dependency of pyproject.toml, in a version that it allows, from the public index alone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    versions = {package["name"]: package.get("version") for package in locked}
    groups = [project["project"]["dependencies"], *project["project"]["optional-dependencies"].values(),
              *project["dependency-groups"].values()]  # fmt: skip
    for text in (text for group in groups for text in group):
        wanted = Requirement(text)
        assert wanted.specifier.contains(versions[canonicalize_name(wanted.name)]), text
    sources = {str(package["source"]) for package in locked}
    assert sources == {"{'editable': '.'}", "{'registry': 'https://pypi.org/simple'}"}
