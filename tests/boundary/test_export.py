"""export_to_c in both forms, loading, linking from C++, with a driver that is none and without any."""

import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.boundary.support import COMPILER, CUstream, add, add_on, fake_driver, needs_c, run_child, run_python, vector
from tilewright import Float32, Int32
from tilewright.arguments.binding import make_ptr
from tilewright.arguments.dlpack import HostView
from tilewright.base.errors import ArgumentError, CompileError, CudaDriverDependencyError
from tilewright.targets.artifact_bytes import FORMAT
from tilewright.targets.host import abi
from tilewright.targets.host.seal import SIZE, sealed
from tilewright.targets.nvidia.devices import driver
from tilewright.targets.nvidia.devices.cuda import _DeviceView
from tilewright.targets.nvidia.export.loading import load_module

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/export"
pytestmark = needs_c
no_driver = pytest.mark.skipif(driver.available(), reason="shows what happens without a driver, and there is one")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Both forms of `add` and `add_on`, and a library of all."""
    made = tmp_path_factory.mktemp("export")
    n = cute.sym_int(divisibility=4)
    x = vector(align=16, symbol=n)
    plain = cute.compile(add, x, x, Float32(1), target="emu", arch="sm_90a")
    streamed = cute.compile(add_on, x, x, Float32(1), CUstream(), target="emu", arch="sm_90a")
    plain.export_to_c(file_path=made, file_name="add", function_prefix="add")
    streamed.export_to_c(file_path=made, file_name="add_on")
    plain.export_to_c(made / "add_ffi.o", function_name="add_ffi")
    objects = [str(made / f"{name}.o") for name in ("add", "add_on", "add_ffi")]
    libraries = cute.runtime.find_runtime_libraries(enable_tvm_ffi=True)
    subprocess.run([COMPILER, "-shared", "-o", str(made / "all.so"), *objects, *libraries], check=True)
    return made


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    return fake_driver(tmp_path_factory.mktemp("driver"))


def test_the_header_names_the_dynamic_parts_only(folder):
    text = (folder / "add_on.h").read_text()
    assert "typedef struct {\n  void *data;\n  int32_t dynamic_shapes[1];\n} add_on_Tensor_x_t;" in text
    parameters = "add_on_Kernel_Module_t *module, add_on_Tensor_x_t *x, add_on_Tensor_y_t *y, float shift, void *stream"
    assert f"static inline int32_t cute_dsl_add_on_wrapper({parameters}) {{" in text


@pytest.mark.parametrize("standard", ["c99", "c11", "c17", "c++11", "c++17"])
@pytest.mark.parametrize("header", ["add", "add_on"])
def test_the_header_is_strict_c_and_cpp(folder, header, standard):
    language = standard.rstrip("0123456789")
    strict = [f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    command = [COMPILER, *strict, "-fsyntax-only", "-x", language, str(folder / f"{header}.h")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_objects_need_the_c_library_only(folder):
    table = subprocess.run(["nm", "-u", str(folder / "add.o")], capture_output=True, text=True, check=True).stdout
    names = set(table.split()) - {"U"}
    assert names <= {"dlopen", "dlsym", "dprintf", "fflush", "printf", "sched_yield", "snprintf", "strlen", "vsnprintf"}


def test_the_layout_of_structs_is_that_of_the_c_compiler(tmp_path):
    @cute.jit
    def mixed(flag: cutlass.Boolean, t: cute.Tensor, small: cutlass.Int8, pair: tuple, wide: cutlass.Int64):
        pass

    strided = cute.runtime.make_fake_tensor(
        Float32, (cute.sym_int(), cute.sym_int64(), 3), stride=(cute.sym_int32(), cute.sym_int64(), 1)
    )
    compiled = cute.compile(mixed, True, strided, 1, (cutlass.Int8(1), cutlass.Float64(2), strided), 5, target="emu")
    compiled.export_to_c(file_path=tmp_path, file_name="mixed")
    program = tmp_path / "sizes.c"
    program.write_text(
        '#include <stdio.h>\n#include <stddef.h>\n#include "mixed.h"\nint main(void) { printf("%zu %zu %zu %zu %zu", '
        "sizeof(mixed_Tensor_t_t), offsetof(mixed_Tensor_t_t, dynamic_strides), sizeof(mixed_Tuple_pair_t), "
        "offsetof(mixed_Tuple_pair_t, item1), offsetof(mixed_Tuple_pair_t, item2)); }\n"
    )
    subprocess.run([COMPILER, "-o", str(tmp_path / "sizes"), str(program), str(tmp_path / "mixed.o")], check=True)
    # void*, int64[2], int64[2]; then int8, double at 8, the tensor at 16
    assert run_child(tmp_path / "sizes").stdout == "40 24 56 8 16"


def test_arguments_of_every_kind_arrive(tmp_path):
    """Host code that stores what it was given into memory it was given."""

    @cute.jit
    def spread(out: cute.Pointer, a: cutlass.Int8, b: cutlass.Float64, c: cutlass.Boolean, pair: tuple):
        t = cute.make_tensor(out, cute.make_layout(5))
        t[0], t[1], t[2] = cutlass.Float64(a), b, cutlass.Float64(Int32(c))
        t[3], t[4] = cutlass.Float64(pair[0]), pair[1]

    memory = (ctypes.c_double * 5)()
    pointer = make_ptr(cutlass.Float64, ctypes.addressof(memory), cute.AddressSpace.gmem)
    inner = (cutlass.Uint8(1), cutlass.Float64(2))
    cute.compile(spread, pointer, cutlass.Int8(1), 1.0, True, inner, target="emu").export_to_c(
        file_path=tmp_path, file_name="spread"
    )
    program = tmp_path / "main.c"
    program.write_text(
        '#include <stdio.h>\n#include "spread.h"\nint main(void) { double out[5]; spread_Kernel_Module_t m = {0};\n'
        "spread_Tuple_pair_t pair = {200, 0.25}; int s = cute_dsl_spread_wrapper(&m, out, -3, 1.5, true, &pair);\n"
        'printf("%d %g %g %g %g %g", s, out[0], out[1], out[2], out[3], out[4]); }\n'
    )
    subprocess.run([COMPILER, "-o", str(tmp_path / "main"), str(program), str(tmp_path / "spread.o")], check=True)
    assert run_child(tmp_path / "main").stdout == "0 -3 1.5 1 200 0.25"


@no_driver
@pytest.mark.parametrize("source", ["add.o", "all.so"])
def test_without_a_driver_arguments_are_checked_and_the_launch_refused(folder, source):
    program = f"""
