"""Commands on odd terminals and streams: ASCII encodings, closed and full outputs, any COLUMNS, bad paths and sizes."""

import io
import os
import subprocess
import sys

import pytest

from tilewright.base import streams
from tilewright.tools import cli, console

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
 .reg .b64 %rd<3>;
 .reg .b32 %r<2>;
 ld.param.u64 %rd1, [p];
 mov.u32 %r1, 7;
 st.global.u32 [%rd1], %r1;
 ret;
}
"""
LAYOUT = ("layout", "(2,2):(2,1)")
EMULATE = ("emulate", "k.ptx", "--arg", "i32[4]")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "two.py").write_text("print('é → ✓')\n")
    return tmp_path


def tilewright(place, *arguments, redirect="", **environment):
    """Run by a shell, so that streams can be closed."""
    command = [sys.executable, "-c", "from tilewright.tools.cli import main; main()", *arguments]
    shell = f'"$@" {redirect}'
    env = {**os.environ, **environment}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell, "bash", *command], capture_output=True, check=False, cwd=place, env=env,
        timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(("encoding", "most"), [("ascii", None), ("cp1252", 4)])
def test_text_is_ascii_where_the_terminal_has_no_more(place, encoding, most):
    environment = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": encoding, "COLUMNS": "100"}
    commands = (
        (*LAYOUT, "--svg", "é.svg"), EMULATE, ("doctor",), ("run", "two.py"), ("passes",), ("--help",),
        ("layout", "S<1,1,1> o 0 o (4,4):(4,1)", "--svg", "a.svg"),
    )  # fmt: skip
    for arguments in commands[:most]:
        done = tilewright(place, *arguments, **environment)
        assert done.returncode == 0, (arguments, done.stderr)
        assert b"Traceback" not in done.stderr
        text = done.stdout.decode(encoding)
        if encoding == "ascii":
            assert text.isascii() and text
    assert (place / "é.svg").is_file()


def test_what_stands_for_other_characters():
    for text, expect in (
        ("é", "\\xe9"),
        ("a → b", "a -> b"),
        ("✓ ✗ ×2", "+ x x2"),
        ("…", "..."),
        ("\udce9", "\\udce9"),
    ):
        assert text.encode("ascii", streams.HANDLER).decode() == expect
    assert "x\udce9".encode("utf-8", streams.HANDLER) == b"x\\udce9"


@pytest.mark.parametrize("arguments", [LAYOUT, ("doctor",), EMULATE], ids=str)
def test_closed_full_and_broken_outputs(place, arguments):
    done = tilewright(place, *arguments, redirect=">&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = tilewright(place, *arguments, redirect=">/dev/full")
    assert (done.returncode, done.stderr) == (1, b"the output cannot be written or read: No space left on device\n")
    done = tilewright(place, *arguments, redirect="| head -1")
    assert done.stdout.count(b"\n") == 1 and b"rror" not in done.stderr


def test_errors_without_a_stream_for_them(place):
    done = tilewright(place, "layout", "(2,x", redirect="2>&-")
    assert (done.returncode, done.stdout) == (1, b"")
    done = tilewright(place, "layout", "(2,é", PYTHONIOENCODING="ascii")
    assert done.returncode == 1 and b"(2,\\xe9" in done.stderr
    done = tilewright(place, *LAYOUT, redirect=">&- 2>&-")
    assert done.returncode == 0


@pytest.mark.parametrize("columns", ["0", "1", "99999999"])
def test_any_width(place, columns):
    for arguments, words in (
        (("doctor",), b"Python"),
        (EMULATE, b"1 of 4"),
        (("--help",), b"Usage"),
        (("passes",), b"loops"),
    ):
        done = tilewright(place, *arguments, COLUMNS=columns, TERM="dumb", NO_COLOR="1")
        assert done.returncode == 0, done.stderr
        assert words in done.stdout and b"\x1b" not in done.stdout
        assert max(map(len, done.stdout.decode().splitlines())) < 1200


def test_the_width_of_the_console(monkeypatch):
    for columns, width in (
        ("0", 80),
        ("1", 40),
        ("39", 40),
        ("40", 40),
        ("120", 120),
        ("1000", 1000),
        ("99999999", 1000),
    ):
        monkeypatch.setenv("COLUMNS", columns)
        assert console.console(file=io.StringIO()).width == width


def test_colours(monkeypatch):
    assert not console.in_colour()  # pytest's output is no terminal
    monkeypatch.setattr(sys, "stdout", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})())
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert console.in_colour()
    monkeypatch.setenv("TERM", "dumb")
    assert not console.in_colour()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not console.in_colour()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("emulate", "k.ptx", "--arg", "f32[99999999999]"), "f32[99999999999] takes 399,999,999,996 bytes"),
        (("emulate", "k.ptx", "--arg", "f32[99999999,99999999]"), "takes 39,999,999,200,000,004 bytes"),
        (("emulate", "k.ptx", "--arg", f"f32[{'9' * 5000}]"), "is not an extent"),
        ((*EMULATE, "--grid", "9" * 5000), "is not a size"),
        ((*EMULATE, "--grid", "²"), "is not a size"),
        ((*EMULATE, "--grid", "99999999999"), "the grid is too large"),
        ((*EMULATE, "--block", "99999999999"), "threads is too large"),
        ((*EMULATE, "--smem", "999999999999"), "too much shared memory"),
        ((*EMULATE, "-o", "k.ptx"), "k.ptx cannot be written or read: File exists"),
        (("emulate", ".", "--arg", "i32[4]"), "cannot be read as PTX"),
        (("emulate", "nowhere.ptx"), "cannot be read as PTX"),
        (("emulate", "k.ptx", "--arg", "@."), "cannot be read as a NumPy array"),
        ((*LAYOUT, "--bits=99999999999", "--svg", "a.svg"), "an element has 1 to 1024 bits"),
        ((*LAYOUT, "--bits=0"), "an element has 1 to 1024 bits"),
        ((*LAYOUT, "--svg", "."), ". cannot be written or read: Is a directory"),
        ((*LAYOUT, "--svg", "nowhere/a.svg"), "nowhere/a.svg cannot be written or read: No such file or directory"),
        ((*LAYOUT, "--svg", "k.ptx/a.svg"), "k.ptx/a.svg cannot be written or read: Not a directory"),
        ((*LAYOUT, "--tiler", "99999999,99999999"), "the tile is too large to draw"),
        ((*LAYOUT, "--swizzle", "3,4,99999999999"), "numbers of at most 1024 bits"),
        (("layout", "9" * 5000), "a number of more than 1000 digits"),
        (("layout", "(" * 3000 + ")" * 3000), "brackets nest at most 64 deep"),
        (("layout", "size(" * 100 + "4" + ")" * 100), "brackets nest at most 64 deep"),
        (("layout", "1099511627776:1", "--svg", "a.svg"), "a picture of 1099511627776 values"),
        (("run", "."), "there is no file ."),
        (("compile", ".:f"), ". is a folder"),
        (("compile", "nowhere.py:f"), "there is no file nowhere.py"),
        (("passes", "--load", "."), ". is a folder"),
        (("demo", "--target", "x"), "unknown target 'x'"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_sizes_and_paths(place, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "argv", ["tilewright", *arguments])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 1
    shown = capsys.readouterr().err
    assert message in shown.splitlines()[0] and "Traceback" not in shown


def test_too_large_to_print_says_so(place):
    done = tilewright(place, "layout", "(1099511627776,4):(4,1)")
    assert done.returncode == 0 and b"too many to print or draw" in done.stdout


def test_aot_config(place):
    module = [sys.executable, "-m", "tilewright.cute.export.aot_config"]

    def run(tail):
        return subprocess.run(
            ["bash", "-c", f'"$@" {tail}', "bash", *module], capture_output=True, text=True, check=False, cwd=place
        )

    (place / "lib").write_text("")
    for tail, message in (
        ("--includedir >/dev/full", "the output cannot be written or read: No space left on device"),
        ("--wheel k.ptx", "k.ptx/cu12/include cannot be written or read: Not a directory"),
    ):
        done = run(tail)
        assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
    assert run("--includedir >&-").returncode == 0
