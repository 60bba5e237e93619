"""Host functions as a whole: results, printing, errors, reloading, threads, lifetime, cost."""

import ctypes
import gc
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.host.programs import SCALE, SCALE_IR, Recorder, dyn, static, tensor
from tilewright.base.errors import ArgumentError, CompileError, LaunchError, TilewrightError
from tilewright.base.signature import ScalarParam, Signature
from tilewright.ir.llvm import LlvmError, emit_object
from tilewright.targets.host import bundle, ffi
from tilewright.targets.host.function import HostFunction
from tilewright.targets.host.irtext import symbol
from tilewright.targets.host.loader import load_object


def child(code, *arguments):
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_host_code_works_on_numpy_and_torch_memory():
    function = HostFunction(SCALE_IR, SCALE)
    x = np.arange(10, dtype=np.float32)
    assert function(x, 2.5) is None
    assert np.array_equal(x, np.arange(10) * 2.5)
    y = torch.ones(7)
    function(y[2:5], 3)
    assert y.tolist() == [1, 1, 3, 3, 3, 1, 1]
    function(np.zeros(0, np.float32), 1.0)


def test_math_functions():
    text = "declare double @llvm.sin.f64(double)\ndeclare float @powf(float, float)\n" \
        "define i32 @f(ptr %x, i32 %n, ptr %table) {\n  %v = load float, ptr %x\n  %d = fpext float %v to double\n" \
        "  %s = call double @llvm.sin.f64(double %d)\n  %t = fptrunc double %s to float\n" \
        "  %p = call float @powf(float %v, float 3.0)\n  %r = fadd float %t, %p\n  store float %r, ptr %x\n" \
        "  ret i32 0\n}\n"  # fmt: skip
    x = np.full(1, 1.5, np.float32)
    HostFunction(text, Signature("f", (tensor(),)))(x)
    assert x[0] == np.float32(np.float32(np.sin(np.float64(1.5))) + np.float32(3.375))


PRINT = """
declare i32 @__tw_printf(ptr, ptr, ...)
@format = private constant [21 x i8] c"n = %d, x = %g, %s!\\0A\\00"
@word = private constant [4 x i8] c"h\\C3\\A9\\00"
define i32 @show(i32 %n, double %x, ptr %table) {
  %r = call i32 (ptr, ptr, ...) @__tw_printf(ptr %table, ptr @format, i32 %n, double %x, ptr @word)
  ret i32 0
}
"""


def test_printf_goes_to_sys_stdout(capsys):
    function = HostFunction(PRINT, Signature("show", (ScalarParam("n", "i32"), ScalarParam("x", "f64"))))
    print("before")
    function(-3, 0.5)
    print("after")
    assert capsys.readouterr().out == "before\nn = -3, x = 0.5, hé!\nafter\n"


def test_printf_of_a_long_text(capsys):
    text = "declare i32 @__tw_printf(ptr, ptr, ...)\n@f = private constant [7 x i8] c\"%*d%d\\0A\\00\"\n" \
        "define i32 @show(ptr %table) {\n  %r = call i32 (ptr, ptr, ...) @__tw_printf(ptr %table, ptr @f, i32 100000," \
        " i32 7, i32 8)\n  ret i32 0\n}\n"  # fmt: skip
    HostFunction(text, Signature("show", ()))()
    assert capsys.readouterr().out == " " * 99999 + "78\n"


RAISE = """
declare i32 @__tw_raise(ptr, ptr, ptr)
@kind = private constant [{kind_size} x i8] c"{kind}\\00"
@text = private constant [{text_size} x i8] c"{text}\\00"
define i32 @check(i32 %n, ptr %table) {{
  %ok = icmp sgt i32 %n, 0
  br i1 %ok, label %good, label %bad
good:
  ret i32 0
bad:
  %r = call i32 @__tw_raise(ptr %table, ptr @kind, ptr @text)
  ret i32 %r
}}
"""


@pytest.mark.parametrize(
    ("kind", "class_"),
    [("LaunchError", LaunchError), ("ArgumentError", ArgumentError), ("TilewrightError", TilewrightError),
     ("ValueError", ValueError), ("NoSuchError", RuntimeError), ("annotations", RuntimeError)],
)  # fmt: skip
def test_host_assertions(kind, class_):
    text = "n must be positive"
    source = RAISE.format(kind=kind, kind_size=len(kind) + 1, text=text, text_size=len(text) + 1)
    function = HostFunction(source, Signature("check", (ScalarParam("n", "i32"),)))
    function(1)
    with pytest.raises(class_, match=text) as caught:
        function(0)
    assert type(caught.value) is class_
    function(1)


@pytest.mark.parametrize("name", ["<lambda>", "größe", "a b;c", 'quo"te', "back\\slash", "100%d"])
def test_names_of_every_kind(name):
    signature = Signature(name, (ScalarParam("n", "i32"),))
    text = f"define i32 {symbol(name)}(i32 %n, ptr %t) {{\n  ret i32 %n\n}}\n"
    function = HostFunction(text, signature)
    function(0)
    with pytest.raises(LaunchError) as caught:
        function(3)
    assert caught.value.message == f"{name} ended with error 3"


