"""PTX to cubin by both tools: options, refusals in the documented form, links, and no traces left behind."""

import os
import stat
import tempfile
import threading
from pathlib import Path

import pytest

from tests.nvidia import ptx_kernels
from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.targets.nvidia.binary.cubin import read_cubin
from tilewright.targets.nvidia.toolkit import toolchain
from tilewright.targets.nvidia.toolkit.assemble import assemble
from tilewright.targets.nvidia.toolkit.ptxas_flags import check_options, split_options

TOOLS = pytest.mark.parametrize("use_ptxas", [True, False], ids=["ptxas", "nvJitLink"])
STORE = ptx_kernels.store("sm_90a")


@TOOLS
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_101a", "sm_120"])
def test_both_tools_assemble(arch, use_ptxas):
    made = assemble(ptx_kernels.store(arch), arch, use_ptxas=use_ptxas)
    assert list(read_cubin(made.data).kernels) == ["store"]
    assert made.tool.startswith("ptxas" if use_ptxas else "nvJitLink")


def test_the_tool_that_is_chosen():
    assert assemble(STORE, "sm_90a").tool.startswith("nvJitLink")
    verbose = assemble(STORE, "sm_90a", extra=["-v"])
    assert verbose.tool.startswith("ptxas") and "Used 8 registers" in verbose.log
    with settings.scope(toolkit=str(toolchain.find("ptxas").root)):
        assert assemble(STORE, "sm_90a").tool.startswith("ptxas")


@TOOLS
def test_options_reach_the_tool(use_ptxas):
    text = ptx_kernels.spilling("sm_90a")
    assert read_cubin(assemble(text, "sm_90a", use_ptxas=use_ptxas).data).kernels["spilling"].registers > 64
    for how in ({"max_registers": 40}, {"extra": ["--maxrregcount=40"]}, {"extra": ["-maxrregcount", "40"]}):
        made = assemble(text, "sm_90a", use_ptxas=use_ptxas, **how)
        assert read_cubin(made.data).kernels["spilling"].registers == 40
    slow = assemble(text, "sm_90a", opt_level=0, use_ptxas=use_ptxas)
    by_flag = assemble(text, "sm_90a", extra=["-O0"], use_ptxas=use_ptxas)
    sizes = [read_cubin(made.data).kernels["spilling"].code_bytes for made in (slow, by_flag)]
    assert sizes[0] == sizes[1] > read_cubin(assemble(text, "sm_90a").data).kernels["spilling"].code_bytes
    lines = read_cubin(assemble(STORE, "sm_90a", lineinfo=True, use_ptxas=use_ptxas).data).sections
    assert ".nv_debug_line_sass" in lines


def test_flags_of_ptxas_are_sorted():
    found = check_options(
        split_options("-v --maxrregcount=128 -lineinfo --def-load-cache cg -O2 --fmad=false"), "sm_90a"
    )
    assert (found.verbose, found.lineinfo, found.opt_level, found.max_registers) == (True, True, 2, 128)
    assert found.rest == ("--def-load-cache=cg", "--fmad=false")
    assert check_options(["--gpu-name=sm_90a", "-arch", "sm_90a"], "sm_90a").rest == ()
    assert check_options(["-arch=sm_101a"], "sm_110a").rest == ()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--gpu-name=sm_80", "--gpu-name=sm_80 fights the target architecture"),
        ("-arch sm_999", "unknown architecture 'sm_999'"),
        ("-o x.cubin", "--output-file cannot be used here"),
        ("-c", "--compile-only cannot be used here"),
        ("--maxrregcount=900", "--maxrregcount=900 is not valid"),
        ("--opt-level=7", "--opt-level=7 is not valid"),
        ("kernel.ptx", "'kernel.ptx' is not a ptxas option"),
        ("'--fmad", "cannot read the ptxas options"),
    ],
)
def test_flags_that_fight_the_compilation(words, message):
    with pytest.raises(CompileError, match=message):
        check_options(split_options(words), "sm_90a")


def test_an_opt_level_out_of_range():
    with pytest.raises(CompileError, match="opt_level is 0, 1, 2 or 3, not 4"):
        assemble(STORE, "sm_90a", opt_level=4)


@TOOLS
def test_an_unknown_flag(use_ptxas):
    with pytest.raises(CompileError, match=r"Unknown option '-?-frobnicate'") as error:
        assemble(STORE, "sm_90a", extra=["--frobnicate=1"], use_ptxas=use_ptxas)
    assert "PtxasOptions" in str(error.value)


