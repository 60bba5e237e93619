"""Where the tools come from, and what is said when one is missing."""

import subprocess

import pytest

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.targets.nvidia import doctor
from tilewright.targets.nvidia.toolkit import jitlink, toolchain
from tilewright.targets.nvidia.toolkit.assemble import assemble


@pytest.fixture
def bare(monkeypatch):
    """A machine with no packages and nothing on PATH."""
    monkeypatch.setattr(toolchain, "_package_roots", lambda: iter(()))
    monkeypatch.setattr(toolchain, "_found", {})
    monkeypatch.setenv("PATH", "/nonexistent")
    with settings.scope(toolkit=""):
        yield


@pytest.mark.parametrize("name", toolchain.TOOLS)
def test_the_packages_bring_every_tool(name):
    with settings.scope(toolkit=""):
        tool = toolchain.find(name)
    assert (tool.origin, tool.name) == ("package", name)
    assert tool.path.is_file() and tool.path.is_relative_to(tool.root)


def test_the_users_toolkit_comes_first(tmp_path):
    mine = tmp_path / "bin" / "ptxas"
    mine.parent.mkdir()
    mine.touch()
    for version in (9, 12, 13):
        library = tmp_path / "lib64" / f"libnvJitLink.so.{version}"
        library.parent.mkdir(exist_ok=True)
        library.touch()
    with settings.scope(toolkit=str(tmp_path)):
        assert toolchain.find("ptxas") == toolchain.Tool("ptxas", mine, tmp_path, "toolkit")
        assert toolchain.find("nvJitLink").path.name == "libnvJitLink.so.13"
        assert toolchain.find("nvdisasm").origin == "package"


def test_a_toolkit_that_is_not_there_leaves_the_packages(tmp_path):
    with settings.scope(toolkit=str(tmp_path / "none")):
        assert toolchain.find("ptxas").origin == "package"
        row = next(row for row in doctor.rows() if row.name == "CUDA toolkit")
    assert row.ok is False and "no such folder" in row.value and "CUDA_TOOLKIT_PATH" in row.remedy


def test_a_tool_that_goes_away_is_looked_for_again(tmp_path):
    mine = tmp_path / "bin" / "ptxas"
    mine.parent.mkdir()
    mine.touch()
    with settings.scope(toolkit=str(tmp_path)):
        assert toolchain.find("ptxas").path == mine
        mine.unlink()
        assert toolchain.find("ptxas").origin == "package"


def test_path_is_the_last_place(bare, monkeypatch, tmp_path):
    program = tmp_path / "cuda" / "bin" / "ptxas"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    device = tmp_path / "cuda" / "nvvm" / "libdevice" / "libdevice.10.bc"
    device.parent.mkdir(parents=True)
    device.touch()
    monkeypatch.setenv("PATH", str(program.parent))
    assert (toolchain.find("ptxas").path, toolchain.find("ptxas").origin) == (program, "PATH")
    assert toolchain.find("libdevice").path == device


@pytest.mark.parametrize("name", toolchain.TOOLS)
def test_a_missing_tool_says_what_brings_it(name, bare):
    assert toolchain.locate(name) is None
    with pytest.raises(CompileError, match=f"{name} was not found") as error:
        toolchain.find(name)
    assert f"pip install {toolchain.TOOLS[name].package}" in error.value.hint
    assert "CUDA_TOOLKIT_PATH" in error.value.hint


def test_assembling_without_tools(bare):
    with pytest.raises(CompileError, match="nvJitLink was not found"):
        assemble(".version 8.0\n", "sm_90a")
    with pytest.raises(CompileError, match="ptxas was not found"):
        assemble(".version 8.0\n", "sm_90a", use_ptxas=True)


def test_versions():
    assert toolchain.tool_version(toolchain.find("ptxas")) >= (13, 0)
    assert jitlink.version(toolchain.find("nvJitLink").path) >= (13, 0)


def test_a_library_that_does_not_load(tmp_path):
    broken = tmp_path / "libnvJitLink.so.13"
    broken.write_bytes(b"no library")
    with pytest.raises(CompileError, match="cannot load nvJitLink"):
        jitlink.version(broken)


def test_the_doctor_reports_every_part():
    rows = {row.name: row for row in doctor.rows()}
    assert {"Python", "MLIR", "LLVM", "tvm-ffi", "NumPy", *toolchain.TOOLS, "torch"} <= set(rows)
    assert "driver" in rows
    assert [row for row in rows.values() if row.ok is False and not row.remedy] == []
    assert rows["ptxas"].ok and "package" in rows["ptxas"].value


def test_the_doctor_on_a_bare_machine(bare):
    rows = {row.name: row for row in doctor.rows()}
    for name in toolchain.TOOLS:
        assert (rows[name].value, rows[name].ok) == ("missing", False)
        assert "pip install" in rows[name].remedy


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n", ("2.13.0+cpu", "")),
        ("__version__ = '2.11.0'\ncuda: Optional[str] = '13.0'\n", ("2.11.0", "13.0")),
        ('__version__ = "2.9"\ncuda = "12.8"\n', ("2.9", "12.8")),
        ("", ("unknown version", "")),
    ],
)
def test_what_torch_was_built_for(text, wanted, tmp_path):
    (tmp_path / "version.py").write_text(text)
    assert doctor.torch_build(tmp_path) == wanted
    assert doctor.torch_build(tmp_path / "none") == ("unknown version", "")


@pytest.mark.parametrize(
    ("listed", "arch", "wanted"),
    [
        ("sm_80 sm_90", "sm_90a", True),
        ("sm_80", "sm_86", True),  # machine code of the same major version
        ("sm_86", "sm_80", False),
        ("sm_80", "sm_90a", False),
        ("sm_80 compute_80", "sm_90a", True),  # PTX
        ("sm_90 compute_90a", "sm_100a", False),  # PTX for one architecture
        ("sm_100a", "sm_103a", False),
        ("sm_75 sm_120", "sm_120", True),
        ("gfx90a", "sm_90a", False),
        ("", "sm_90a", False),
    ],
)
def test_whether_torch_runs_on_a_device(listed, arch, wanted):
    assert doctor.runs_on(listed.split(), arch) is wanted


def test_a_torch_that_has_no_code_for_the_device(monkeypatch):
    done = subprocess.CompletedProcess([], 0, "sm_75 sm_80\n", "")
    monkeypatch.setattr(toolchain, "run_tool", lambda command, seconds: done)
    row = doctor._torch_for("2.13.0, built for CUDA 13.0", ["sm_80", "sm_90a"])
    assert row.ok is False and row.remedy == "install a build of torch for this GPU"
    assert row.value == "2.13.0, built for CUDA 13.0, without code for sm_90a: it has sm_75 sm_80"
    assert doctor._torch_for("2.13.0", ["sm_80"]).ok is True
    assert doctor._torch_for("2.13.0", []).ok is True