def test_other_results_are_errors_too():
    function = HostFunction("define i32 @f(i32 %n, ptr %t) {\n  ret i32 %n\n}\n",
                            Signature("f", (ScalarParam("n", "i32"),)))  # fmt: skip
    function(0)
    for status in (1, -3, -7, 2**31 - 1):  # -1 and -2 say that an error is set
        with pytest.raises(LaunchError, match=f"f ended with error {status}"):
            function(status)


def test_wrong_text_is_an_error_with_its_line():
    with pytest.raises(LlvmError) as caught:
        HostFunction(SCALE_IR.replace("fmul", "fmuk"), SCALE)
    assert caught.value.line == 12


@pytest.mark.parametrize(
    ("text", "message"),
    [("define i32 @other(ptr %x, i32 %n, ptr %t)", "does not define the function 'f'"),
     ("define i32 @f(ptr %x, i64 %n, ptr %t)", "expected  i32 (ptr, i32, ptr)\n  found     i32 (ptr, i64, ptr)"),
     ("define i32 @f(ptr %x, i32 %n)", "found     i32 (ptr, i32)")],
)  # fmt: skip
def test_entry_must_fit_the_signature(text, message):
    with pytest.raises(CompileError) as caught:
        HostFunction(f"{text} {{\n  ret i32 0\n}}\n", Signature("f", (tensor(),)))
    assert message in str(caught.value)


def test_unknown_function_is_named():
    text = "declare i32 @system(ptr)\ndefine i32 @f(ptr %t) {\n  %r = call i32 @system(ptr %t)\n  ret i32 %r\n}\n"
    with pytest.raises(CompileError, match="unknown symbol 'system'"):
        HostFunction(text, Signature("f", ()))


RELOAD = """
import sys
class Block:
    def find_spec(self, name, *rest):
        if name.split(".")[0] in ("mlir", "llvm", "torch"):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import numpy as np
from tilewright.base.signature import Dim, ScalarParam, Signature, TensorParam
from tilewright.targets.host.function import HostFunction
signature = Signature("scale", (TensorParam("x", "f32", (Dim(),), (Dim(value=1),), 4), ScalarParam("factor", "f32")))
function = HostFunction(open(sys.argv[1], "rb").read(), signature)
x = np.ones(3, np.float32)
function(x, 4.0)
print(x.tolist(), "libLLVM" in open("/proc/self/maps").read())
"""


def test_stored_objects_need_neither_mlir_nor_llvm(tmp_path):
    path = tmp_path / "scale.object"
    path.write_bytes(HostFunction(SCALE_IR, SCALE).object_bytes)
    done = child(RELOAD, str(path))
    assert done.stdout == "[4.0, 4.0, 4.0] False\n", done.stderr


def test_same_text_gives_the_same_object():
    assert bundle.compile_program(SCALE_IR, SCALE, entry="scale") == bundle.compile_program(
        SCALE_IR, SCALE, entry="scale"
    )


def test_objects_hold_no_address_of_the_process(tmp_path):
    path = tmp_path / "object"
    code = (
        "import sys; from pathlib import Path; from tests.host.programs import SCALE, SCALE_IR\n"
        "from tilewright.targets.host import bundle\n"
        "Path(sys.argv[1]).write_bytes(bundle.compile_program(SCALE_IR, SCALE, entry='scale'))"
    )
    done = child(code, str(path))
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == bundle.compile_program(SCALE_IR, SCALE, entry="scale")


@pytest.mark.parametrize("program", [b"", b"\x7fELF", b"tilewright host 2\0", b"tilewright host 2\0" + bytes(64)])
def test_rubbish_is_no_program(program):
    with pytest.raises(CompileError):
        HostFunction(program, SCALE)


# Lifetime


def is_mapped(address):
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high = (int(part, 16) for part in line.split()[0].split("-"))
        if low <= address < high:
            return True
    return False


def test_memory_goes_with_the_function():
    class Owner:
        pass

    owner = Owner()
    alive = weakref.ref(owner)
    function = HostFunction(SCALE_IR, SCALE, keep_alive=owner)
    loaded = load_object(bundle.objects(function.object_bytes)[1],
                         resolve=lambda name: 1)  # fmt: skip
    address = loaded.address("__tvm_ffi_scale")
    assert is_mapped(address)
    del loaded, owner
    gc.collect()
    assert not is_mapped(address)
    inner = function.function
    del function
    gc.collect()
    assert alive() is not None  # the tvm-ffi function still holds everything
    x = np.ones(2, np.float32)
    inner(x, 2.0)
    assert x.tolist() == [2, 2]
    del inner
    gc.collect()
    assert alive() is None


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_no_memory_is_lost():
    program = HostFunction(SCALE_IR, SCALE).object_bytes
    read_only = np.ones(64, np.float32)
    read_only.flags.writeable = False
    recorder = Recorder(tensor())

    def work(count):
        for _ in range(count):
            function = HostFunction(program, SCALE)
            function(np.ones(64, np.float32), 2.0)
            recorder.leaves(read_only)
            recorder.calls.clear()
            with pytest.raises(ArgumentError):
                function(read_only.astype(np.float64), 2.0)

    work(100)
    gc.collect()
    before = resident_bytes()
    work(500)
    gc.collect()
    assert resident_bytes() - before < 500 * 2000  # a mapping kept would be 12 KB each