import sys
sys.modules["mlir"] = None  # neither MLIR nor LLVM is needed
import numpy as np
import tilewright.cute as cute
from tilewright.base.errors import CudaDriverDependencyError
module = cute.runtime.load_module({str(folder / source)!r})
x = np.zeros(8, np.float32)
try:
    module.add(x, x, 1.0)
except TypeError as error:
    print(error)
print(sys.modules["mlir"], any("libLLVM" in line for line in open("/proc/self/maps")))
"""
    lines = run_python(program)
    assert lines[0] == "argument 1 'x' of add: wrong device"
    assert lines[3] == "  calling   add(x: f32 (n0{div=4}), y: f32 (n0{div=4}), shift: f32)"
    assert lines[-1] == "None False"


DEVICE_TENSOR = """
import numpy as np
import tilewright.cute as cute
from tilewright.targets.nvidia.devices.cuda import _DeviceView
from tilewright.arguments.dlpack import HostView
memory = np.zeros(64, np.float32)
base = memory.ctypes.data + -memory.ctypes.data % 16
def on(device, n=8, skip=0):
    return _DeviceView(HostView(base + 4 * skip, 2, device, "f32", (n,), (1,), True, memory))
def attempt(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
"""


@pytest.mark.parametrize("source", ["add_on.o", "all.so"])
def test_a_loaded_function_launches_by_position_and_by_name(folder, fake, source):
    program = f"""{DEVICE_TENSOR}
module = cute.runtime.load_module({str(folder / source)!r})
print("load nothing yet")
module.add_on(on(0), on(0), 1.0, 0x50)
module.add_on(on(0), on(0), stream=0x60, shift=2)
attempt(module.add_on, on(0), on(0), 1.0)
attempt(module.add_on, on(0), on(0), 1.0, stream=0, more=1)
attempt(module.add_on, on(0, 8), on(0, 12), 1.0, 0)
attempt(module.add_on, on(0, 6), on(0, 6), 1.0, 0)
attempt(module.add_on, on(0, 8, skip=1), on(0), 1.0, 0)
"""
    lines = run_python(program, driver=fake, FAKE_CUDA_DEVICES="1")
    launches = [line for line in lines if line.startswith("launch")]
    assert [line.split(": ")[1] for line in launches] == [
        "grid 1 block 32 smem 0 stream 0x50",
        "grid 1 block 32 smem 0 stream 0x60",
    ]
    assert lines[0] == "load nothing yet"
    assert lines.count("load cubin") == 1
    assert "kernel add_kernel" in lines
    assert lines[-5:] == [
        "ArgumentError add_on takes 4 arguments, 3 were given",
        "ArgumentError add_on takes 4 arguments, 5 were given",
        "ArgumentError argument 2 'y' of add_on: extent of mode 0 must equal 'n0' = 8, extent of mode 0 of argument 1 'x' of add_on",  # noqa: E501
        "ArgumentError argument 1 'x' of add_on: extent 6 of mode 0 is not a multiple of 4",
        lines[-1],
    ]
    assert re.fullmatch(
        r"ArgumentError argument 1 'x' of add_on: its address 0x\w+4 is not a multiple of 16", lines[-1]
    )


def test_the_tvm_ffi_form_uses_the_device_of_its_tensors(folder, fake):
    program = f"""{DEVICE_TENSOR}
add = cute.runtime.load_module({str(folder / "add_ffi.o")!r}).add_ffi
print("first"); add(on(1), on(1), 1.0)
print("second"); add(on(0), on(0), 1.0)
attempt(add, on(0), on(1), 1.0)
"""
    lines = run_python(program, driver=fake)
    assert [line for line in lines if line.startswith("attribute 8")] == [
        "attribute 8 = 231424 on 0",
        "attribute 8 = 231424 on 1",
    ]
    first = lines[lines.index("first") : lines.index("second")]
    assert [line.split(":")[0] for line in first if line.startswith("launch")] == ["launch 0x200000 on 1"]
    assert any("launch 0x200000 on 0" in line for line in lines[lines.index("second") :])
    assert lines[-1].endswith("not on the device of argument 1 'x' of add_ffi, number 0")


def test_the_tvm_ffi_form_raises_the_kinds_of_every_language(folder, fake):
    program = f"""{DEVICE_TENSOR}
import ctypes
module = cute.runtime.load_module({str(folder / "all.so")!r}, enable_tvm_ffi=True)
add = module.add_ffi
print(type(add).__name__)
tensor = lambda *a, **k: ctypes.c_void_p(on(*a, **k).__tw_dltensor__() | 5)
keep = [on(0), on(0, 12)]
of = lambda view: ctypes.c_void_p(view.__tw_dltensor__() | 5)
attempt(add, 1, of(keep[0]), 1.0)
attempt(add, of(keep[0]), of(keep[1]), 1.0)
attempt(add, of(keep[0]), of(keep[0]))
add(of(keep[0]), of(keep[0]), 1.0)
"""
    lines = run_python(program, driver=fake, FAKE_CUDA_DEVICES="1")
    assert lines[0] == "Function"
    assert lines[1].startswith("TypeError argument 1 'x' of add_ffi is not a tensor")
    assert lines[2].startswith("ValueError argument 2 'y' of add_ffi: extent of mode 0 must equal")
    assert lines[3].startswith("TypeError add_ffi takes 3 arguments, 2 were given")
    assert lines[-2].startswith("launch")


def test_a_driver_that_does_not_start_is_reported(folder, fake):
    program = f"{DEVICE_TENSOR}\nmodule = cute.runtime.load_module({str(folder / 'add.o')!r})\nattempt(module.add, on(0), on(0), 1.0)\n"  # noqa: E501
    lines = run_python(program, driver=fake, FAKE_CUDA_FAIL="999")
    assert lines == ["LaunchError the kernels of add cannot be loaded"]


@pytest.mark.slow
def test_many_threads_load_once(folder, fake):
    program = f"""{DEVICE_TENSOR}
import threading
add = cute.runtime.load_module({str(folder / "add_ffi.o")!r}).add_ffi
threads = [threading.Thread(target=lambda: [add(on(0), on(0), 1.0) for _ in range(20)]) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    lines = run_python(program, driver=fake)
    assert lines.count("load cubin") == 1
    assert sum(line.startswith("launch 0x200000 on 0") for line in lines) == 160


@no_driver
def test_loading_kernels_without_a_driver(folder):
    module = cute.runtime.load_module(folder / "add_ffi.o")
    with pytest.raises((CudaDriverDependencyError, ArgumentError)):
        module.add_ffi(np.zeros(4, np.float32), np.zeros(4, np.float32), 1.0)
    assert "add_ffi(x, y, shift) for sm_90a" in repr(module.add_ffi)


def test_a_name_that_is_not_exported(folder):
    module = cute.runtime.load_module(folder / "all.so")
    assert sorted(dir(module)) == ["add", "add_ffi", "add_on"]
    with pytest.raises(AttributeError, match=r"all\.so exports no function 'sub'; its functions: .*add_on"):
        module.sub
    assert module["add"] is module.add and "add" in module and "sub" not in module
    with pytest.raises(KeyError, match=r"all\.so exports no function 'sub'; its functions: .*add_on"):
        module["sub"]


def damaged(data):
    """Each damaged form of an object with its name: every 61st byte flipped, and all of its headers and its end."""
    places = {*range(0, len(data), 61), *range(64), *range(len(data) - 64, len(data))}
    for place in sorted(places):
        for mask in (0x01, 0x02, 0xFF):
            yield f"byte {place} ^ {mask}", data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]
    for size in (0, 1, 3, 4, 16, 63, 64, 65, len(data) // 2, len(data) - 25, len(data) - 24, len(data) - 1):
        yield f"first {size} bytes", data[:size]
    yield "appended", data + b"\0"
    yield "appended text", data + b"TWSEAL1\n"
    yield "twice", data + data
    yield "zeros inside", data[:1000] + bytes(1000) + data[2000:]
    yield "two bytes swapped", data[:1001] + data[1002:1003] + data[1001:1002] + data[1003:]
    yield "a byte left out", data[:500] + data[501:]


@pytest.mark.parametrize("name", ["add", "add_on", "add_ffi"])
def test_a_damaged_object_is_refused(folder, tmp_path, name):
    data = (folder / f"{name}.o").read_bytes()
    path = tmp_path / "damaged.o"
    for what, changed in damaged(data):
        if changed == data:
            continue
        path.write_bytes(changed)
        try:
            load_module(path)
        except CompileError as error:
            assert "damaged" in str(error) or "not an object file" in str(error), what
        else:
            raise AssertionError(f"{what} was loaded")


def test_the_messages_of_damage(folder, tmp_path):
    data = (folder / "add.o").read_bytes()
    path = tmp_path / "damaged.o"
    for changed, message in (
        (data[:-1], "it does not end with its checksum"),
        (data[:-SIZE], "it does not end with its checksum"),
        (data[:5000] + b"\x55" + data[5001:], "its checksum does not fit"),
        (data[:16] + b"\3" + data[17:], "its checksum does not fit"),
    ):
        path.write_bytes(changed)
        with pytest.raises(CompileError, match="is damaged, or no object that export_to_c wrote") as caught:
            load_module(path)
        assert caught.value.values["reason"] == message
    path.write_bytes(b"")
    with pytest.raises(CompileError, match="is not an object file"):
        load_module(path)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_torn_library_is_refused(folder, tmp_path, part):
    data = (folder / "all.so").read_bytes()
    path = tmp_path / "torn.so"
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(CompileError, match="is damaged") as caught:
        load_module(path)
    assert "bytes are missing" in caught.value.values["reason"]
    path.write_bytes(data[:40])
    with pytest.raises(CompileError, match="is damaged") as caught:
        load_module(path)
    assert caught.value.values["reason"] == "its header is cut off"


def test_linkers_pass_over_the_checksum(folder, tmp_path):
    data = (folder / "add.o").read_bytes()
    assert data == sealed(data[:-SIZE])
    made = tmp_path / "add.so"
    subprocess.run([COMPILER, "-shared", "-o", str(made), str(folder / "add.o")], check=True)
    assert load_module(made).add.name == load_module(folder / "add.o").add.name == "add"


def test_another_version_is_refused(folder, tmp_path):
    data = (folder / "add.o").read_bytes()
    old = f'"tilewright":{FORMAT},'.encode()
    assert data.count(old) == 1
    path = tmp_path / "old.o"
    path.write_bytes(sealed(data[:-SIZE].replace(old, b'"tilewright":0,')))
    with pytest.raises(CompileError, match="exported by another version") as caught:
        cute.runtime.load_module(path)
    assert caught.value.values == {"its interface": 0, "this version's": FORMAT}


def test_the_metadata(folder):
    found = re.search(rb"\{\"tilewright\".*?\}\]?\}\}?(?=\0)", (folder / "add_ffi.o").read_bytes())
    facts = json.loads(found[0])
    assert (facts["form"], facts["name"], facts["arch"]) == ("tvm-ffi", "add_ffi", "sm_90a")
    assert [param["name"] for param in facts["signature"]["params"]][:3] == ["x", "y", "shift"]


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "there is no file"), (b"text", "is not an object file"), (b"\x7fELF\2\1" + bytes(60), "cannot be loaded")],
    ids=["none", "text", "empty"],
)
def test_files_that_are_none(tmp_path, content, message):
    path = tmp_path / "x.o"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CompileError, match=message):
        cute.runtime.load_module(path)


