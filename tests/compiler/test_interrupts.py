"""Ctrl-C, SystemExit and time limits come out of compilations and calls as themselves, and leave nothing behind."""

from __future__ import annotations

import ctypes
import functools
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright import ArgumentError, CompileError, PassError
from tilewright.base import interrupts
from tilewright.compiler import hooks
from tilewright.ir import mlir, translate, walk
from tilewright.ir.context import compile_context
from tilewright.targets.host import ffi

SCRIPT = Path(__file__).with_name("interrupting.py")


class Stop(BaseException):
    """As a test's time limit is one."""


def errors():
    return [KeyboardInterrupt(), SystemExit(3), Stop("late")]


def compiles():
    x, out = floats()
    double(x, out)
    assert (out == 2 * x).all()
    cute.compile(double, x, out, target="emu")(out, x)
    assert (x == 2 * out).all()


class Raising(cutlass.Pass):
    """Raises in its `run`, or in a callback."""

    name = "test-raising"

    def __init__(self, error, how):
        super().__init__()
        self.error, self.how = error, how

    def run(self, module):
        getattr(self, self.how)(module)

    def visit(self, *_):
        raise self.error

    def plain(self, module):
        self.visit()

    def walks(self, module):
        module.walk(self.visit)

    def walks_deep(self, module):
        module.walk(lambda op: op.walk(self.visit) or mlir.ir.WalkResult.ADVANCE, mlir.ir.WalkOrder.PRE_ORDER)

    def rewrites(self, module):
        patterns = mlir.rewrite.RewritePatternSet()
        patterns.add("arith.addf", self.visit)
        mlir.rewrite.apply_patterns_and_fold_greedily(module, patterns.freeze())

    def runs_a_pass(self, module):
        manager = mlir.passmanager.PassManager()
        manager.add(self.visit)
        manager.run(module)


class Listed(cutlass.CutlassDSL):
    """A DSL object with a pass list."""

    def __init__(self, listed):
        super().__init__()
        self.listed = listed

    def _get_pipeline(self, pipeline):
        return self.listed if pipeline is None else pipeline


@pytest.mark.parametrize("how", ["plain", "walks", "walks_deep", "rewrites", "runs_a_pass"])
@pytest.mark.parametrize("direct", [False, True])
def test_passes_and_their_callbacks(how, direct):
    for error in errors():
        with pytest.raises(type(error)) as caught:
            if direct:
                Listed(cutlass.PassManager([Raising(error, how)])).jit(double.function)(*floats())
            else:
                cute.compile(double, *floats(), passes=Raising(error, how))
        assert caught.value is error
    compiles()


def test_an_error_of_a_walk_is_that_of_the_pass_with_its_line():
    with pytest.raises(PassError, match="pass test-raising failed") as caught:
        cute.compile(double, *floats(), passes=Raising(ZeroDivisionError("of mine"), "walks"))
    assert caught.value.values["reason"] == "ZeroDivisionError: of mine"
    line = Raising.visit.__code__.co_firstlineno + 1
    assert caught.value.values["raised at"] == f"{__file__}:{line}"


@pytest.mark.parametrize("place", ["hook", "observer", "after_pass", "traced", "user_op", "eq", "constant"])
def test_functions_of_the_user_that_a_compilation_calls(place):
    def raising(error):
        def action(*_):
            raise error

        return action

    @cutlass.dsl_user_op
    def operation(error, loc=None, ip=None):
        raise error

    @cute.jit
    def user_op(x: cute.Tensor, error: cutlass.Constexpr):
        for i in cutlass.range(x.shape[0]):
            if i > 3:
                operation(error)

    @cute.jit
    def traced(x: cute.Tensor, error: cutlass.Constexpr):
        raise error

    @cute.jit
    def constant(x: cute.Tensor, c: cutlass.Constexpr):
        if c == 3:
            cute.printf("never")

    for error in errors():
        x, out = floats()
        odd = type("Odd", (), {"__eq__": raising(error), "__hash__": None})()
        with pytest.raises(type(error)) as caught:
            if place == "hook":
                with hooks.after_compile(raising(error)):
                    cute.compile(double, x, out)
            elif place in ("observer", "after_pass"):
                given = {"observers": [raising(error)]} if place == "observer" else {"after_pass": raising(error)}
                cute.compile(double, x, out, **given)
            elif place in ("traced", "user_op"):
                {"traced": traced, "user_op": user_op}[place](x, error)
            else:
                constant(x, odd)
        assert caught.value is error
    compiles()


