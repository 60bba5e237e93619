"""Compile options as objects, as flags, in classes of the user's own, and by the second spellings of flags."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tilewright.cute as cute
from tests.compiler.support import double, floats, refused
from tilewright import CompileError
from tilewright.compiler.options import (
    BooleanCompileOption,
    CompileOption,
    Options,
    StringCompileOption,
)


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
