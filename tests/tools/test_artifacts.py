"""File names of written stages: never the same for two compilations."""

import pytest

from tilewright.targets.target import back_end
from tilewright.tools.artifacts import RECORD, ArtifactFolder

EXTENSIONS = {stage.name: stage.extension for stage in back_end("nvidia").stages}


def write(folder, stage, content, made_from, function="add", arch="sm_90a"):
    return ArtifactFolder(folder, EXTENSIONS).write(function, arch, {stage: content}, made_from)[0]


def test_plain_name(tmp_path):
    path = write(tmp_path / "out", "ptx", "text", "k.py:add f32[4] O3")
    assert path == tmp_path / "out" / "add.sm_90a.ptx"
    assert path.read_text() == "text"


def test_bytes(tmp_path):
    path = write(tmp_path, "cubin", b"\x7fELF", "x")
    assert path.read_bytes() == b"\x7fELF"


def test_same_compilation_overwrites_its_own_file(tmp_path):
    for text in ("one", "two"):
        path = write(tmp_path, "ptx", text, "k.py:add")
    assert path.name == "add.sm_90a.ptx"
    assert path.read_text() == "two"
    assert len(list(tmp_path.glob("*.ptx"))) == 1


@pytest.mark.parametrize("other", ["k.py:add O0", "other.py:add", "k.py:add f16[4]"])
def test_other_compilations_keep_apart(tmp_path, other):
    first = write(tmp_path, "ptx", "one", "k.py:add")
    second = write(tmp_path, "ptx", "two", other)
    again = write(tmp_path, "ptx", "three", other)
    assert first.read_text() == "one"
    assert again == second != first
    assert second.read_text() == "three"
    assert second.name.startswith("add.sm_90a.") and second.suffix == ".ptx"


def test_many_compilations_never_share_a_file(tmp_path):
    written = {write(tmp_path, "ptx", str(i), f"options {i}"): str(i) for i in range(50)}
    assert len(written) == 50
    assert all(path.read_text() == text for path, text in written.items())


def test_file_of_unknown_origin_is_not_overwritten(tmp_path):
    (tmp_path / "add.sm_90a.ptx").write_text("mine")
    path = write(tmp_path, "ptx", "new", "k.py:add")
    assert (tmp_path / "add.sm_90a.ptx").read_text() == "mine"
    assert path.read_text() == "new"


@pytest.mark.parametrize("damage", ["{", "[1]", ""])
def test_damaged_record_loses_no_file(tmp_path, damage):
    write(tmp_path, "ptx", "one", "k.py:add")
    (tmp_path / RECORD).write_text(damage)
    write(tmp_path, "ptx", "two", "other")
    assert (tmp_path / "add.sm_90a.ptx").read_text() == "one"


def test_every_stage_has_its_own_extension():
    assert list(EXTENSIONS) == ["python", "cute", "nvvm", "llvm", "ptx", "cubin", "sass"]
    assert len(set(EXTENSIONS.values())) == len(EXTENSIONS)


def test_stages_of_one_compilation_share_a_stem(tmp_path):
    write(tmp_path, "ptx", "one", "k.py:add")
    stages = {"ptx": "two", "sass": "two"}
    files = ArtifactFolder(tmp_path, EXTENSIONS).write("add", "sm_90a", stages, "other")
    assert len({file.name.rpartition(".")[0] for file in files}) == 1
    assert not (tmp_path / "add.sm_90a.sass").exists()
