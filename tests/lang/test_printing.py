"""Format strings of printf: what prints, on the emulator and in host code, and what is refused at the user's line."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError, Float16, Float32, Float64, Int8, Int64, Uint8, Uint32, Uint64

INT, FLOAT = (lambda x: x[1] - 4), (lambda x: Float32(x[1]) / 8)
PRINTED = [
    ("%d", INT, "-3"),
    ("%5d|", INT, "   -3|"),
    ("%-5d|", INT, "-3   |"),
    ("%+d", lambda x: x[1], "+1"),
    ("%04d", lambda x: x[1], "0001"),
    ("%i", lambda x: Int64(x[1]) << 40, "1099511627776"),
    ("%lld", INT, "-3"),
    ("%hhd", lambda x: x[1] * 1000, "1000"),
    ("%d", lambda x: Int8(x[1]) - Int8(2), "-1"),
    ("%d", lambda x: Uint8(x[1]) - Uint8(2), "255"),
    ("%d", lambda x: Uint32(0) - Uint32(x[1]), "4294967295"),
    ("%d", lambda x: Uint64(0) - Uint64(x[1]), "18446744073709551615"),
    ("%u", INT, "4294967293"),
    ("%x", lambda x: x[1] * 255, "ff"),
    ("%#X", lambda x: x[1] * 255, "0XFF"),
    ("%o", lambda x: x[1] * 8, "10"),
    ("%c", lambda x: x[1] + 64, "A"),
    ("%d", lambda x: x[1] > 0, "1"),
    ("%f", FLOAT, "0.125000"),
    ("%.2f", FLOAT, "0.12"),
    ("%8.3f|", FLOAT, "   0.125|"),
    ("%lf", FLOAT, "0.125000"),
    ("%e", FLOAT, "1.250000e-01"),
    ("%g", lambda x: Float64(x[1]) / 3, "0.333333"),
    ("%f", lambda x: Float16(x[1]), "1.000000"),
    ("%f", INT, "-3.000000"),
    ("%.1f", lambda x: Uint64(0) - Uint64(x[1]), "18446744073709551616.0"),
    ("%f", lambda x: 2, "2.000000"),
    ("%s", INT, "-3"),
    ("%6s|", INT, "    -3|"),
    ("%s", FLOAT, "0.125000"),
    ("%s", lambda x: "text", "text"),
    ("%6s|", lambda x: "text", "  text|"),
    ("%s", lambda x: "100%", "100%"),
    ("%c", lambda x: "y", "y"),
    ("%s", lambda x: None, "None"),
    ("%s", lambda x: x.layout, "(4):(1)"),
    ("{}", INT, "-3"),
    ("{}", FLOAT, "0.125000"),
    ("{:5}|", INT, "   -3|"),
    ("{:<5}|", INT, "-3   |"),
    ("{:06.2f}", FLOAT, "000.12"),
    ("{:x}", lambda x: x[1] * 171, "ab"),
    ("{:6}|{:>6}|", lambda x: "text", "text  |  text|"),
    ("{:+d}", lambda x: x[1], "+1"),
    ("%d%%", INT, "-3%"),
    ("{{{}}}", INT, "{-3}"),
    ("{%d, 1}", INT, "{-3, 1}"),
    ("{}", lambda x: (x[1], 5), "(1,5)"),
    ("%3d", lambda x: (x[1], 5), "(  1,  5)"),
    ("%.1f", lambda x: x.load().to(Float32), "(0.0,1.0,2.0,3.0)"),
]


def program(text, value, on_the_device):
    @cute.jit
    def show(x: cute.Tensor):
        values = [value(x)] * (2 if "|{" in text else 1)
        cute.printf(text, *values)

    @cute.kernel
    def kernel(x: cute.Tensor):
        show(x)

    @cute.jit
    def launch(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    return launch if on_the_device else show


PLACES = pytest.mark.parametrize("on_the_device", [True, False], ids=["device", "host"])


@PLACES
@pytest.mark.parametrize(("text", "value", "wanted"), PRINTED, ids=[item[0] + "=" + item[2] for item in PRINTED])
def test_what_prints(text, value, wanted, on_the_device, capfd):
    x = cute.runtime.from_dlpack(np.arange(4, dtype=np.int32))
    cute.compile(program(text, value, on_the_device), x)(x)
    assert capfd.readouterr().out == wanted + "\n"


@PLACES
def test_pointers(on_the_device, capfd):
    x = np.arange(4, dtype=np.int32)
    for text, wanted in (("%p", f"0x{x.ctypes.data:016x}"), ("%llx", f"{x.ctypes.data:x}")):
        cute.compile(program(text, lambda x: x.iterator, on_the_device), x)(x)
        assert capfd.readouterr().out == wanted + "\n"


REFUSED = [
    ("%d", FLOAT, "printf `%d` takes an integer, not a Float32", "`%f` prints a float"),
    ("%5x", FLOAT, "printf `%5x` takes an integer, not a Float32", "`%f`"),
    ("{:d}", FLOAT, "printf `{:d}` takes an integer, not a Float32", "`{}`"),
    ("%c", FLOAT, "printf `%c` takes an integer", "`{}`"),
    ("%p", FLOAT, "printf `%p` takes a pointer", "`{}`"),
    ("%d", lambda x: 2.5, "printf `%d` takes an integer, not a Float32", "`%f`"),
    ("%d", lambda x: "text", "printf `%d` takes an integer, not the text 'text'", "`{}`"),
    ("%f", lambda x: "text", "printf `%f` takes a number, not the text 'text'", "`{}`"),
    ("%f", lambda x: x.iterator, "printf `%f` takes a number, not a pointer", "`{}`"),
    ("%d", lambda x: x, "printf `%d` takes an integer, not a Tensor", "`{}`"),
    ("%d", lambda x: x.layout, "printf `%d` takes an integer, not a Layout", "`{}`"),
    ("%d", lambda x: None, "printf `%d` takes an integer, not a NoneType", "`{}`"),
    ("%d", lambda x: x.load().to(Float32), "printf `%d` takes an integer, not a Float32", "`%f`"),
    ("%d", lambda x: cutlass.Int128(x[0]), "more than 64 bits", "`{}`"),
    ("%n", INT, "printf has no conversion `%n`", "%%"),
    ("%q", INT, "printf has no conversion `%q`", "%%"),
    ("%*d", INT, "printf has no conversion `%`", "%%"),
    ("100%", INT, "printf has no conversion `%`", "%%"),
    ("{:^5}", INT, "printf has no place `{:^5}`", "Python's"),
    ("%d %d", INT, "printf has more placeholders than values", ""),
    ("no place", INT, "printf has 1 values without a placeholder", ""),
    ("{0}", INT, "printf has 1 values without a placeholder", ""),
]


@PLACES
@pytest.mark.parametrize(
    ("text", "value", "message", "hint"), REFUSED, ids=[item[0] + " " + item[2] for item in REFUSED]
)
def test_what_is_refused_at_the_users_line(text, value, message, hint, on_the_device):
    x = cute.runtime.from_dlpack(np.arange(4, dtype=np.int32))
    with pytest.raises(CompileError) as caught:
        cute.compile(program(text, value, on_the_device), x)
    shown = str(caught.value)
    assert shown.startswith(message) or message in shown
    assert __file__ in shown and "cute.printf(text, *values)" in shown and hint in shown