def test_arguments_are_released():
    recorder = Recorder(tensor())
    x = np.ones(4, np.float32)
    x.flags.writeable = False
    before = sys.getrefcount(x)
    for _ in range(10):
        recorder.leaves(x)
        with pytest.raises(ArgumentError):
            recorder.function(x, 1)
    gc.collect()
    assert sys.getrefcount(x) == before


# Threads


def test_threads_call_one_function():
    barrier = threading.Barrier(4)

    class Mine(Exception):
        pass

    def launch(config, kernel, params):
        value = ctypes.c_int32.from_address(params[0]).value
        if value % 2:
            raise Mine(value)

    recorder = Recorder(ScalarParam("n", "i32"))
    function = HostFunction(recorder.function.object_bytes, recorder.signature, kernels=1, launch=launch)

    def work(number):
        barrier.wait()
        for step in range(200):
            value = number * 1000 + step
            if value % 2:
                with pytest.raises(Mine) as caught:
                    function(value)
                assert caught.value.args == (value,)
            else:
                function(value)
            with pytest.raises(ArgumentError, match=f"float {number}.5"):
                function(number + 0.5)
        return number

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [0, 1, 2, 3]


def test_threads_compile_and_load():
    def work(number):
        signature = Signature(f"f{number}", (tensor(),))
        text = f"define i32 @f{number}(ptr %x, i32 %n, ptr %t) {{\n  store float {number}.0, ptr %x\n  ret i32 0\n}}\n"
        x = np.zeros(1, np.float32)
        HostFunction(text, signature)(x)
        return x[0]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(16))) == list(range(16))


# The gate to tvm-ffi

IMPORT = """
import sys, threading
from tilewright.targets.host import ffi
seen = []
def other():
    import colorsys
    seen.append(True)
thread = threading.Thread(target=other)
ffi.tvm_ffi()
thread.start(); thread.join()
print("torch" in sys.modules, seen)
import torch
from tests.host.programs import SCALE, SCALE_IR
from tilewright.targets.host.function import HostFunction
function = HostFunction(SCALE_IR, SCALE)
x = torch.ones(3)
function(x, 2.0)
print(x.tolist())
"""


@pytest.mark.slow
def test_importing_tvm_ffi_imports_no_torch_but_takes_its_tensors_later():
    done = child(IMPORT)
    assert done.stdout == "False [True]\n[2.0, 2.0, 2.0]\n", done.stderr


def test_importing_the_module_is_light():
    done = child("import sys, tilewright.targets.host.function\n"
                 "print([n for n in ('tvm_ffi', 'torch', 'mlir') if n in sys.modules])")  # fmt: skip
    assert done.stdout == "[]\n", done.stderr


def test_converters_of_other_types():
    class Celsius:
        def __init__(self, degrees):
            self.degrees = degrees

    recorder = Recorder(ScalarParam("x", "f32"))
    with pytest.raises(ArgumentError, match="Python object"):
        recorder.function(Celsius(20.5))
    ffi.register_converter(Celsius, lambda value: value.degrees)
    assert recorder.leaves(Celsius(20.5)) == [20.5]


def test_numpy_subclasses():
    class Named(np.ndarray):
        pass

    recorder = Recorder(tensor())
    x = np.zeros(3, np.float32).view(Named)
    assert recorder.leaves(x) == [x.ctypes.data, 3]


def test_a_call_runs_no_other_python():
    """Conversion, checks and the launch are native code, which is what makes a call cost less than a microsecond."""
    signature = Signature("add", tuple(
        tensor(name, shape=(dyn(), dyn()), stride=(dyn(width=64), *static(1)), align=16) for name in "abc"
    ))  # fmt: skip
    text = "define i32 @launch(ptr %a, ptr %b, ptr %c, ptr %d) {\n  ret i32 0\n}\n"
    loaded = load_object(emit_object(text))
    program = Recorder(*signature.params, name="add").function.object_bytes
    function = HostFunction(program, signature, kernels=[1], launch=loaded.address("launch"), keep_alive=loaded)
    tensors = [torch.zeros(4, 8) for _ in range(3)]
    function(*tensors)
    entered = []
    sys.setprofile(lambda frame, event, argument: entered.append(frame.f_code.co_name) if event == "call" else None)
    try:
        function(*tensors)
    finally:
        sys.setprofile(None)
    assert entered == ["__call__"]
