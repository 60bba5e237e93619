"""`tilewright cache`: what is kept, in words; damaged files; nothing at all."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tests.compiler.cache.programs import compiled, forget
from tilewright.base import settings
from tilewright.base.errors import ArgumentError
from tilewright.tools.cli import app


def output(*words, status=0):
    done = CliRunner().invoke(app, ["cache", *words])
    assert done.exit_code == status, done.output
    return done.output


def test_list_verify_and_clear(cache_dir):
    forget()
    with settings.scope(target="emu", arch="sm_90a"):
        compiled(3)
    assert "scale" in output("ls") and "1 function," in output()
    assert "2 files, 0 damaged" in output("verify")
    next((cache_dir / "v1" / "entries").glob("*/*")).write_bytes(b"x")
    assert "(damaged)" in output("ls")
    assert "2 files, 1 damaged" in output("verify", status=1)
    assert "1 file taken away" in output("clear")
    assert "0 functions" in output("ls")
    forget()


def test_another_word():
    done = CliRunner().invoke(app, ["cache", "burn"])
    assert isinstance(done.exception, ArgumentError)
    assert "there is no `tilewright cache burn`" in str(done.exception)


@pytest.mark.parametrize("way", ["ls", "verify", "clear"])
def test_nothing_is_kept(cache_dir, way):
    assert output(way)
    assert not cache_dir.exists()
