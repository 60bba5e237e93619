"""`tilewright compile --view`, `--diff-opt`, `--report`, `--pass-changes`, and what passes change."""

from __future__ import annotations

import re

import pytest

import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright import ArgumentError
from tilewright.passes import PassChanges
from tilewright.tools.commands import compile as command

SOURCE = """
import tilewright.cute as cute


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    b[thread] = a[thread] + b[thread]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor):
    add_kernel(a, b).launch(grid=(1, 1, 1), block=(64, 1, 1))
"""


@pytest.fixture
def shown(tmp_path, capsys):
    """What the command prints; it writes no files but those that --emit names."""
    (tmp_path / "kernels.py").write_text(SOURCE)
    (tmp_path / "out").mkdir()

    def run(**options):
        place = f"{tmp_path / 'kernels.py'}:add"
        command.command(place, arg=["f32[?]", "f32[?]"], arch="sm_90a", out=tmp_path / "out", **options)
        return capsys.readouterr().out

    run.files = lambda: sorted(path.name for path in (tmp_path / "out").iterdir())
    return run


def test_views(shown):
    text = shown(view="histogram,memory")
    assert "---- histogram of add_kernel, sm_90a ----" in text and re.search(r"^ +2 LDG$", text, re.MULTILINE)
    assert text.count("4 bytes a thread, 4 apart: 4 sectors, 100% used") == 3
    assert shown.files() == []


def test_levels(shown):
    text = shown(diff_opt="0,3")
    rows = dict(re.findall(r"^([a-z ]+?) {2,}(\d+ +\d+)$", text, re.MULTILINE))
    slow, fast = map(int, rows["instructions"].split())
    assert slow > fast > 5 and "--- O0" in text and "+++ O3" in text
    assert rows["spill bytes"].split() == ["0", "0"]


def test_report_and_emit(shown):
    text = shown(report=True, emit="ptx")
    assert "registers" in text and "remark" in text and any(name.endswith(".ptx") for name in shown.files())


def test_changes_of_passes(shown):
    text = shown(pass_changes=True)
    assert "// ---- cute-to-nvvm ----" in text
    assert re.search(r"^\+ .*llvm\.load .*// kernels\.py:8$", text, re.MULTILINE)
    assert re.search(r'^- .*"cute\.\w+".*// kernels\.py:8$', text, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"view": "pretty"}, "there is no view pretty"), ({"view": ""}, "there is no view named"),
     ({"diff_opt": "0"}, "is not two levels"), ({"diff_opt": "0,4"}, "is not two levels")],
)  # fmt: skip
def test_what_cannot_be_shown(shown, options, message):
    with pytest.raises(ArgumentError, match=message):
        shown(**options)


def test_each_pass_has_the_program_before_and_after_it():
    changes = PassChanges()
    executor = cute.compile(double, *floats(), target="emu", after_pass=changes)
    names = [item.name for item in changes.changes]
    assert names[:2] == ["expand-tiles", "vectorize-loops"] and "cute-to-nvvm" in names
    assert len(names) == len(executor.pass_timings)
    for one, other in zip(changes.changes, changes.changes[1:], strict=False):
        assert one.after == other.before
    first, lowering = changes.changes[0], next(item for item in changes.changes if item.name == "cute-to-nvvm")
    assert not first.changed and str(first).endswith("nothing is changed\n")
    assert "cute.load" in lowering.before and "cute." not in lowering.after.replace("tilewright.", "")
    assert all(re.search(r"// support\.py:\d+$", line) for line in lowering.diff().splitlines() if "llvm.load" in line)
