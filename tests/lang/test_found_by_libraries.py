"""What kept public libraries from running after their imports, each as a kind."""

from __future__ import annotations

import ast
import ctypes
import subprocess
import sys

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright.compat.ast_preprocessor import _OWN, DSLPreprocessor
from tilewright.layout import Layout, composition


def test_composition_by_a_tuple_drops_further_modes():
    """As C++ CuTe does (include/cute/layout.hpp: "Drop any modes of lhs that aren't hit by rhs")."""
    assert composition(Layout((4, 2), (1, 4)), (8,)) == Layout((8,), (1,))
    assert composition(Layout((4, 6, 5), (2, 8, 48)), (2, 3)) == Layout((2, 3), (2, 8))
    assert composition(Layout((4, 6), (2, 8)), 6)(5) == Layout((4, 6), (2, 8))(5)


def test_elements_are_read_and_written_with_places():
    def body(x: cute.Tensor):
        thread = cute.arch.thread_idx()[0]
        x.__setitem__(thread, x.__getitem__(thread, loc=None, ip=None) + 1, loc=None, ip=None)

    assert on_device(body, np.arange(32, dtype=np.int32)).tolist() == list(range(1, 33))


def test_python_numbers_are_no_machine_values():
    def body(x: cute.Tensor):
        pair = ((1, 2.5), cutlass.Int32(7))
        values = cutlass.extract_mlir_values(pair)
        assert len(values) == 1 and cutlass.extract_mlir_values((1, True)) == []
        (one, half), seven = cutlass.new_from_mlir_values(pair, values)
        assert type(one) is int and type(half) is float
        x[0] = seven + one

    assert on_device(body, np.zeros(1, np.int32), block=1)[0] == 8


class _Base:
    @cute.jit
    def __call__(self, x: cute.Tensor):
        self.fill(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    @cute.kernel
    def fill(self, x: cute.Tensor):
        x[cute.arch.thread_idx()[0]] = self.number


class _Derived(_Base):
    number = 5


def test_an_inherited_call_is_compiled():
    x = np.zeros(32, np.int32)
    cute.compile(_Derived(), x, target="emu")(x)
    assert (x == 5).all()


def test_fake_tensors_tell_their_symbols():
    rows = cute.sym_int()
    fake = cute.runtime.make_fake_tensor(cutlass.Float32, (rows, 8), stride=(cute.sym_int64(divisibility=4), 1))
    assert fake.shape[1] == 8 and fake.stride[1] == 1
    other = cute.runtime.make_fake_tensor(cutlass.Int32, (fake.shape[0],), stride=(1,))
    assert other.shape[0] == fake.shape[0] and not isinstance(other.shape[0], int)


def test_a_fragment_that_spans_several_tiles_is_retiled():
    def body(out: cute.Tensor):
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Int32)
        tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(1))
        fragment = cute.make_rmem_tensor(cute.make_layout(((2, 2), 1, 3)), cutlass.Int32)
        for i in cutlass.range_constexpr(12):
            fragment[i] = i
        retiled = tiled.get_slice(0).retile(fragment)
        assert cute.size(retiled) == 12 and cute.size(retiled, mode=[0]) == 4
        for i in cutlass.range_constexpr(12):
            out[i] = retiled[i]

    assert on_device(body, np.zeros(12, np.int32), block=1).tolist() == list(range(12))


def test_float_stands_for_float32_as_elements():
    def body(out: cute.Tensor):
        part = cute.make_rmem_tensor(1, cutlass.Float)
        part[0] = 1.5
        out[0] = part[0]

    assert on_device(body, np.zeros(1, np.float32), block=1)[0] == 1.5
    assert (cutlass.Float.zero, cutlass.Integer.zero) == (0.0, 0) and type(cutlass.Float.zero) is float


def test_libraries_may_change_the_tree_of_a_function(monkeypatch):
    def negated(self, node):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return _OWN["visit_If"](self, node)

    monkeypatch.setattr(DSLPreprocessor, "visit_If", negated)

    def body(x: cute.Tensor):
        thread = cute.arch.thread_idx()[0]
        if thread < 8:
            x[thread] = 1

    assert on_device(body, np.zeros(32, np.int32)).tolist() == [0] * 8 + [1] * 24


@pytest.mark.skipif(sys.platform != "linux", reason="symbols of the process are asked for as Linux has them")
def test_symbols_of_llvm_stay_out_of_the_process():
    """Another library with an LLVM inside, as Triton's, would take them and end the process."""
    source = (
        "import ctypes; from tilewright.ir import mlir; mlir.libllvm(); mlir.ir; "
        "print(hasattr(ctypes.CDLL(None), 'LLVMContextCreate'))"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n" and ctypes.CDLL(None)