@TOOLS
def test_a_refusal_has_the_documented_form(use_ptxas):
    text = STORE.replace("st.global", "stt.global")
    with pytest.raises(CompileError) as error:
        assemble(text, "sm_90a", use_ptxas=use_ptxas)
    message = str(error.value)
    assert message.startswith("PTX Compilation Error:\n---------------------\n\nCurrent Settings:\n")
    for line in ("- CUDA Toolkit Path: (installed packages)", "- Target Architecture: sm_90a", "- PTX Version: 8.0"):
        assert line in message
    number = text.splitlines().index(" st.global.b32 [q], 7;".replace("st.", "stt.")) + 1
    assert f"line {number}: Not a name of any known instruction: 'stt'" in message
    assert "in: stt.global.b32 [q], 7;" in message
    assert "\n\nPossible Solutions:\n1. " in message
    assert "ptxas" in error.value.nvvm_error
    assert f"> {number:5} |  stt.global.b32 [q], 7;" in error.value.ir_context
    assert "tmp" not in message and error.value.ir_context not in message
    with settings.scope(debug=True), pytest.raises(CompileError, match="IR Context"):
        assemble(text, "sm_90a", use_ptxas=use_ptxas)


@TOOLS
@pytest.mark.parametrize(
    ("text", "arch", "reason", "solution"),
    [
        (
            ptx_kernels.shared("sm_80").replace("tile[512]", "tile[100000]"),
            "sm_80",
            r"uses too much shared data \(0x186a0 bytes, 0xc000 max\)",
            "dynamic shared memory, of which sm_80 has up to 163 KB",
        ),
        (STORE.replace("8.0", "9.9"), "sm_90a", r"Unsupported \.version 9\.9", "Unset CUDA_TOOLKIT_PATH"),
        (STORE, "sm_80", r"specified by \.target is higher", "names another .target"),
        (STORE, "sm_100a", r"Program with \.target 'sm_90a'", "names another .target"),
        (STORE.replace("8.0", "7.0"), "sm_90a", "7.0", "sm_90a needs 8.0"),
        (STORE.replace("st.global.b32 [q], 7", "elect.sync q|p, 1"), "sm_90a", "line 8", "inline assembly"),
        (
            ptx_kernels.store("sm_80").replace("st.global.b32 [q], 7;", "barrier.cluster.arrive;"),
            "sm_80",
            "sm_90",
            "Choose an architecture that has this instruction",
        ),
        ("", "sm_90a", "no PTX: it has no .version directive", "inline assembly"),
        ("garbage", "sm_90a", "no PTX", "override="),
        (STORE[:60] + "\0" + STORE[60:], "sm_90a", "NUL character", "override="),
        (STORE[:-10], "sm_90a", "line", "override="),
    ],
)
def test_reasons_and_solutions(text, arch, reason, solution, use_ptxas):
    with pytest.raises(CompileError, match=reason) as error:
        assemble(text, arch, use_ptxas=use_ptxas)
    assert solution in str(error.value).split("Possible Solutions:")[1]


def test_an_unknown_architecture():
    with pytest.raises(CompileError, match="unknown architecture 'sm_999'"):
        assemble(STORE, "sm_999")


@TOOLS
def test_a_library_is_linked(use_ptxas, tmp_path):
    call = "{ .reg .b32 v; .param .b32 r; call (r), seven; ld.param.b32 v, [r]; st.global.b32 [q], v; }"
    caller = ptx_kernels.store("sm_90a").replace("st.global.b32 [q], 7;", call)
    caller = caller.replace(".visible", ".extern .func (.param .b32 r) seven();\n.visible", 1)
    library = tmp_path / "seven.ptx"
    library.write_text(
        ptx_kernels.module("sm_90a", ".visible .func (.param .b32 r) seven() { st.param.b32 [r], 7; ret; }\n")
    )
    assert "store" in read_cubin(assemble(caller, "sm_90a", use_ptxas=use_ptxas, links=[str(library)]).data).kernels
    with pytest.raises(CompileError, match="seven") as error:
        assemble(caller, "sm_90a", use_ptxas=use_ptxas)
    assert "LinkLibraries" in str(error.value)