def test_a_launch_on_the_emulator(monkeypatch):
    compiled = cute.compile(double, *floats(), target="emu")
    for error in errors():
        with monkeypatch.context() as patch:
            patch.setattr(compiled.device._emulation, "launch", lambda *_, error=error: (_ for _ in ()).throw(error))
            with pytest.raises(type(error)) as caught:
                compiled(*floats())
        assert caught.value is error
    compiled(*floats())


def test_an_interrupt_at_the_first_instruction_of_a_native_callback(monkeypatch):
    """Nothing that Python code does can catch it there; ctypes reports it, and goes on."""
    compiled = cute.compile(double, *floats(), target="emu")
    error = KeyboardInterrupt()
    kind = ctypes.CFUNCTYPE(None)

    def raising():
        raise error

    callback = kind(raising)
    monkeypatch.setattr(compiled.device._emulation, "launch", lambda *_: callback())
    with pytest.raises(KeyboardInterrupt) as caught:
        compiled(*floats())
    assert caught.value is error
    monkeypatch.undo()
    compiled(*floats())


def test_a_hook_for_unraisable_exceptions_is_the_users_again(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)

    def broken():
        raise ZeroDivisionError

    interrupts.reraise_lost(ctypes.CFUNCTYPE(None)(broken))
    assert sys.unraisablehook == seen.append and seen[0].exc_type is ZeroDivisionError


def test_a_function_that_tvm_ffi_calls():
    compiled = cute.compile(double, *floats(), target="emu", options="--enable-tvm-ffi")
    call = ffi.tvm_ffi().Function.__call__
    for error in errors():
        compiled.device._emulation.launch = lambda *_, error=error: (_ for _ in ()).throw(error)
        with pytest.raises(type(error)) as caught:
            call(compiled, *floats())
        assert caught.value is error
    del compiled.device._emulation.launch
    x, out = floats()
    call(compiled, x, out)
    assert (out == 2 * x).all()


@pytest.mark.parametrize("step", ["_made", "tvm_ffi"])
def test_an_interrupt_while_an_error_is_made(monkeypatch, step):
    """The process would end: native code has said that there is an error, and none is set."""
    compiled = cute.compile(double, *floats(), target="emu")
    error = KeyboardInterrupt()

    def raising(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(ffi, step, raising)
        with pytest.raises(KeyboardInterrupt) as caught:
            compiled.device.host(1, 2)
    assert caught.value is error
    with pytest.raises(ArgumentError, match="is not a tensor"):
        compiled(1, 2)


def test_an_interrupt_while_host_code_prints(monkeypatch):
    @cute.jit
    def speak(n: cutlass.Int32):
        cute.printf("number {}", n)

    compiled = cute.compile(speak, 3, target="emu")
    error = Stop()

    class Closed:
        def write(self, _):
            raise error

        def flush(self):
            pass

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Closed())
        with pytest.raises(Stop) as caught:
            compiled(3)
    assert caught.value is error
    compiled(3)


def test_a_translation_that_is_refused_and_interrupted(monkeypatch):
    error = KeyboardInterrupt()

    def raising(_):
        raise error

    with compile_context():
        module = mlir.ir.Module.parse("llvm.func @f() { %0 = arith.constant 1 : i32 llvm.return }").operation
        with pytest.raises(CompileError, match="no translation to LLVM IR"):
            translate.to_llvm_ir(module)
        monkeypatch.setattr(translate, "source_location", raising)
        with pytest.raises(KeyboardInterrupt) as caught:
            translate.to_llvm_ir(module)
    assert caught.value is error


