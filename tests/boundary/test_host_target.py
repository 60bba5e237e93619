"""Exports for another processor: what the options say, and what is in the object."""

from __future__ import annotations

import platform

import pytest

import tilewright.cute as cute
from tests.boundary.support import add, vector
from tilewright import Float32
from tilewright.base.errors import CompileError
from tilewright.targets.host import elf, relocations
from tilewright.targets.host_target import HostTarget, parse_host_target

LIBC = {"dlopen", "dlsym", "dprintf", "fflush", "printf", "sched_yield", "snprintf", "strlen", "vsnprintf"}
ARM = "aarch64-unknown-linux-gnu"


def test_both_forms_of_the_option():
    assert parse_host_target("linux-aarch64") == HostTarget(ARM, "generic")
    assert parse_host_target(f"llvm -mtriple={ARM}") == HostTarget(ARM, "generic")
    assert parse_host_target(f"llvm -mtriple={ARM} -mcpu=neoverse-n1 -mattr=+lse") == HostTarget(
        ARM, "neoverse-n1", "+lse"
    )


@pytest.mark.parametrize(
    "text, hint",
    [
        ("linux-riscv64", "give one of linux-aarch64"),
        ("llvm -mcpu=neoverse-n1", "-mtriple= is missing"),
        ("llvm -mtriple=riscv64-unknown-linux-gnu", "host code is made for x86_64 and aarch64 under Linux"),
        (f"llvm -mtriple={ARM} -march=x", "'-march=x' is not of the form"),
        (f"llvm -mtriple={ARM} -mcpu=", "'-mcpu=' is not of the form"),
    ],
)
def test_what_is_no_host_target_is_refused_by_compile(text, hint):
    with pytest.raises(CompileError, match="no such host target") as caught:
        cute.compile(add, vector(), vector(), options=f"--host-target '{text}'", target="emu")
    assert caught.value.values["host-target"] in text and hint in caught.value.hint


def exported(tmp_path, options):
    compiled = cute.compile(add, vector(), vector(), Float32(1), target="emu", arch="sm_90a", options=options)
    compiled.export_to_c(file_path=tmp_path, file_name="add")
    return (tmp_path / "add.o").read_bytes(), (tmp_path / "add.h").read_text()


def test_an_object_for_aarch64(tmp_path):
    data, header = exported(tmp_path, f"--host-target 'llvm -mtriple={ARM} -mcpu=neoverse-n1 -mattr=+lse'")
    parsed = elf.parse(data)
    assert parsed.machine == relocations.EM_AARCH64
    assert {symbol.name for symbol in parsed.symbols if symbol.section == elf.SHN_UNDEF and symbol.name} <= LIBC
    assert {"__tw_run_add", "__tw_load_add", "__tw_meta_add"} <= {symbol.name for symbol in parsed.symbols}
    loaded = [one.type for one in parsed.relocations if parsed.sections[one.section].name in (".text", ".data")]
    assert loaded and set(loaded) <= set(relocations.RULES[relocations.EM_AARCH64])
    assert header == exported(tmp_path, "")[1]  # the interface is the same for all


def kernel_in(data):
    """The start of the cubin that an object holds."""
    start = data.index(b"\x7fELF", 4)
    return data[start : start + 2000]


def test_the_kernels_are_those_of_the_native_export(tmp_path):
    arm, _ = exported(tmp_path / "arm", "--host-target linux-aarch64")
    intel, _ = exported(tmp_path / "intel", "--host-target linux-x86_64")
    assert arm != intel and kernel_in(arm) == kernel_in(intel)


def test_the_object_for_another_processor_is_not_loaded_here(tmp_path):
    other = "linux-x86_64" if platform.machine() == "aarch64" else "linux-aarch64"
    exported(tmp_path, f"--host-target {other}")
    with pytest.raises(CompileError, match="for another processor"):
        cute.runtime.load_module(tmp_path / "add.o")


def test_not_with_the_form_for_tvm_ffi(tmp_path):
    with pytest.raises(CompileError, match="exclude each other"):
        cute.compile(add, vector(), vector(), options="--host-target linux-aarch64 --enable-tvm-ffi", target="emu")
    compiled = cute.compile(add, vector(), vector(), options="--host-target linux-aarch64", target="emu")
    with pytest.raises(CompileError, match="made for this machine only"):
        compiled.export_to_c(tmp_path / "add.o", function_name="add")
