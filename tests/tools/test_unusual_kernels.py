"""Kernels of unusual kinds through the explorer, the profile of lines and the debugger: right lines, clear errors."""

import io
import linecache

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.tools.explorer.cases import racing
from tilewright import ArgumentError, dist, emulate
from tilewright.base.escaped_names import from_cubin, from_hex, from_octal
from tilewright.tools.commands import explore, profile_lines
from tilewright.tools.debugger.plan import Program
from tilewright.tools.debugger.session import Session
from tilewright.tools.debugger.shell import Shell
from tilewright.tools.explorer.collect import collected
from tilewright.tools.explorer.page import data_of
from tilewright.tools.function_runs import run_executor
from tilewright.tools.profiling.line_profile import line_profiles
from tilewright.tools.profiling.line_tables import table

ODD = (
    "import tilewright.cute as cute\r\n"
    "\x0c\r\n"
    "@cute.kernel\r\n"
    "def odd_kernel(x: cute.Tensor):\r\n"
    "\tthread, _, _ = cute.arch.thread_idx()  # größe \u2028 日本語 😀\r\n"
    "\tnäme = x[thread]\r\n"
    "\tif näme > 0.0:\r\n"
    f"\t\tx[thread] = näme * 2.0  # {'long ' * 4000}\r\n"
    "@cute.jit\r\n"
    "def odd(x: cute.Tensor):\r\n"
    "\todd_kernel(x).launch(grid=1, block=32)\r\n"
    "@cute.jit\r\n"
    "def nothing(x: cute.Tensor):\r\n"
    "\tpass\r\n"
    "@cute.jit\r\n"
    "def raising(x: cute.Tensor):\r\n"
    "\traise KeyError('no such shape')\r\n"
)
"""Tabs, CRLF, a form feed, a line separator within a line, letters beyond ASCII, a very long line."""


@pytest.fixture
def odd(tmp_path):
    """The file, whose name and folder are unusual too."""
    (tmp_path / "kernels of Ü").mkdir()
    file = tmp_path / "kernels of Ü" / "ödd_カーネル.py"
    file.write_bytes(ODD.encode())
    return file


def debugged(place, *words, commands=()):
    """What the shell of the debugger prints for each command."""
    session = Session(Program(str(place), words, "--opt-level 0"))
    try:
        session.start()
        said = []
        for command in commands:
            output = io.StringIO()
            Shell(session, stdout=output).onecmd(command)
            said.append(output.getvalue())
        return said
    finally:
        session.close()


@pytest.mark.parametrize("name", ["ä.py", "/x/kernels/ödd_カーネル.py", "/plain/name.py", "/303/274/x.py", "/é/é.py"])
def test_names_of_files_are_read_back(name):
    octal = "".join(chr(b) if b < 128 else f"\\{b:03o}" for b in name.encode())
    hexadecimal = "".join(chr(b) if b < 128 else f"\\{b:02X}" for b in name.encode())
    folder, backslash, last = octal.rpartition("\\")
    assert from_octal(octal) == name and from_hex(hexadecimal) == name
    assert from_cubin(f"{folder}/{last}" if backslash else octal) == name


def test_an_odd_file_in_the_explorer(odd, tmp_path):
    explore.command(f"{odd}:odd", arg=["f32[32]=arange"], arch="sm_90a", out=tmp_path / "page.html")
    data = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [file["path"] for file in data["files"]] == [str(odd)]
    lines = data["files"][0]["text"].split("\n")
    for stage in data["kernels"][0]["stages"]:
        if stage["name"] != "python":
            used = {data["places"][number][1] for number in stage["places"] if number >= 0}
            assert {6, 8, 11} <= used, stage["name"]
    assert "x[thread] = näme * 2.0" in lines[8 - 1]
    counts = data["kernels"][0]["counts"]["python"]
    by_line = {data["places"][int(number)][1]: item for number, item in counts.items()}
    assert by_line[6]["sectors"] == 4 and by_line[8]["sectors"] == 4


def test_an_odd_file_in_the_profile_of_lines(odd, capsys):
    profile_lines.run([f"{odd}:odd", "--arg", "f32[32]=arange"])
    said = capsys.readouterr().out
    assert "ödd_カーネル.py:6" in said and "näme = x[thread]" in said
    assert max(map(len, said.splitlines())) < 200


def test_an_odd_file_in_the_debugger(odd):
    first, *_, last = debugged(
        f"{odd}:odd", "f32[32]=arange",
        commands=["break 6", "continue", "print thread", "break 8 if näme > 3", "continue"],
    )  # fmt: skip
    assert f"{odd.name}:6" in first
    assert "thread (4, 0, 0)" in last and "x[thread] = näme * 2.0  # long" in last
    assert max(map(len, last.splitlines())) < 300