def test_walks_are_those_of_mlir():
    """Order, skipping and ending as MLIR's own walk has them."""
    text = """func.func @f(%c: i1) { scf.if %c { %0 = arith.constant 1 : i32 } else { scf.if %c { } }
    %1 = arith.constant 2 : i32 return }"""
    results = ["ADVANCE", "SKIP", "INTERRUPT"]
    with compile_context():
        module = mlir.ir.Module.parse(text).operation
        for order in (mlir.ir.WalkOrder.PRE_ORDER, mlir.ir.WalkOrder.POST_ORDER, None):
            for result in results[: 3 if order == mlir.ir.WalkOrder.PRE_ORDER else 1] + ["INTERRUPT"]:
                seen = {}
                for name, function in (("native", walk._native_walk()), ("ours", walk._walk)):
                    ops = seen[name] = []

                    def visit(op, ops=ops, result=result):
                        ops.append(op)
                        return getattr(mlir.ir.WalkResult, result if op.name == "scf.if" else "ADVANCE")

                    function(module, visit, *([order] if order is not None else []))
                assert seen["native"] == seen["ours"] and len(seen["ours"]) > 1
        names = [op.name for op in walk.operations(module)]
        assert names[:4] == ["builtin.module", "func.func", "scf.if", "arith.constant"] and len(names) == 10


class Timeout(OSError):
    """An error that a handler raises; ours catch some of its kind."""


@pytest.fixture
def alarm():
    """Gives a function that raises `Timeout` after some seconds, by a handler of several forms."""

    def handler(signum, frame):
        raise Timeout("late")

    def after(seconds, form="plain"):
        forms = {
            "plain": handler,
            "method": type("H", (), {"handle": lambda self, signum, frame: handler(signum, frame)})().handle,
            "partial": functools.partial(lambda note, *given: handler(*given), "note"),
            "lambda": lambda *given: handler(*given),
        }
        signal.signal(signal.SIGALRM, forms[form])
        signal.setitimer(signal.ITIMER_REAL, seconds)

    before = signal.getsignal(signal.SIGALRM)
    yield after
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


class Endless(cutlass.Pass):
    name = "test-endless"

    def run(self, module):
        while True:
            time.sleep(0.01)


@pytest.mark.parametrize("form", ["plain", "method", "partial", "lambda"])
def test_an_error_that_a_signal_handler_raises_in_a_pass(alarm, form):
    alarm(0.05, form)
    with pytest.raises(Timeout):
        cute.compile(double, *floats(), passes=Endless())
    compiles()


def test_an_error_that_a_signal_handler_raises_in_a_tool(alarm, tmp_path, monkeypatch):
    tool = tmp_path / "bin" / "ptxas"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nsleep 20\n")
    tool.chmod(0o755)
    monkeypatch.setenv("CUDA_TOOLKIT_PATH", str(tmp_path))
    compiled = cute.compile(double, *floats(), target="emu")
    alarm(0.2)
    with pytest.raises(Timeout):
        compiled.stages["cubin"]
    monkeypatch.delenv("CUDA_TOOLKIT_PATH")
    assert cute.compile(double, *floats(), target="emu").stages["cubin"].startswith(b"\x7fELF")


def test_an_error_that_a_signal_handler_raises_in_a_run(alarm):
    @cute.kernel
    def kernel(x: cute.Tensor, n: cutlass.Int32):
        for _ in range(n):
            x[0] = x[0] * 0.5 + 1.0

    @cute.jit
    def long(x: cute.Tensor, n: cutlass.Int32):
        kernel(x, n).launch(grid=1, block=1)

    x = np.zeros(4, np.float32)
    compiled = cute.compile(long, x, 1, target="emu")
    for call in (compiled, long):
        alarm(0.3)
        with pytest.raises(Timeout):
            call(x, 1 << 30)
    x[0] = 2
    compiled(x, 3)
    assert x[0] == 2


