"""The logger: what it says at each level, and where the environment sends it."""

from __future__ import annotations

import logging
import re

import pytest

import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright import CompileError
from tilewright.compat.logger import log
from tilewright.compiler import logs


@pytest.fixture(autouse=True)
def as_before():
    """The logger is the process's."""
    level, handlers = logs.LOGGER.level, list(logs.LOGGER.handlers)
    yield
    logs.LOGGER.setLevel(level)
    logs.LOGGER.handlers[:] = handlers
    logs._console.cache_clear()
    logs._file.cache_clear()


def compile_one():
    return cute.compile(double, *floats(), target="emu", options="--opt-level 1 --gpu-arch sm_90a")


COMPILED = r"compiled double for sm_90a in \d+\.\d ms"


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (logging.WARNING, []),
        (logging.INFO, [COMPILED]),
        (logging.DEBUG, [COMPILED, r"stages of double: python .* ms, cute .* ms, .*ptx \d", r"passes of .*cute-to-nvvm",
                         r"options of double: --opt-level 1 --gpu-arch sm_90a"]),
    ],
)  # fmt: skip
def test_what_each_level_says(caplog, level, words):
    with caplog.at_level(level, logger="tilewright"):
        compile_one()
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == len(words)
    assert all(re.search(word, message) for word, message in zip(words, messages, strict=True))


@pytest.mark.parametrize(
    ("level", "count"), [(None, 1), ("0", 0), ("1", 4), ("10", 4), ("20", 1), ("30", 0), ("debug", 4)]
)
def test_a_file_that_the_environment_names(monkeypatch, tmp_path, level, count):
    file = tmp_path / "log.txt"
    monkeypatch.setenv("CUTE_DSL_LOG_TO_FILE", str(file))
    if level is not None:
        monkeypatch.setenv("CUTE_DSL_LOG_LEVEL", level)
    for _ in range(2):
        compile_one()
    lines = file.read_text().splitlines()
    assert len(lines) == 2 * count
    assert all(re.match(r"\d{4}-.* tilewright (INFO|DEBUG): ", line) for line in lines)


def test_the_console(monkeypatch, capfd):
    monkeypatch.setenv("TILEWRIGHT_LOG_TO_CONSOLE", "1")
    compile_one()
    assert re.search(f"tilewright INFO: {COMPILED}", capfd.readouterr().err)


def test_a_file_that_cannot_be_written(monkeypatch, tmp_path):
    monkeypatch.setenv("CUTLASS_LOG_TO_FILE", str(tmp_path / "none" / "log.txt"))
    with pytest.raises(CompileError, match=r"cannot write the log to .*log.txt': No such file"):
        compile_one()
    monkeypatch.setenv("CUTLASS_LOG_LEVEL", "loud")
    with pytest.raises(CompileError, match="CUTLASS_LOG_LEVEL='loud' is not valid"):
        compile_one()


def test_levels_from_python(caplog):
    log().setLevel(logging.DEBUG)
    compile_one()
    assert any("stages of double" in record.getMessage() for record in caplog.records)