def test_the_forms_cannot_be_mixed(tmp_path):
    compiled = cute.compile(add, vector(), vector(), target="emu")
    with pytest.raises(CompileError, match="one of two forms"):
        compiled.export_to_c("a.o", file_path=".")
    with pytest.raises(CompileError, match="one of two forms"):
        compiled.export_to_c(file_path=tmp_path)
    with pytest.raises(CompileError, match="function_prefix is 'a-b'"):
        compiled.export_to_c(file_path=tmp_path, file_name="a-b")
    assert not list(tmp_path.iterdir())


def test_the_example_links_and_runs_its_checks(tmp_path, fake):
    subprocess.run([sys.executable, str(EXAMPLE / "export.py"), str(tmp_path)], check=True, capture_output=True)
    program = tmp_path / "use_scale"
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", "-o", str(program),
               str(EXAMPLE / "use_scale.cpp"), str(tmp_path / "scale.o"), "-ldl"]  # fmt: skip
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = run_child(program)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("refused, as it should be") >= 3
    assert ("no GPU: only the checks ran" in done.stdout) != driver.available()


CPP = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <cstdio>

extern "C" int __tvm_ffi_add_ffi(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);

static void attempt(DLDeviceType kind, int64_t n, float *data) {
  int64_t shape[] = {n}, stride[] = {1};
  DLTensor tensor = {data, {kind, 0}, 1, {kDLFloat, 32, 1}, shape, stride, 0};
  try {
    tvm::ffi::Function::InvokeExternC(nullptr, __tvm_ffi_add_ffi, &tensor, &tensor, 1.0);
    std::puts("launched");
  } catch (const tvm::ffi::Error &error) {
    std::printf("%s: %s\\n", error.kind().c_str(), error.message().c_str());
  }
  std::fflush(stdout);
}

