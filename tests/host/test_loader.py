"""The loader of relocatable objects: relocations of both processors, protections, damaged input."""

import ctypes
import struct
from pathlib import Path

import pytest

from tilewright.base.errors import CompileError
from tilewright.ir.llvm import emit_object
from tilewright.targets.host import elf, relocations, symbols
from tilewright.targets.host.loader import load_object

PROGRAM = """
@counter = global i32 5
@zeros = global [1000 x i32] zeroinitializer
@table = private constant [4 x double] [double 1.0, double 2.0, double 4.0, double 8.0]
@function = global ptr @pow
@self = global ptr @counter
declare double @sin(double)
declare double @pow(double, double)
define i32 @count() {
  %v = load i32, ptr @counter
  %w = add i32 %v, 1
  store i32 %w, ptr @counter
  ret i32 %w
}
define double @lookup(i32 %i) {
  %p = getelementptr double, ptr @table, i32 %i
  %v = load double, ptr %p
  ret double %v
}
define double @sine(double %x) {
  %y = call double @sin(double %x)
  %z = fadd double %y, 1.0
  ret double %z
}
define double @power(double %x, double %y) {
  %f = load volatile ptr, ptr @function
  %r = call double %f(double %x, double %y)
  ret double %r
}
define ptr @outer() {
  ret ptr @pow
}
define i32 @jump(i32 %x) {
  switch i32 %x, label %other [ i32 0, label %a  i32 1, label %b  i32 2, label %c  i32 3, label %d  i32 4, label %e ]
a:
  %u = call i32 @count()
  ret i32 %u
b:
  ret i32 10
c:
  %v = call i32 @count()
  %w = mul i32 %v, 100
  ret i32 %w
d:
  ret i32 -4
e:
  ret i32 77
other:
  ret i32 0
}
"""


def function(loaded, name, result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)(loaded.address(name))


@pytest.mark.parametrize("level", [0, 2])
def test_program_runs(level):
    loaded = load_object(emit_object(PROGRAM, opt_level=level))
    count = function(loaded, "count", ctypes.c_int)
    assert [count(), count()] == [6, 7]
    lookup = function(loaded, "lookup", ctypes.c_double, ctypes.c_int)
    assert [lookup(i) for i in range(4)] == [1, 2, 4, 8]
    assert function(loaded, "sine", ctypes.c_double, ctypes.c_double)(0.0) == 1.0
    assert function(loaded, "power", ctypes.c_double, *[ctypes.c_double] * 2)(2.0, 10.0) == 1024
    assert function(loaded, "outer", ctypes.c_void_p)() == symbols.address_of("pow")
    jump = function(loaded, "jump", ctypes.c_int, ctypes.c_int)
    assert [jump(i) for i in (0, 1, 2, 3, 4, 5)] == [8, 10, 900, -4, 77, 0]
    assert ctypes.c_uint64.from_address(loaded.address("self")).value == loaded.address("counter")
    assert sum((ctypes.c_int * 1000).from_address(loaded.address("zeros"))) == 0


def test_copies_are_apart():
    data = emit_object(PROGRAM)
    one, two = load_object(data), load_object(data)
    assert function(one, "count", ctypes.c_int)() == 6
    assert function(two, "count", ctypes.c_int)() == 6


def protection(address):
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high = (int(part, 16) for part in line.split()[0].split("-"))
        if low <= address < high:
            return line.split()[1]
    return None


def test_nothing_is_writable_and_executable():
    loaded = load_object(emit_object(PROGRAM))
    assert protection(loaded.address("count")) == "r-xp"
    assert protection(loaded.address("counter")) == "rw-p"
    start = loaded.address("count") & ~4095
    assert not any(
        "w" in protection(start + at) and "x" in protection(start + at) for at in range(0, loaded.size, 4096)
    )


def test_names():
    loaded = load_object(emit_object(PROGRAM))
    assert {"count", "lookup", "counter", "zeros"} <= set(loaded.symbols)
    assert "sin" not in loaded.symbols
    with pytest.raises(CompileError, match="the host object defines no 'absent'") as caught:
        loaded.address("absent")
    assert "count" in caught.value.values["defined"]


def test_unresolved_symbol_is_named():
    text = "declare i32 @system(ptr)\ndefine i32 @f(ptr %p) {\n  %r = call i32 @system(ptr %p)\n  ret i32 %r\n}\n"
    with pytest.raises(CompileError, match="host code refers to an unknown symbol 'system'") as caught:
        load_object(emit_object(text))
    assert "C and math libraries" in caught.value.hint
    loaded = load_object(emit_object(text), resolve={"system": 0x1000}.__getitem__)
    assert loaded.size > 0


