"""Functions as Python objects: they cannot be changed, visitors see everything, MLIR reads what is written."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.cute as cute
from examples.tenstorrent import row_sum
from tests.tenstorrent.programs import before, error, gemm_module, kernels, random, zeros
from tilewright import CompileError, PassError
from tilewright.ir import mlir
from tilewright.ir.context import compile_context
from tilewright.targets.artifact_bytes import from_bytes, to_bytes
from tilewright.targets.target import device_of
from tilewright.targets.tenstorrent import dialect
from tilewright.targets.tenstorrent.tir.data import module_from_json, module_to_json
from tilewright.targets.tenstorrent.tir.frozen import thaw
from tilewright.targets.tenstorrent.tir.write_mlir import module_text
from tilewright.tenstorrent import (
    Evaluate,
    For,
    IfThenElse,
    IntImm,
    IRModule,
    IRMutator,
    LetStmt,
    PrimFunc,
    SeqStmt,
    StmtVisitor,
    T,
    Var,
    call,
    evaluate,
    func_pass,
    ir_module,
    let,
    module_pass,
    seq,
    verify,
    walk,
)


@ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 32), "float32"), n: T.i32):
        for i, j in T.grid(64, 32):
            A[i, j] = A[j, i]
        T.evaluate(T.call("tt.noc.read_barrier"))


MAIN = Module["main"]


def test_what_a_function_says():
    assert MAIN.script() == "\n".join((
        "def main(A: Buffer((64, 32), 'f32'), n: i32):",
        "    for i0 in range(64):",
        "        for i1 in range(32):",
        "            cute.store(cute.load(A, i1, i0), A, i0, i1)",
        "    tt.noc.read_barrier()",
    ))  # fmt: skip
    assert str(Module) == MAIN.script() + "\n" and list(Module) == ["main"]
    assert [name.name_hint for name in Module.functions] == ["main"]
    (buffer,) = MAIN.buffer_map.values()
    assert (buffer.name, buffer.shape, buffer.dtype, buffer.strides) == ("A", (64, 32), "f32", (32, 1))


def test_nothing_can_be_changed():
    func = MAIN.with_attr("tt.nested", {"list": [1, {"x": 2}]})
    for write in (
        lambda: func.attrs.__setitem__("key", 1),
        lambda: func.attrs["tt.nested"].__setitem__("list", 1),
        lambda: func.attrs["tt.nested"]["list"][1].__setitem__("x", 1),
        lambda: func.attrs.__delitem__("tt.nested"),
        lambda: func.buffer_map.__setitem__(func.params[0], None),
        lambda: Module.functions.__setitem__("main", None),
    ):
        with pytest.raises(PassError, match="a pass may not write"):
            write()
    with pytest.raises(AttributeError):
        func.body = SeqStmt()
    assert thaw(func.attrs) == {"tt.nested": {"list": [1, {"x": 2}]}}
    assert "tt.nested" not in MAIN.attrs and func.without_attr("tt.nested").attrs == {}


def test_with_makes_new_functions():
    (param, _) = MAIN.params
    made = MAIN.with_buffer(param, MAIN.buffer_map[param].with_attr("tt.layout", "interleaved")).with_name("other")
    assert made.buffer("A").attrs["tt.layout"] == "interleaved" and made.name == "other"
    assert not MAIN.buffer("A").attrs and MAIN.buffer("B") is None


class Count(StmtVisitor):
    def __init__(self):
        self.names, self.variables = [], 0

    def visit_call(self, op):
        self.names.append(op.op.name)
        super().visit_call(op)

    def visit_var(self, op):
        self.variables += 1


def test_a_visitor_sees_everything():
    counter = Count()
    counter.visit(MAIN.body)
    assert counter.names == ["cute.store", "cute.load", "tt.noc.read_barrier"] and counter.variables == 6


class Forgets(StmtVisitor):
    def visit_for(self, op):
        pass


def test_a_visitor_that_forgets_children_is_told():
    with pytest.raises(PassError, match=r"Forgets.visit_for does not visit the statements inside") as caught:
        Forgets().visit(MAIN.body)
    assert "super().visit_for(op)" in str(caught.value) and "for i1 in range(32)" in str(caught.value)


class Twice(IRMutator):
    def visit_evaluate(self, op):
        return SeqStmt((op, op)) if op.value.op.name == "cute.store" else None


def test_a_mutator_makes_a_copy():
    made = Twice().visit(MAIN.body)
    assert [line.strip()[:10] for line in made.lines()] == ["for i0 in ", "for i1 in ", "cute.store", "cute.store"]
    assert MAIN.body.lines()[-1] == "tt.noc.read_barrier()"
    branch = IfThenElse(IntImm(1), MAIN.body, MAIN.body)
    assert len(IRMutator().visit(branch).lines()) == len(branch.lines())


def test_modules_go_through_text(traced):
    module = before("verify-protocol", traced)
    text = module_to_json(module)
    again = module_from_json(text)
    assert again.script() == module.script() and module_to_json(again) == text
    verify(again, "reading")
    for name, item in module.functions.items():
        assert isinstance(again[name], PrimFunc) == isinstance(item, PrimFunc)
    with pytest.raises(
        CompileError, match=r"the program of an artifact cannot be read[\s\S]*hint: compile the function again"
    ):
        module_from_json('{"variables": []}')


def test_an_artifact_goes_through_bytes():
    x, y = random(64, 64), zeros(64, 1)
    artifact = cute.compile(row_sum.main, x, y, target="tenstorrent", options="--dst bf16 --core-grid 2x1").artifact
    copy = from_bytes(to_bytes(artifact))
    device_of("tenstorrent")(copy, True).run([x, y])
    assert error(y, x.astype(np.float64).sum(1, keepdims=True)) < 2e-2


def parsed(module):
    with compile_context():
        dialect.load()
        made = mlir.ir.Module.parse(module_text(module)).operation
        made.verify()
        return str(made)


def test_the_text_of_stage_tt_is_mlir(traced):
    text = parsed(before("verify-protocol", traced))
    assert text.count("func.func") == 3 and '"tt.cb_push_back"' in text and 'tt.kernel_role = "reader"' in text
    assert text == parsed(before("verify-protocol", traced))


def test_text_of_all_kinds_of_statements():
    x, buffer = Var("k0"), Var("cb", "!tt.cb")
    then = SeqStmt((evaluate("tt.cb.push_back", buffer, 1), Evaluate(call("mine", x, extern=True))))
    func = PrimFunc("f", (x,), body=seq([
        let(buffer, "tt.alloc_cb", format="bf16", tiles=1, name="a", kind="input"),
        LetStmt(y := Var("y"), call("arith.addi", x, 1, dtype="i32")),
        IfThenElse(call("arith.cmpi", x, y, predicate=2, dtype="i1"), then, then),
        For(Var("i"), y, then, "tiles"),
    ]))  # fmt: skip
    text = parsed(IRModule({"f": func}))
    assert 'callee = "mine"' in text and "scf.if" in text and "arith.cmpi slt" in text


@pytest.mark.parametrize(
    ("stmt", "message"),
    [
        (
            evaluate("tt.cb.push", Var("x"), 1),
            "pass p left tt.cb.push against the rules of the dialect: there is no such",
        ),
        (evaluate("tt.cb.push_back", Var("cb", "!tt.cb")), "it takes 2 operands"),
        (evaluate("tt.cb.push_back", 3, 1), "operand cb is a cb, not 3: i32"),
        (evaluate("tt.dst.acquire", 1), "it takes 0 operands"),
        (evaluate("tt.sfpu.unary", 0), "attribute kind is missing"),
        (evaluate("tt.cb.push_back", Var("cb", "!tt.cb"), 1), "pass p left a use of cb where it has no value"),
        (For(Var("i"), Var("n"), SeqStmt()), "pass p left a use of n where it has no value"),
    ],
)
def test_rules_of_the_dialect(stmt, message):
    with pytest.raises(PassError, match=message):
        verify(IRModule({"f": PrimFunc("f", body=SeqStmt((stmt,)))}), "pass p")


def test_a_variable_of_a_loop_ends_with_it():
    i = Var("i")
    use = Evaluate(call("keep", i))
    inside = PrimFunc("f", body=SeqStmt((For(i, IntImm(2), use),)))
    verify(IRModule({"f": inside}), "pass p")
    with pytest.raises(PassError, match="a use of i where it has no value"):
        verify(IRModule({"f": inside.with_body(SeqStmt((*inside.body.seq, use)))}), "pass p")


def test_statements_outside_of_a_function():
    with pytest.raises(PassError, match="statements are written in a function"):
        T.evaluate(0)


@func_pass(opt_level=0)
def NoReturn(func, mod, ctx):
    """Forgets its result."""


@module_pass(opt_level=0)
def NoModule(mod, ctx):
    """Forgets its result."""


@func_pass(opt_level=0)
def Fails(func, mod, ctx):
    """Raises."""
    return func.attrs["missing"]


@pytest.mark.parametrize(
    ("apply", "message"),
    [
        (lambda: NoReturn(MAIN, Module, None), "pass no-return gave NoneType in place of a function"),
        (lambda: NoReturn(3), "pass no-return takes a PrimFunc or an IRModule, not int"),
        (lambda: NoModule(Module), "pass no-module gave NoneType in place of a module"),
        (lambda: NoModule()(MAIN), "pass no-module takes an IRModule, not PrimFunc"),
        (lambda: Fails(Module), "pass fails failed"),
        (lambda: func_pass(lambda func, mod, ctx: func), "opt_level is an integer"),
    ],
)
def test_passes_that_are_wrong(apply, message):
    with pytest.raises(ValueError, match=message):
        apply()


def test_all_nodes_are_walked():
    module = before("verify-protocol", gemm_module())
    reader = kernels(module)["reader"]
    assert sum(isinstance(item, For) for item in walk(reader.body)) == str(reader).count("for ")
