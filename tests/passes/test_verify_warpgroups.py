"""The verifiers of products of a warpgroup: what each refuses, in which words, and that what is right passes."""

import pytest

from tilewright import PassError
from tilewright.ir import mlir
from tilewright.ir.context import compile_context
from tilewright.passes.verify import verify

_D = '!cute.tensor<f32, "rmem", "((2,2,8),1,1):((1,2,4),0,0)", 32 : i32>'
_A = '!cute.tensor<f16, "smem", "S<3,3,3> o 0 o ((64,16),1):((64,1),0)", 1024 : i32>'
_WORDS = "vector<8xf16>"
_ATOM = "wgmma{shape=64x64x16,a=f16,b=f16,c=f32,a_major=k,b_major=k}"
_PLACES = ", ".join(map(str, range(32)))


def _verify(name, operands, attributes, results=()):
    names = [f"%v{number}" for number in range(len(operands))]
    made = f"%x:{len(results)} = " if results else ""
    operation = f'{made}"cute.{name}"({", ".join(names)}) {{{", ".join(attributes)}}} : '
    operation += f"({', '.join(operands)}) -> ({', '.join(results)})"
    given = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, operands, strict=True))
    text = f'func.func @f({given}) {{\n{operation} loc("user.py":7:3)\nreturn\n}}'
    with compile_context():
        verify(mlir.ir.Module.parse(text).operation, "pass mine")


def _product(d=_D, a=_A, b=_A, atom=_ATOM):
    _verify("wgmma", [d, a, b, "i1"], [f'atom = "{atom}"'])


def _named(a=_A, b=_A, atom=_ATOM, number=0, places=_PLACES, extents="1, 1, 1"):
    attributes = [
        f'atom = "{atom}"', f"accumulator = {number} : i32", f"places = array<i32: {places}>",
        f"extents = array<i32: {extents}>",
    ]  # fmt: skip
    _verify("wgmma_named", [a, b, "i1"], attributes)


def _declared(count=32, element="f32"):
    _verify("accumulator", [], ["accumulator = 0 : i32", f"count = {count} : i32", f'element = "{element}"'])


def _read(result="vector<2xf32>", places="0, 1"):
    _verify("accumulator_read", [], ["accumulator = 0 : i32", f"places = array<i32: {places}>"], [result])


def _write(value="vector<2xf32>", places="0, 1"):
    _verify("accumulator_write", [value], ["accumulator = 0 : i32", f"places = array<i32: {places}>"])


def _wait(groups=0):
    _verify("wgmma_wait", [], [f"groups = {groups} : i32"])


def _registers(count=40, kind="decrease"):
    _verify("set_registers", [], [f"count = {count} : i32", f'kind = "{kind}"'])


@pytest.mark.parametrize(
    "check",
    (
        _product, _named, _declared, _read, _write, _wait, _registers, lambda: _product(a=_WORDS),
        lambda: _named(a=_WORDS), lambda: _read("f32", "3"), lambda: _write("f32", "0, 5, 9"),
    ),
)  # fmt: skip
def test_what_is_right_passes(check):
    check()


@pytest.mark.parametrize(
    ("check", "message"),
    (
        (lambda: _product(d=_A), "the accumulator lies in registers, of the atom's type"),
        (lambda: _product(d=_D.replace("f32", "f16")), "the accumulator lies in registers, of the atom's type"),
        (lambda: _product(d=_D.replace("2,2,8", "2,2,6")), "the accumulator holds whole instructions"),
        (lambda: _product(a=_A.replace("f16", "bf16")), "operand A has the elements of the atom"),
        (lambda: _product(a=_A.replace("smem", "gmem")), "operand A lies in shared memory, or in registers"),
        (lambda: _product(b=_A.replace("smem", "rmem")), "operand B lies in shared memory"),
        (lambda: _product(b=_A.replace("(64,16)", "(32,16)")), "operand B holds whole tiles of an instruction"),
        (lambda: _product(a="vector<6xf16>"), "operand A holds whole tiles of an instruction"),
        (lambda: _product(atom="mma.sync"), "there is no atom 'mma.sync'"),
        (lambda: _product(atom=_ATOM.replace("64x64x16", "64x60x16")), "wgmma has no N = 60 for f16"),
        (lambda: _product(atom=_ATOM.replace("64x64x16", "64x64x8")), "its shape is (64, 64, 16)"),
        (lambda: _product(atom=_ATOM.replace("c=f32", "c=s32")), "D is f16 or f32"),
        (lambda: _product(atom=_ATOM.replace("a_major=k", "a_major=x")), "there is no atom"),
        (lambda: _named(extents="1, 1"), "extents are the instructions along M, N and K"),
        (lambda: _named(extents="1, 2, 1"), "places are the elements of all instructions"),
        (lambda: _named(places="0, 0"), "places are different elements of the accumulator"),
        (lambda: _named(number=-1), "accumulators count from 0"),
        (lambda: _declared(0), "an accumulator has a number and elements"),
        (lambda: _declared(element="f64"), "element 'f64' is not known"),
        (lambda: _read("f32"), "the result has a number for each place"),
        (lambda: _read("vector<3xf32>"), "the result has a number for each place"),
        (lambda: _write("vector<3xf32>"), "the value has a number for each place, or is one number for all"),
        (lambda: _wait(-1), "the number of unfinished groups is negative"),
        (lambda: _registers(20), "the registers of a thread are a multiple of 8 from 24 to 256"),
        (lambda: _registers(kind="halve"), "kind 'halve' is not known"),
    ),
)
def test_what_breaks_a_rule_is_refused(check, message):
    with pytest.raises(PassError) as caught:
        check()
    assert message in str(caught.value) and "user.py:7" in str(caught.value)