@TOOLS
def test_a_library_of_the_toolkit_is_linked_by_its_name(use_ptxas, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = assemble(STORE, "sm_90a", use_ptxas=use_ptxas).data
    linked = assemble(STORE, "sm_90a", use_ptxas=use_ptxas, links=["libcudadevrt.a"]).data
    assert "store" in read_cubin(linked).kernels and len(linked) > len(plain)
    (tmp_path / "libcudadevrt.a").write_bytes(b"no library")  # the working directory comes first
    with pytest.raises(CompileError):
        assemble(STORE, "sm_90a", use_ptxas=use_ptxas, links=["libcudadevrt.a"])


def test_libraries_that_cannot_be_linked(tmp_path):
    with pytest.raises(CompileError, match=r"cannot read 'libnone\.a'") as error:
        assemble(STORE, "sm_90a", links=["libnone.a"])
    assert "in no toolkit or package" in error.value.hint
    with pytest.raises(CompileError, match="cannot read"):
        assemble(STORE, "sm_90a", links=[str(tmp_path / "none.a")])
    with pytest.raises(CompileError, match=r"cannot link 'x\.txt'"):
        assemble(STORE, "sm_90a", links=["x.txt"])


@TOOLS
def test_a_megabyte_of_ptx(use_ptxas):
    body = "".join(f" mad.lo.s32 r, r, {i}, {i % 77};\n" for i in range(40000))
    text = STORE.replace(
        " st.global.b32 [q], 7;", f" .reg .b32 r;\n ld.global.b32 r, [q];\n{body} st.global.b32 [q], r;"
    )
    assert len(text) > 1_000_000
    assert read_cubin(assemble(text, "sm_90a", use_ptxas=use_ptxas).data).kernels["store"].registers > 0


@TOOLS
def test_no_files_are_left(use_ptxas, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assemble(STORE, "sm_90a", use_ptxas=use_ptxas)
    with pytest.raises(CompileError):
        assemble(STORE.replace("st.", "stt."), "sm_90a", use_ptxas=use_ptxas)
    assert list(tmp_path.iterdir()) == []


def test_threads_assemble_side_by_side():
    wanted = assemble(STORE, "sm_90a").data
    made: list[bytes] = []
    threads = [threading.Thread(target=lambda: made.append(assemble(STORE, "sm_90a").data)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [wanted] * 8


def fake_ptxas(folder: Path, script: str) -> Path:
    """A toolkit whose ptxas is a shell script."""
    program = folder / "bin" / "ptxas"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


def test_a_toolkit_before_cuda_13_is_spoken_to_in_its_words(tmp_path):
    """sm_110 was sm_101 there, and PTX ended at 8.8."""
    seen = tmp_path / "seen"
    script = f"""
case "$1" in --version) echo 'Cuda compilation tools, release 12.9, V12.9.86'; exit 0;; esac
echo "$@" > {seen}.args
for word in "$@"; do case $word in *.ptx) cp $word {seen}.ptx;; esac; done
exit 1"""
    root = fake_ptxas(tmp_path / "cuda", script)
    text = ptx_kernels.store("sm_110a")
    with settings.scope(toolkit=str(root)), pytest.raises(CompileError, match=r"ptxas 12\.9"):
        assemble(text, "sm_110a")
    assert "--gpu-name=sm_101a" in Path(f"{seen}.args").read_text()
    assert Path(f"{seen}.ptx").read_text() == text.replace("9.0", "8.8").replace("sm_110a", "sm_101a")


def test_a_ptxas_that_fails_in_silence(tmp_path):
    root = fake_ptxas(tmp_path / "cuda", "exit 3")
    with settings.scope(toolkit=str(root)), pytest.raises(CompileError, match="ended with status 3 without a reason"):
        assemble(STORE, "sm_90a")


def test_a_ptxas_that_crashes(tmp_path):
    root = fake_ptxas(tmp_path / "cuda", "kill -SEGV $$")
    with settings.scope(toolkit=str(root)), pytest.raises(CompileError, match="ptxas was ended by SIGSEGV") as caught:
        assemble(STORE, "sm_90a")
    assert "Use a newer toolkit" in str(caught.value) and "OptLevel(0)" in str(caught.value)


def test_a_ptxas_that_does_not_start(tmp_path):
    root = fake_ptxas(tmp_path / "cuda", "exit 0")
    os.chmod(root / "bin" / "ptxas", 0o644)
    with settings.scope(toolkit=str(root)), pytest.raises(CompileError, match=r"cannot start .*ptxas"):
        assemble(STORE, "sm_90a")


def test_a_hanging_tool_is_ended(tmp_path):
    root = fake_ptxas(tmp_path / "cuda", "exec sleep 60")
    with pytest.raises(CompileError, match=r"ptxas took more than 0\.2 s and was ended"):
        toolchain.run_tool([str(root / "bin" / "ptxas")], 0.2)