def test_errors_are_told_from_those_of_signal_handlers():
    def ordinary(number, frame):
        raise ValueError("no signal")

    for arguments in ((1, None), (None, sys._getframe()), ("x", 3)):
        with pytest.raises(ValueError, match="no signal") as caught:
            ordinary(*arguments)
        assert not interrupts.raised_by_signal(caught.value)
    assert not interrupts.is_outside(None) and not interrupts.is_outside(GeneratorExit())


def test_work_that_is_not_interrupted(alarm):
    done = []

    def work():
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            pass
        done.append(5)
        return 5

    before = signal.getsignal(signal.SIGINT)
    assert interrupts.uninterrupted(work) == 5
    alarm(0.05)
    with pytest.raises(Timeout) as caught:
        interrupts.uninterrupted(work)
    assert interrupts.raised_by_signal(caught.value)
    alarm(0.05)
    with pytest.raises(Timeout):
        interrupts.uninterrupted(lambda: interrupts.uninterrupted(work) and done.append(6))
    assert done == [5, 5, 5, 6] and signal.getsignal(signal.SIGINT) is before

    def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupts.uninterrupted(broken)
    assert signal.getsignal(signal.SIGINT) is before


def test_several_signals_come_while_work_is_not_interrupted(monkeypatch):
    heard = []

    def quiet(number, frame):
        heard.append((number, frame.f_code.co_name))

    def loud(number, frame):
        raise Timeout

    before = {number: signal.signal(number, quiet) for number in (signal.SIGUSR1, signal.SIGUSR2)}
    signal.signal(signal.SIGUSR2, loud)
    try:

        def work():
            signal.raise_signal(signal.SIGUSR2)
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGINT)
            heard.append("done")

        with pytest.raises(Timeout):  # the first of the errors
            interrupts.uninterrupted(work)
        assert heard == ["done", (signal.SIGUSR1, "work")]
        # A handler that the work sets stays.
        interrupts.uninterrupted(lambda: signal.signal(signal.SIGUSR2, quiet))
        assert signal.getsignal(signal.SIGUSR2) is quiet and signal.getsignal(signal.SIGUSR1) is quiet
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_an_interrupt_keeps_handlers_from_being_put_back():
    # As if an interrupt had come in `end`, after it said that the work is done.
    before = signal.getsignal(signal.SIGINT)
    later = interrupts._Later()
    try:
        later.begin()
        later.under_way = False
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        later.end()


@pytest.mark.parametrize("kind", ["keyboard", "base", "error"])
@pytest.mark.parametrize("cached", [False, True])
def test_signals_at_many_instants(kind, cached, request):
    if cached:
        request.getfixturevalue("cache_dir")
    command = [sys.executable, str(SCRIPT), "1", "70", "1500", kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and "Exception ignored" not in done.stderr, done.stdout + done.stderr
    assert done.stdout.endswith("of 70 ended\n")


def test_an_import_of_a_dialect_that_is_interrupted():
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "interrupted\narith.constant ConstantOp\n", done.stdout + done.stderr


IMPORTS = """
import signal, sys
from tilewright.ir import mlir

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "mlir.dialects._arith_ops_gen":
            signal.raise_signal(signal.SIGINT)

mlir.ir
sys.meta_path.insert(0, Slow())
with mlir.ir.Context(), mlir.ir.Location.unknown():
    try:
        mlir.ir.Module.parse("%0 = arith.constant 1 : i32").body.operations[0]
    except KeyboardInterrupt:
        print("interrupted")
    op = mlir.ir.Module.parse("%0 = arith.constant 1 : i32").body.operations[0]
    print(op.operation.name, type(op).__name__)
"""