int main() {
  alignas(16) static float data[64];
  attempt(kDLCPU, 8, data);
  attempt(kDLCUDA, 6, data);
  attempt(kDLCUDA, 8, data);
}
"""


@pytest.mark.slow
def test_the_tvm_ffi_form_from_cpp(folder, fake, tmp_path):
    (tmp_path / "main.cpp").write_text(CPP)
    library = Path(cute.runtime.find_runtime_libraries(enable_tvm_ffi=True)[0])
    package = library.parents[1]
    command = ["g++", "-std=c++17", f"-I{package}/include", "-o", str(tmp_path / "main"), str(tmp_path / "main.cpp"),
               str(folder / "add_ffi.o"), str(library), f"-Wl,-rpath,{library.parent}", "-ldl"]  # fmt: skip
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    lines = run_child(tmp_path / "main", driver=fake, FAKE_CUDA_DEVICES="1").stdout.splitlines()
    assert lines[0] == "ValueError: argument 1 'x' of add_ffi: wrong device"
    assert "ValueError: argument 1 'x' of add_ffi: extent 6 of mode 0 is not a multiple of 4" in lines
    assert lines[-3].startswith("launch 0x200000 on 0: grid 1 block 32")
    assert lines[-1] == "launched"


@pytest.mark.slow
def test_exports_are_the_same_in_two_processes(tmp_path):
    for seed in ("1", "2"):
        run_child(sys.executable, EXAMPLE / "export.py", tmp_path / seed, PYTHONHASHSEED=seed)
    for name in ("scale.h", "scale.o", "scale_ffi.o"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_an_exported_function_refuses_tensors_beyond_its_form(folder):
    memory = np.zeros(8, np.float32)
    base = memory.ctypes.data + -memory.ctypes.data % 16
    huge = _DeviceView(HostView(base, abi.CUDA, 0, "f32", (2**29 + 4,), (1,), True, memory))
    for name in ("add", "add_ffi"):
        function = getattr(cute.runtime.load_module(folder / f"{name}.o"), name)
        with pytest.raises(ArgumentError, match="more than 536608768 elements, too many for the 32-bit form") as caught:
            function(huge, huge, 1.0)
        assert caught.value.hint == "compile it with extents of 64 bits: cute.sym_int64() in a fake tensor"
