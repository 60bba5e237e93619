"""The code of the quickstart for passes (seed 004), with imports changed: templates, patterns, tests, debugging."""

from __future__ import annotations

import io
import pdb  # noqa: T100
import subprocess
import sys

import pytest

from tests.tenstorrent.programs import before, gemm_module, kernels
from tilewright import PassError
from tilewright.tenstorrent import (
    STANDARD,
    Call,
    Evaluate,
    GlobalVar,
    InferLayout,
    InsertDst,
    IRModule,
    IRMutator,
    Partition,
    PrimFunc,
    SeqStmt,
    StmtVisitor,
    StringImm,
    T,
    Var,
    analyze_loops,
    build_protocol_sequence,
    call,
    call_extern,
    debug_print_ir,
    find_intrinsic_calls,
    func_pass,
    get_buffer_info,
    ir_module,
    module_pass,
    process_value,
    run_pipeline,
)


@ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((256, 256), "float32")):
        for i, j in T.grid(256, 256):
            A[i, j] = 0.0
        T.evaluate(T.call_extern("void", "old_intrinsic", "cb_a", 1))


@func_pass(opt_level=0)
def MyFirstPass(func, mod, ctx):
    """Your pass description here"""
    func = func.with_attr("tt.my_pass_ran", True)
    return func


def test_the_first_pass_is_called_in_three_ways():
    for result in (
        MyFirstPass(Module["main"], Module, None), MyFirstPass()(Module["main"]), MyFirstPass(Module)["main"],
    ):  # fmt: skip
        assert result.attrs["tt.my_pass_ran"] == True  # noqa: E712
    assert "tt.my_pass_ran" not in Module["main"].attrs


@func_pass(opt_level=0)
def AddMetadataPass(func, mod, ctx):
    """Add metadata to function or buffers"""
    func = func.with_attr("tt.some_metadata", {"key": "value"})
    for param in func.params:
        if param in func.buffer_map:
            buffer = func.buffer_map[param]
            func = func.with_buffer(param, buffer.with_attr("tt.layout", "interleaved"))
    return func


def test_template_1():
    func = AddMetadataPass(Module["main"], Module, None)
    assert func.attrs["tt.some_metadata"] == {"key": "value"}
    assert func.buffer("A").attrs["tt.layout"] == "interleaved"
    assert not Module["main"].attrs and not Module["main"].buffer("A").attrs


@func_pass(opt_level=0)
def AnalysisPass(func, mod, ctx):
    """Analyze IR without modification"""

    class Analyzer(StmtVisitor):
        def __init__(self):
            super().__init__()
            self.stats = {"calls": 0, "loops": 0}

        def visit_evaluate(self, op):
            if isinstance(op.value, Call):
                self.stats["calls"] += 1
            super().visit_evaluate(op)

        def visit_for(self, op):
            self.stats["loops"] += 1
            super().visit_for(op)

    analyzer = Analyzer()
    analyzer.visit(func.body)
    return func.with_attr("tt.analysis", analyzer.stats)


def test_template_2():
    assert AnalysisPass(Module["main"], Module, None).attrs["tt.analysis"] == {"calls": 2, "loops": 2}


@func_pass(opt_level=0)
def TransformPass(func, mod, ctx):
    """Transform IR structure"""

    class Transformer(IRMutator):
        def visit_evaluate(self, op):
            if self._matches_pattern(op):
                return self._create_replacement(op)
            return super().visit_evaluate(op)

        def _matches_pattern(self, op):
            return isinstance(op.value, Call) and op.value.op.name == "old_intrinsic"

        def _create_replacement(self, op):
            return Evaluate(call_extern("void", "new_intrinsic", op.value.args[0]))

    return func.with_body(Transformer().visit(func.body))


def test_template_3():
    func = TransformPass()(Module["main"])
    (made,) = find_intrinsic_calls(func, "new_intrinsic")
    assert made.value.args == (StringImm("cb_a"),) and not find_intrinsic_calls(func, "old_intrinsic")
    assert analyze_loops(func) == analyze_loops(Module["main"])


@module_pass(opt_level=0)
def SplitPass(mod, ctx):
    """Split one function into multiple"""
    new_funcs = {}
    for gvar, func in mod.functions.items():
        if not isinstance(func, PrimFunc):
            new_funcs[gvar] = func
            continue
        new_funcs[GlobalVar(f"{gvar.name_hint}_part1")] = func.with_attr("part", 1)
        new_funcs[GlobalVar(f"{gvar.name_hint}_part2")] = func.with_attr("part", 2)
    return IRModule(new_funcs)


def test_template_4():
    host = object()
    made = SplitPass(IRModule({**Module.functions, "host": host}))
    assert list(made) == ["main_part1", "main_part2", "host"] and made["host"] is host
    assert made["main_part2"].attrs["part"] == 2


def test_the_templates_are_short():
    """A pass by a template has at most 20 lines."""
    import inspect

    for item in (AddMetadataPass, TransformPass, SplitPass, AnalysisPass):
        assert len(inspect.getsource(type(item).function).splitlines()) <= 21  # with the decorator