def test_every_allowed_function_resolves():
    absent = []
    for name in symbols.ALLOWED:
        try:
            assert symbols.address_of(name) > 0
        except CompileError as error:
            assert name in error.message
            absent.append(name)
    assert not {"memcpy", "snprintf", "sinf", "pow", "fmaf", "exp10", "__divti3"} & set(absent)


@pytest.mark.parametrize("size", [0, 4, 16, 63, 64, 100, 200])
def test_cut_off_objects_are_refused(size):
    data = emit_object(PROGRAM)
    with pytest.raises(CompileError, match="the host object is"):
        load_object(data[:size])


def test_cut_in_every_place():
    data = emit_object(PROGRAM)
    for size in range(0, len(data), 97):
        with pytest.raises(CompileError):
            load_object(data[:size])


def test_other_kinds_of_files_are_refused():
    data = bytearray(emit_object(PROGRAM))
    with pytest.raises(CompileError, match="is not ELF64"):
        load_object(b"MZ" + bytes(100))
    shared = data.copy()
    struct.pack_into("<H", shared, 16, 3)
    with pytest.raises(CompileError, match="is not relocatable"):
        load_object(bytes(shared))
    other = data.copy()
    struct.pack_into("<H", other, 18, 243)  # RISC-V
    with pytest.raises(CompileError, match="is for another processor"):
        load_object(bytes(other))


def test_unknown_relocation_is_refused():
    data = emit_object("@x = external thread_local global i32\ndefine ptr @f() {\n  ret ptr @x\n}\n")
    with pytest.raises(CompileError, match="has a relocation of unknown type"):
        load_object(data)


# Relocations one by one, against the formulas of the two ABIs


def write(machine, number, word, target, place, size=4):
    memory = bytearray(16)
    memory[4 : 4 + len(word)] = word
    relocations.RULES[machine][number].write(memory, 4, target, place)
    assert memory[:4] == bytes(4)
    return int.from_bytes(memory[4 : 4 + size], "little")


@pytest.mark.parametrize(
    ("number", "target", "place", "expected", "size"),
    [(1, 0x123456789ABCDEF0, 0x1000, 0x123456789ABCDEF0, 8), (2, 0x2000, 0x3000, 0xFFFFF000, 4),
     (4, 0x7FFF0000, 0x10, 0x7FFEFFF0, 4), (10, 0xFFFFFFFF, 0, 0xFFFFFFFF, 4), (11, -4, 0, 0xFFFFFFFC, 4),
     (24, 1 << 40, 1 << 41, (1 << 64) - (1 << 40), 8)],
)  # fmt: skip
def test_x86_64(number, target, place, expected, size):
    assert write(relocations.EM_X86_64, number, b"", target, place, size) == expected


@pytest.mark.parametrize(("number", "target"), [(2, 1 << 32), (4, -(1 << 33)), (10, 1 << 32), (11, 1 << 31)])
def test_x86_64_overflow(number, target):
    with pytest.raises(CompileError, match="does not reach"):
        write(relocations.EM_X86_64, number, b"", target, 0)


@pytest.mark.parametrize(
    ("number", "instruction", "target", "place", "expected"),
    [
        (283, 0x94000000, 0x1010, 0x1000, 0x94000004),  # bl +16
        (282, 0x14000000, 0x0FFC, 0x1000, 0x17FFFFFF),  # b -4
        (275, 0x90000000, 0x12345678, 0x00001000, 0x90091A20),  # adrp x0
        (277, 0x91000000, 0x12345678, 0, 0x9119E000),  # add x0, x0, #0x678
        (278, 0x39400000, 0x12345678, 0, 0x3959E000),  # ldrb w0, [x0, #0x678]
        (285, 0xB9400000, 0x12345678, 0, 0xB9467800),  # ldr w0, [x0, #0x678]
        (286, 0xF9400000, 0x12345678, 0, 0xF9433C00),  # ldr x0, [x0, #0x678]
        (299, 0x3DC00000, 0x12345670, 0, 0x3DC19C00),  # ldr q0, [x0, #0x670]
    ],
)
def test_aarch64(number, instruction, target, place, expected):
    assert write(relocations.EM_AARCH64, number, struct.pack("<I", instruction), target, place) == expected


def test_elf_reader_agrees_with_the_program():
    parsed = elf.parse(emit_object(PROGRAM))
    names = {symbol.name: symbol for symbol in parsed.symbols}
    assert names["sin"].section == elf.SHN_UNDEF
    assert parsed.sections[names["count"].section].flags & elf.SHF_EXECINSTR
    data = parsed.sections[names["counter"].section]
    assert data.data[names["counter"].value :][:4] == struct.pack("<I", 5)
