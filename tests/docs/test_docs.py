"""Every Python block of the README and of docs/ runs, and prints what the text says."""

import sys
from pathlib import Path

import pytest

from tests.docs.blocks import Document, find_blocks, matches
from tilewright.base import settings

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if path.is_file())
WITH_CODE = [path for path in FILES if any(block.runs for block in find_blocks(path.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("path", WITH_CODE, ids=[str(path.relative_to(ROOT)) for path in WITH_CODE])
def test_code_of_the_docs_runs(path, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problems = list(Document(path).run(lambda: capfd.readouterr().out))
    assert not problems, "\n".join(problems)


def write(tmp_path, text):
    path = tmp_path / "sample.md"
    path.write_text(text)
    return path


def run(tmp_path, capfd, text):
    return list(Document(write(tmp_path, text)).run(lambda: capfd.readouterr().out))


def test_blocks_share_a_namespace_and_output_is_compared(tmp_path, capfd):
    text = "```python\nx = 6\n```\nprose\n```python\nprint(x * 7)\n```\n```text output\n42\n```\n"
    assert run(tmp_path, capfd, text) == []
    assert "sample.md:9: the block above prints\n42" in run(tmp_path, capfd, text.replace("\n42\n", "\n43\n"))[0]


def test_unmarked_text_is_not_compared(tmp_path, capfd):
    assert run(tmp_path, capfd, "```python\nprint(1)\n```\n```text\n2\n```\n") == []


def test_skipped_blocks_do_not_run(tmp_path, capfd):
    assert run(tmp_path, capfd, "```python skip\n1 / 0\n```\n") == []


def test_errors_are_compared_too(tmp_path, capfd):
    text = "```python error=ZeroDivisionError\n1 / 0\n```\n```text output\nZeroDivisionError: division ...\n```\n"
    assert run(tmp_path, capfd, text) == []
    with pytest.raises(AssertionError, match="must raise ValueError and does not"):
        run(tmp_path, capfd, "```python error=ValueError\npass\n```\n")
    with pytest.raises(ZeroDivisionError):
        run(tmp_path, capfd, "```python error=KeyError\n1 / 0\n```\n")


def test_functions_have_their_source_and_line(tmp_path, capfd):
    text = "# Title\n\n```python\ndef f():\n    return 1\n```\n\n```python\nimport inspect\n"
    text += "print(inspect.getsource(f), f.__code__.co_firstlineno)\n```\n"
    text += "```text output\ndef f():\n    return 1\n 4\n```\n"
    assert run(tmp_path, capfd, text) == []


def test_a_block_that_is_a_file_can_be_imported_by_those_after_it(tmp_path, capfd):
    text = "```python file=src/made_up/part.py\nx = 6\n```\n"
    text += "```python\nfrom made_up.part import x as y\nprint(y * 7)\n```\n```text output\n42\n```\n"
    text += "```python error=NameError\nx\n```\n"
    assert run(tmp_path, capfd, text) == []
    assert "made_up.part" not in sys.modules


def test_a_fence_left_open_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="line 1: the block is never closed"):
        find_blocks("```python\nx = 1\n")


@pytest.mark.parametrize(
    ("expected", "actual", "result"),
    [("a...c", "abc", True), ("a\nb", "a  \nb\n", True), ("a", "ab", False), ("1.5 ms ...", "1.5 ms (x)", True)],
)
def test_matching(expected, actual, result):
    assert matches(expected, actual) is result


def test_every_setting_is_documented():
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    missing = [name for setting in settings.TABLE.values() for name in setting.variables if f"`{name}`" not in text]
    assert not missing
