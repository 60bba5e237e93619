"""Compile options as objects, as flags, in classes of the user's own, and by the second spellings of flags."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import tilewright.cute as cute
from tests.compiler.support import double, floats, refused
from tilewright import CompileError
from tilewright.targets.nvidia.backend.options import NvidiaOptions as Options
from tilewright.targets.nvidia.binary.cubin import line_table
from tilewright.targets.options import (
    BooleanCompileOption,
    CompileOption,
    StringCompileOption,
)
from tilewright.tools.demo import CASES


class Debugging(BooleanCompileOption):
    """Changes several entries."""

    def applied(self, options):
        return replace(options, opt_level=0, generate_line_info=True) if self.value else options


class Chip(StringCompileOption):
    """Another name of an entry."""

    field = "gpu_arch"


class Forgotten(CompileOption):
    """Sets nothing."""


def test_options_of_the_users_own():
    executor = cute.compile[Debugging, Chip("sm_86")](double, *floats())
    assert "opt-level=0 preserve-line-info=true" in executor.pipeline and executor.arch == "sm_86"
    assert "opt-level=3" in cute.compile[Debugging(False)](double, *floats()).pipeline
    error = refused(lambda: cute.compile[Forgotten](double, *floats()), CompileError, "Forgotten says not what it sets")
    assert "opt_level" in error.hint and "applied(self, options)" in error.hint


def test_a_class_that_needs_a_value():
    error = refused(lambda: cute.compile[cute.GPUArch](double, *floats()), CompileError, "GPUArch needs a value")
    assert "write GPUArch(...)" in error.hint


@pytest.mark.parametrize(
    "given", ["--opt-level 1 --keep-ptx", (cute.OptLevel(1), cute.KeepPTX), [cute.OptLevel(1), "--keep-ptx"]]
)
def test_compile_options_hold_flags_or_objects(given):
    made = cute.CompileOptions(given)
    assert made.to_str() == "--opt-level 1 --keep-ptx"
    assert repr(made) == "CompileOptions('--opt-level 1 --keep-ptx')"
    assert Options().merged(made) == Options(opt_level=1, keep_ptx=True)


def test_objects_may_set_what_is_the_default():
    """The environment may have changed it."""
    off = cute.CompileOptions((cute.KeepPTX(False), cute.OptLevel(3)))
    assert Options(keep_ptx=True, opt_level=0).merged(off) == Options()


@pytest.mark.parametrize(("given", "word"), [(3, "3 is no compile option"), ("--nonsense", "unknown compile option")])
def test_what_is_no_option(given, word):
    with pytest.raises(CompileError, match=word):
        cute.CompileOptions(given)


def test_second_spellings():
    made = Options().merged("--enable-ir-printing --enable-device-assertions --gpu-name=sm_80")
    assert made == Options(print_ir=True, enable_assertions=True, gpu_arch="sm_80")


@pytest.mark.parametrize("case", CASES, ids=[case.title.replace(" ", "_") for case in CASES])
def test_libnvvm_makes_the_ptx(case):
    """The emulator runs it too, with the same result."""
    problem = case.problem(np.random.default_rng(0))
    options = (cute.GPUArch("sm_100a"), cute.PTXBackend("nvidia-nvvm"))
    executor = cute.compile[options](case.function, *problem.arguments, target="emu")
    plain = cute.compile[cute.GPUArch("sm_100a")](case.function, *problem.arguments, target="emu")
    assert ".target sm_100a" in executor.stages["ptx"] and executor.stages["ptx"] != plain.stages["ptx"]
    executor(*problem.arguments)
    assert (np.abs(problem.arguments[-1] - problem.exact) <= problem.allowed).all()
    assert executor.report().kernels[0].spill_stores == 0
    lines = [int(line) for line in re.findall(r"\.loc\s+1 (\d+) ", executor.stages["ptx"])]
    assert all(executor.source_map.of_line(line)["ptx"] for line in lines if line)


def test_backends_that_cannot_be():
    error = refused(
        lambda: cute.compile(double, *floats(), options="--ptx-backend gcc"), CompileError, "unknown PTX backend 'gcc'"
    )
    assert error.hint == "one of llvm, nvidia-nvvm"
    with pytest.raises(CompileError, match="libNVVM cannot compile for sm_90a"):
        cute.compile(double, *floats(), options="--ptx-backend=nvidia-nvvm --gpu-arch=sm_90a")


def test_libnvvm_takes_a_replaced_text():
    options = "--ptx-backend=nvidia-nvvm --gpu-arch=sm_100a"
    text = cute.compile(double, *floats(), options=options).stages["llvm"]
    x, out = floats()
    cute.compile(double, x, out, options=options, override={"llvm": text}, target="emu")(x, out)
    assert (out == 2 * x).all()
    with pytest.raises(CompileError, match="NVVM Compilation Error"):
        cute.compile(double, *floats(), options=options, override={"llvm": text.replace("ret void", "ret i32")})


def test_what_ptxas_says_is_shown_and_kept(capfd):
    for _ in range(2):
        executor = cute.compile[cute.PtxasOptions("-v"), cute.GPUArch("sm_90")](double, *floats(), target="emu")
        shown = capfd.readouterr().err
        assert "Compiling entry function 'double_kernel' for 'sm_90'" in shown and "registers" in shown
        assert executor.ptxas_log in shown
    executor.stages["sass"]
    quiet = cute.compile(double, *floats(), target="emu")
    assert quiet.stages["cubin"] and capfd.readouterr().err == "" and quiet.ptxas_log == ""


@pytest.mark.parametrize("word", ["off", "no", "0", "false", "OFF"])
def test_switches_that_are_off(word):
    options = Options(enable_assertions=True, keep_ptx=True).merged(f"--enable-assertions={word} --keep-ptx={word}")
    assert (options.enable_assertions, options.keep_ptx) == (False, False)


@pytest.mark.parametrize("word", ["on", "yes", "1", "true"])
def test_switches_that_are_on(word):
    assert Options().merged(f"--enable-assertions={word}").enable_assertions


def test_switches_that_are_neither():
    error = refused(
        lambda: cute.compile(double, *floats(), options="--enable-assertions=maybe"), CompileError, "neither on nor off"
    )
    assert "off" in error.hint


def test_options_by_name():
    assert Options().merged({"opt_level": 1, "keep_ptx": True}) == Options(opt_level=1, keep_ptx=True)
    with pytest.raises(CompileError, match="unknown compile option 'opt_lvl'") as caught:
        Options().merged({"opt_lvl": 1})
    assert "--opt-level" in caught.value.hint


@pytest.mark.parametrize("below", ["", "/below"])
def test_a_dump_folder_that_cannot_be_made(tmp_path, below):
    (tmp_path / "file").write_text("")
    folder = f"{tmp_path}/file{below}"
    error = refused(
        lambda: cute.compile(double, *floats(), options=f"--keep-ptx --dump-dir {folder}"), CompileError, "cannot write"
    )
    assert folder in str(error) and "DumpDir" in error.hint


def test_line_tables_are_in_the_cubin_where_they_are_asked_for():
    def rows(*options, **given):
        chosen = cute.compile[options] if options else cute.compile
        made = chosen(double, *floats(), target="emu", **given)
        return len(line_table(made.stages["cubin"], "double_kernel")), made

    plain, made = rows()
    lined, with_lines = rows(cute.GenerateLineInfo)
    assert plain == 0 < lined
    assert made.stages["ptx"] == with_lines.stages["ptx"] and ".loc" in made.stages["ptx"]
    assert made.stages["sass"].count("/*0") == with_lines.stages["sass"].count("/*0")
    assert rows(cute.GenerateLineInfo(False))[0] == 0
    assert rows(options="--generate-line-info")[0] == rows(cute.PtxasOptions("-lineinfo"))[0] == lined


def logged(source):
    """What a program writes to stderr with the compiler's logger."""
    program = f"""
import logging, sys
from tilewright.compat.logger import log
{source}
log().warning("said")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stderr.count("said")


@pytest.mark.parametrize(
    "source",
    ["", "log()", "logging.basicConfig()", "logging.basicConfig(); log()", "log(); logging.basicConfig()",
     "logging.getLogger('tilewright').addHandler(logging.StreamHandler())",
     "log(); log(); logging.getLogger().addHandler(logging.StreamHandler())"],
)  # fmt: skip
def test_the_logger_says_things_once(source):
    assert logged(source) == 1