def test_a_line_knows_the_variables_of_the_line_before(odd):
    *_, thread, before, after = debugged(
        f"{odd}:odd", "f32[32]=arange",
        commands=["break 6 if thread == 5", "continue", "print thread", "print näme", "step"],
    )  # fmt: skip
    assert thread.strip() == "thread = 5"
    assert "no variable näme" in before and ":7 odd_kernel" in after


def test_a_condition_that_cannot_be_evaluated_stops_and_says_why(odd):
    *_, told, after = debugged(
        f"{odd}:odd", "f32[32]=arange", commands=["break 8 if nobody > 3", "continue", "continue"]
    )  # fmt: skip
    assert "breakpoint 1: there is no number nobody here" in told
    assert "the program has ended" in after


def test_a_function_that_raises(odd):
    with pytest.raises(ArgumentError, match="raised KeyError: 'no such shape'") as raised:
        debugged(f"{odd}:raising", "f32[32]")
    assert f"{odd}:17" in str(raised.value)


def test_a_function_without_kernels(odd, tmp_path):
    with pytest.raises(ArgumentError, match="nothing launches no kernel, so there is nothing to show"):
        explore.command(f"{odd}:nothing", arg=["f32[32]"], out=tmp_path / "page.html")
    with pytest.raises(ArgumentError, match="nothing launches no kernel, so no line has a cost"):
        profile_lines.run([f"{odd}:nothing", "--arg", "f32[32]"])
    with pytest.raises(ArgumentError, match="the function launches no kernel"):
        debugged(f"{odd}:nothing", "f32[32]")


def test_the_profile_says_what_the_emulator_found():
    (found,) = line_profiles(run_executor(*racing()))
    said = "\n".join(table(found, "cycles", 5))
    assert said.count("The emulator found: cases.py:") >= 1 and "counts are of a run with this mistake" in said


def test_cells_of_a_notebook(tmp_path):
    source = ODD.partition("@cute.jit\r\ndef nothing")[0].translate(dict.fromkeys(map(ord, "\r\x0c\u2028")))
    name = "<ipython-input-3-ab12>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"__name__": "__main__"}
    exec(compile(source, name, "exec"), namespace)
    x = np.arange(32, dtype=np.float32)
    data = collected(run_executor(cute.compile(namespace["odd"], x, target="emu"), [x]))
    assert data["files"][0]["text"] == source
    assert any(item.get("sectors") for item in data["kernels"][0]["counts"]["python"].values())


def reduced(x):
    """A sum over two emulated devices."""
    with emulate.devices(2) as devices:
        placed = [device.array(x) for device in devices]
        for communicator, array in zip(dist.communicators(devices), placed, strict=True):
            communicator.all_reduce(array)


def test_kernels_that_communicate(tmp_path):
    explore.command(f"{__file__}:reduced", arg=["f32[1024]"], out=tmp_path / "page.html")
    data = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    (kernel,) = data["kernels"]
    assert data["missing"] == "" and len(kernel["launches"]) == 2
    assert kernel["counts"]["python"] and not kernel["findings"]


@cute.kernel
def neighbours_kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    own = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(32))
    own[thread] = x[block * 32 + thread]
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    other = cute.make_tensor(cute.arch.map_dsmem_ptr(own.iterator, 1 - block), cute.make_layout(32))
    y[block * 32 + thread] = other[thread]
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.jit
def neighbours(x: cute.Tensor, y: cute.Tensor):
    neighbours_kernel(x, y).launch(grid=2, block=32, cluster=(2, 1, 1))


def test_shared_memory_of_another_block():
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().split("\n")
    line = next(number for number, text in enumerate(lines, 1) if "y[block * 32 + thread] = other" in text)
    stored = next(number for number, text in enumerate(lines, 1) if "own[thread] = x[block" in text)
    *_, element, drawn, watched, back = debugged(
        f"{__file__}:neighbours", "f32[64]=arange", "f32[64]",
        commands=[f"break {line}", "continue", "print other[3]", "print other", "watch other[3]", "rcontinue"],
    )  # fmt: skip
    assert element.strip() == "other[3] = 35"
    assert drawn.splitlines()[2].split() == ["0", *map(str, range(32, 48))]
    assert watched.startswith("watch 2: other[3]")
    assert "watch 2" in back and "-> 35" in back
    assert f":{stored} " in back or f":{stored + 1} " in back