def test_patterns(capsys):
    func = Module["main"]
    assert get_buffer_info(func, "A") == {"shape": (256, 256), "dtype": "f32", "strides": (256, 1), "attrs": {}}
    assert get_buffer_info(func, "B") is None
    assert analyze_loops(func) == [
        {"var": "i0", "extent": 256, "depth": 0, "kind": "serial"},
        {"var": "i1", "extent": 256, "depth": 1, "kind": "serial"},
    ]
    sequence = build_protocol_sequence(Var("cb_a", "!tt.cb"), 3)
    assert [line.split("(")[0].split()[-1] for line in sequence.lines()] == [
        "tt.cb.reserve_back", "tt.cb.write_ptr", "tt.noc.read_tile", "tt.noc.read_barrier", "tt.cb.push_back",
    ]  # fmt: skip
    debug_print_ir(func.body)
    printed = capsys.readouterr().out
    assert "SeqStmt:\n  For i0 in 256:\n" in printed and "Evaluate: old_intrinsic('cb_a', 1)" in printed
    assert [process_value(item) for item in (call("f", 1).args[0], StringImm("x"), Var("v"), call("f"))] == [
        1, "x", "v", "f()",
    ]  # fmt: skip


def test_a_breakpoint_in_a_pass():
    typed, shown = io.StringIO("p func.name\np sorted(func.attrs)\nc\n"), io.StringIO()

    @func_pass(opt_level=0)
    def DebuggablePass(func, mod, ctx):
        """Stops in the debugger."""
        pdb.Pdb(stdin=typed, stdout=shown, nosigint=True, readrc=False).set_trace()
        return func

    DebuggablePass(Module["main"].with_attr("tt.x", 1), Module, None)
    assert "'main'" in shown.getvalue() and "['tt.x']" in shown.getvalue()


class TestMyPass:
    def setup_method(self):
        self.simple_kernel = Module["main"]
        self.complex_kernel = gemm_module()

    def test_basic_functionality(self):
        assert MyFirstPass()(self.simple_kernel).attrs["tt.my_pass_ran"]
        assert all(func.attrs["tt.my_pass_ran"] for func in MyFirstPass()(self.complex_kernel).prim_funcs)

    @pytest.mark.parametrize("size", [128, 256, 512])
    def test_different_sizes(self, size):
        (func,) = Partition(InferLayout(gemm_module(size))).prim_funcs
        assert func.attrs["tt.work_partition"]["total"] == (size // 64) ** 2

    def test_error_handling(self):
        invalid_kernel = PrimFunc("no_grid")
        with pytest.raises(ValueError, match="no_grid has no grid"):
            Partition()(invalid_kernel)


def test_a_pipeline_is_checked_after_every_pass(capsys):
    @func_pass(opt_level=0)
    def Breaks(func, mod, ctx):
        """Leaves an operation that there is not."""
        return func.with_body(SeqStmt((*func.body.seq, Evaluate(call("tt.cb.pushback", 1)))))

    after = []
    made = run_pipeline(STANDARD, gemm_module(), after_each=lambda item, module: after.append(item.name))
    assert after == [item.name for item in STANDARD] and len(kernels(made)) == 3
    with pytest.raises(PassError, match=r"Invalid after pass 2: pass breaks left tt.cb.pushback"):
        run_pipeline([InferLayout, Partition, Breaks], gemm_module())


def test_pitfall_1():
    def bad_pass(func, mod, ctx):
        func.attrs["new_key"] = "value"
        return func

    with pytest.raises(PassError, match=r"a pass may not write 'new_key'"):
        func_pass(opt_level=0)(bad_pass)(Module["main"], Module, None)


def test_debugging_commands():
    func = InferLayout(gemm_module()).prim_funcs[0]
    assert func.script() == str(func)
    assert dict(func.attrs.items()) == {"tt.grid": (2, 2, 1)}
    listed = [f"{buf.name}: {buf.shape} {buf.dtype}" for buf in func.buffer_map.values()]
    assert listed == [f"{name}: (128, 128) bf16" for name in "abc"]


def test_every_pass_is_documented():
    import importlib

    from tilewright.tenstorrent import Emit, VerifyProtocol

    for item in (*STANDARD, VerifyProtocol, Emit):
        text = importlib.import_module(type(item).__module__).__doc__
        assert text.strip().splitlines()[0] == f"Pass Name: {item.name}"
        for section in ("Purpose:", "Input Expectations:", "Output Guarantees:", "Example:", "Before:", "Testing:"):
            assert section in text, (item.name, section)
        assert f"tests/tenstorrent/test_{item.name.replace('-', '_')}.py" in text


def test_edit_and_see(tmp_path, capsys):
    """A pass in a file of its own: edited, it takes effect in the next process, in about a second."""
    source = (
        "from tilewright.tenstorrent import T, func_pass, ir_module\n\n"
        "@func_pass(opt_level=0)\ndef MyNewPass(func, mod, ctx):\n    return func.with_attr('tt.value', VALUE)\n\n"
        "@ir_module\nclass Module:\n    @T.prim_func\n    def main(A: T.Buffer((256, 256), 'float32')):\n"
        "        T.evaluate(0)\n\nprint(MyNewPass()(Module['main']).attrs['tt.value'])\n"
    )
    file = tmp_path / "my_new_pass.py"
    file.write_text(source.replace("VALUE", "1"))
    exec(compile(file.read_text(), str(file), "exec"), {"__name__": "my_new_pass"})
    file.write_text(source.replace("VALUE", "2"))
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True)
    assert (capsys.readouterr().out.strip(), done.stdout.strip()) == ("1", "2")


def test_insert_dst_as_the_documentation_has_it():
    func = kernels(InsertDst(before("insert-dst", gemm_module())))["compute"]
    assert "tt.dst.acquire()" in func.script()
