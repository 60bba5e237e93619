"""What a pass can read: kernels, arguments, launches, operands, tensors, views, atoms, constants."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError, Float32, Int32, passes
from tilewright.ir import mlir
from tilewright.ir.context import compile_context
from tilewright.layout import evaluate


class Look(passes.Pass):
    """Keeps what `look(module)` says."""

    name = "look"

    def __init__(self, look):
        super().__init__()
        self.look = look

    def run(self, module):
        self.seen = self.look(module)


def seen(function, *arguments, look, **given):
    item = Look(look)
    cute.compile(function, *arguments, passes=item, **given)
    return item.seen


@cute.kernel
def first(a: cute.Tensor, scale: Float32, out: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    out[i, 0] = a[i] * scale


@cute.kernel
def second(out: cute.Tensor):
    out[0, 0] = 1.0


@cute.jit
def host(a: cute.Tensor, scale: Float32, out: cute.Tensor, blocks: Int32):
    first(a, scale, out).launch(grid=(blocks, 2, 1), block=[32, 1, 1])
    second(out).launch(grid=(cute.ceil_div(cute.size(a), 8), 1, 1), block=(8, 4, 2), smem=1024, cluster=(2, 1, 1))


ARGUMENTS = (np.zeros(16, np.float32), 2.0, np.zeros((16, 4), np.float32), 3)


def test_kernels_host_functions_and_arguments_by_name():
    def look(module):
        return (
            [passes.text_of(op, "sym_name") for op in passes.kernels(module)],
            [passes.text_of(op, "sym_name") for op in passes.host_functions(module)],
            [{name: str(value.type) for name, value in passes.arguments(op).items()} for op in passes.kernels(module)],
            list(passes.arguments(passes.host_functions(module)[0])),
        )

    kernels, hosts, arguments, host_arguments = seen(host, *ARGUMENTS, look=look)
    assert kernels == ["first", "second"] and hosts == ["host"]
    assert [list(names) for names in arguments] == [["a", "scale", "out"], ["out"]]
    assert arguments[0]["scale"] == "f32" and arguments[0]["out"].startswith("!cute.tensor<f32")
    assert host_arguments[:3] == ["a", "a.shape0", "scale"] and "blocks" in host_arguments


def test_launches():
    def look(module):
        found = passes.launches(module)
        named = passes.arguments(passes.host_functions(module)[0])
        return (
            [
                (
                    item.kernel,
                    item.grid[0] == named["blocks"],
                    item.grid[1:],
                    item.block,
                    item.cluster,
                    item.smem,
                    list(item.arguments),
                )
                for item in found
            ],
            found[0].arguments["scale"] == named["scale"],
            type(found[1].grid[0]).__name__,
        )

    (one, two), same, extent = seen(host, *ARGUMENTS, look=look, arch="sm_90a")
    assert one == ("first", True, (2, 1), (32, 1, 1), (1, 1, 1), None, ["a", "scale", "out"])
    assert two == ("second", False, (1, 1), (8, 4, 2), (2, 1, 1), 1024, ["out"])
    assert same and extent != "int"


def test_where_an_operation_is():
    def look(module):
        stores = [op for op in passes.operations(module) if op.name == "cute.store"]
        launch = passes.launches(module)[0].op
        return (
            [passes.text_of(passes.function_of(op), "sym_name") for op in (*stores, launch)],
            [passes.on_device(op) for op in (*stores, launch, module)],
            passes.function_of(module),
        )

    assert seen(host, *ARGUMENTS, look=look) == (["first", "second", "host"], [True, True, False, False], None)


@cute.kernel
def moves(a: cute.Tensor, out: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    shared = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout((8, 4), stride=(4, 1)), 16)
    pred = cute.make_rmem_tensor((4,), cutlass.Boolean)
    for n in cutlass.range_constexpr(4):
        pred[n] = i * 4 + n < 30
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=32)
    cute.copy(atom, cute.local_tile(a, (4,), (i,)), shared[i, None], pred=pred)
    cute.autovec_copy(shared[i, None], cute.local_tile(out, (4,), (i + 1,)))


@cute.jit
def move(a: cute.Tensor, out: cute.Tensor):
    moves(a, out).launch(grid=1, block=8)


def test_operands_tensors_views_and_atoms():
    def look(module):
        copies = [op for op in passes.operations(module) if op.name == "cute.copy"]
        operands = [passes.operands_of(op) for op in copies]
        infos = {name: passes.tensor_info(operands[0][name]) for name in ("src", "dst")}
        views = [passes.view_info(part.owner) for part in (operands[0]["src"], operands[1]["dst"])]
        return {
            "names": [sorted(item) for item in operands],
            "predicates": [len(item["pred"]) for item in operands],
            "spaces": [item.space for item in infos.values()],
            "layouts": [str(item.layout) for item in infos.values()],
            "bits": infos["src"].bits,
            "align": [item.align for item in infos.values()],
            "atoms": [(passes.atom_of(op).name, passes.atom_of(op).number("bits")) for op in copies],
            "views": [(item.algebra, item.arguments[0], passes.is_tensor(item.source)) for item in views],
            "coordinate": [str(value.type) for value in views[1].operands.values()],
            "predicate": str(operands[0]["pred"][0].type),
        }

    found = seen(move, np.zeros(32, np.float32), np.zeros(40, np.float32), look=look)
    assert found["names"] == [["dst", "pred", "src"]] * 2 and found["predicates"] == [1, 0]
    assert found["spaces"] == ["gmem", "smem"] and found["layouts"] == ["(4):(1)", "(4):(1)"]
    assert found["bits"] == 32 and found["align"][1] == 16
    assert found["atoms"] == [("universal", 32), ("universal", 0)]
    assert found["views"] == [("local_tile", (4,), True)] * 2
    assert found["coordinate"] == ["i64"] and found["predicate"] == "vector<4xi1>"


def test_symbols_stand_for_extents_of_run_time():
    (layout, text, align), *_ = seen(
        host,
        *ARGUMENTS,
        look=lambda module: [
            (info.layout, info.text, info.align)
            for info in map(passes.tensor_info, list(passes.arguments(passes.kernels(module)[0]).values())[::2])
        ],
    )
    assert text == "(?):(1)" and align == 4 and layout(3) == 3 and evaluate(layout.shape, {"v0": 5}) == (5,)


CONSTANTS = """
func.func @f(%x: i32) {
  %a = arith.constant 2 : i32
  %b = arith.constant -1 : i8
  %c = arith.constant true
  %d = arith.constant 2.5 : f64
  %e = arith.constant dense<3> : vector<4xi16>
  %f = arith.constant dense<[1, 1, 1, 2]> : vector<4xi32>
  %g = arith.constant dense<[1.5, 1.5]> : vector<2xf16>
  %h = arith.constant -0.0 : f32
  %i = arith.constant 0x7FC00000 : f32
  %j = arith.constant dense<true> : vector<3xi1>
  %k = arith.constant 4 : index
  %l = arith.addi %x, %a : i32
  return
}
"""


def test_constants():
    with compile_context():
        module = mlir.ir.Module.parse(CONSTANTS).operation
        values = [op.results[0] for op in passes.operations(module) if list(op.results)]
        found = [passes.constant_of(value) for value in values]
        assert found[:8] == [2, -1, 1, 2.5, 3, None, 1.5, 0.0] and math.isnan(found[8]) and found[9:] == [1, 4, None]
        assert isinstance(found[0], int) and isinstance(found[3], float)
        argument = passes.host_functions(module)[0].regions[0].blocks[0].arguments[0]
        assert passes.constant_of(argument) is None
        is_two = [passes.is_constant(value, 2) for value in values]
        assert is_two == [True] + [False] * 11
        minus_zero = values[7]
        assert passes.is_constant(minus_zero, -0.0) and not passes.is_constant(minus_zero, 0.0)
        assert passes.is_constant(values[6], 1.5) and passes.is_constant(values[4], 3.0)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda op: passes.tensor_info(op.results[0]), "a tensor is expected"),
        (passes.operands_of, r"the operands of arith\.constant have no names"),
    ],
)
def test_questions_without_an_answer(ask, words):
    with compile_context():
        module = mlir.ir.Module.parse(CONSTANTS).operation
        op = next(op for op in passes.operations(module) if op.name == "arith.constant")
        with pytest.raises(CompileError, match=words) as caught:
            ask(op)
        assert caught.value.hint
