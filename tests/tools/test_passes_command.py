"""What `tilewright passes` prints."""

import pytest

from tilewright.base.errors import PassError
from tilewright.passes import pipeline
from tilewright.tools.commands.passes import command, description


def test_passes_and_pipeline(capsys):
    command(arch="sm_80")
    text = capsys.readouterr().out
    assert "\ncute-to-nvvm\n" in text and "\nplace-shared-memory\n" in text and "\ncheck-bounds\n" in text
    assert "requires: place-shared-memory" in text
    last = text.rstrip().splitlines()[-1]
    assert last.startswith("builtin.module(") and ",cute-to-nvvm{cubin-chip=sm_80" in last
    assert str(pipeline.PassManager.parse(last)) == last


def test_one_pass_is_described_whole(capsys):
    command("place-shared-memory")
    text = capsys.readouterr().out
    assert text.startswith("place-shared-memory\n")
    assert "before:" in text and "after:" in text


def test_unknown_pass():
    with pytest.raises(PassError, match="unknown pass 'place-share-memory'") as error:
        command("place-share-memory")
    assert "cute-to-nvvm" in str(error.value)


def test_passes_of_a_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pipeline, "REGISTRY", dict(pipeline.REGISTRY))
    path = tmp_path / "mine.py"
    path.write_text(
        "import tilewright\n"
        "@tilewright.register_pass\n"
        "class Mine(tilewright.Pass):\n"
        "    '''Do nothing [at all].'''\n"
        "    name = 'my-own-pass'\n"
        "    options = {'most': 3}\n"
    )
    command(load=[path])
    assert "my-own-pass\n    Do nothing [at all].\n    options: most=3\n" in capsys.readouterr().out


def test_a_pass_whose_module_is_gone():
    made = type("Typed", (pipeline.Pass,), {"name": "typed-in", "__module__": "nowhere", "__doc__": "Counts nothing."})
    assert description(made) == "Counts nothing."
