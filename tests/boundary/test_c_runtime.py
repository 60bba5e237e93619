"""CuteDSLRuntime.h: exported functions loaded by name in C++, and the flags to build such programs with."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright.cute as cute
from tests.boundary.support import COMPILER, add, fake_driver, needs_c, run_child, vector
from tilewright import Float32
from tilewright.base.errors import CompileError
from tilewright.cute.export import aot_config, runtime_library, wheel_folders
from tilewright.targets.host.seal import SIZE, sealed

needs_cpp = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
pytestmark = [needs_c, needs_cpp]
DROPIN = Path(cute.__file__).resolve().parents[1] / "dropin_path"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`add` exported as an object and as a library, for another processor too, and the program that loads them."""
    made = tmp_path_factory.mktemp("runtime")
    n = cute.sym_int(divisibility=4)
    x = vector(align=16, symbol=n)
    other = "linux-x86_64" if platform.machine() == "aarch64" else "linux-aarch64"
    for name, options in (("add", ""), ("foreign", f"--host-target {other}")):
        compiled = cute.compile(add, x, x, Float32(1), target="emu", arch="sm_90a", options=options)
        compiled.export_to_c(file_path=made, file_name=name, function_prefix="add")
    subprocess.run([COMPILER, "-shared", "-o", str(made / "add.so"), str(made / "add.o")], check=True)
    library = runtime_library.library_folder(made / "cache")
    source = Path(__file__).with_name("use_runtime.cpp")
    command = ["g++", "-std=c++17", "-Wall", "-Werror", f"-I{runtime_library.INCLUDE}", "-o", str(made / "use")]
    rest = [str(source), f"-L{library}", "-lcute_dsl_runtime", f"-Wl,-rpath,{library}"]
    subprocess.run([*command, *rest], check=True)
    return made


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    return fake_driver(tmp_path_factory.mktemp("driver"))


def use(folder, how, name, function="add", driver=None):
    return run_child(folder / "use", how, folder / name, function, driver=driver)


@pytest.mark.parametrize(
    "how, name", [("bytes", "add.o"), ("library", "add.so"), ("path", "add.o"), ("path", "add.so")]
)
def test_a_function_is_found_checked_and_launched(folder, fake, how, name):
    done = use(folder, how, name, driver=fake)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("launch")] == [
        "launch 0x200000 on 0: grid 1 block 32 smem 0 stream (nil)"
    ]
    said = [line for line in lines if line.split()[0] in ("load", "function", "run", "destroy") and "cubin" not in line]
    assert said == ["load 0", "function 0", "run 0 status 0", "function 0", "run 7 status set", "destroy 0"]
    assert lines.count("unload") == 1  # both handles are of the same kernels
    assert "extent 7 of mode 0 is not a multiple of 4" in done.stderr


def test_what_cannot_be_loaded(folder, tmp_path):
    data = (folder / "add.o").read_bytes()
    (folder / "short.o").write_bytes(data[: len(data) // 2])
    (folder / "text.o").write_text("not an object")
    for name, status, message in (
        ("short.o", 3, "it is damaged: its checksum does not fit"),
        ("foreign.o", 3, "it is for another processor"),
        ("text.o", 3, "it is no object file"),
    ):
        done = use(folder, "bytes", name)
        assert (done.returncode, done.stdout) == (0, f"load {status}\n"), name
        assert done.stderr == f"CuteDSLRuntime: cannot load the object: {message}\n"
    done = use(folder, "path", "missing.o")
    assert done.stdout == "load 2\n" and "no such file" in done.stderr
    done = use(folder, "library", "missing.so")
    assert done.stdout == "load 2\n" and "cannot open a shared library" in done.stderr


def test_a_damaged_object_is_refused(folder):
    """In one process: nothing crashes, every status is InvalidObject."""
    program = """if True:
        import ctypes, sys
        library = ctypes.CDLL(sys.argv[1])
        data = open(sys.argv[2], "rb").read()
        module = ctypes.c_void_p()
        create, destroy = library.CuteDSLRT_Module_Create_From_Bytes, library.CuteDSLRT_Module_Destroy
        destroy.argtypes = [ctypes.c_void_p]
        def load(changed):
            return create(ctypes.byref(module), changed, ctypes.c_size_t(len(changed)), None, ctypes.c_size_t(0))
        assert load(data) == 0
        destroy(module)
        places = {*range(0, len(data), 97), *range(64), *range(len(data) - 64, len(data))}
        flipped = [data[:p] + bytes([data[p] ^ m]) + data[p + 1 :] for p in places for m in (1, 2, 0xFF)]
        sizes = (0, 1, 16, 63, 64, len(data) // 2, len(data) - 24, len(data) - 1)
        others = [data[:n] for n in sizes] + [data + b"\\0", data + data, data[:500] + data[501:]]
        print(len(flipped) > 1000, {load(changed) for changed in flipped + others})
    """
    library = next((folder / "cache").glob("runtime-*")) / "libcute_dsl_runtime.so"
    done = run_child(sys.executable, "-c", program, library, folder / "add.o")
    assert done.stdout == "True {3}\n", done.stderr[-1000:]
    assert "it is damaged: its checksum does not fit" in done.stderr


def test_a_symbol_that_the_process_lacks_is_named(folder):
    source = folder / "needy.c"
    source.write_text("int nowhere(void); int __tw_run_add(void **a, int n) { return nowhere(); }")
    subprocess.run([COMPILER, "-c", "-fPIC", "-o", str(folder / "needy.o"), str(source)], check=True)
    done = use(folder, "bytes", "needy.o")
    assert done.stdout == "load 3\n" and "its checksum does not fit" in done.stderr  # no exported object
    (folder / "needy.o").write_bytes(sealed((folder / "needy.o").read_bytes()))
    done = use(folder, "bytes", "needy.o")
    assert done.stdout == "load 4\n" and "it needs nowhere" in done.stderr


def test_functions_that_cannot_be_had(folder, fake):
    done = use(folder, "path", "add.o", "subtract", driver=fake)
    assert "function 2" in done.stdout and "no function of that name is exported: subtract" in done.stderr
    aged = (folder / "add.o").read_bytes().replace(b'{"tilewright":', b'{"tilewrighT":')
    (folder / "aged.o").write_bytes(sealed(aged[:-SIZE]))
    done = use(folder, "path", "aged.o", driver=fake)
    assert "function 3" in done.stdout and "exported by another version" in done.stderr
    done = run_child(folder / "use", "path", folder / "add.o", "add", driver=fake, FAKE_CUDA_FAIL="100")
    assert "function 6" in done.stdout and "cannot be loaded" in done.stderr


def test_the_flags(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(aot_config, "library_folder", lambda: tmp_path)
    assert aot_config.main(["--cflags", "--libdir", "--ldflags", "--libs", "--with-tvm-ffi"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"-I{runtime_library.INCLUDE}", str(tmp_path), f"-L{tmp_path}", "-lcute_dsl_runtime -ltvm_ffi",
    ]  # fmt: skip
    assert aot_config.main(["--libs", "--target", "riscv64-unknown-linux-gnu"]) == 1
    assert "no runtime library for that processor" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        aot_config.main([])


def test_the_flags_under_cute_dsl_s_name():
    program = (
        f"import sys, runpy; sys.path.insert(0, {str(DROPIN)!r}); sys.argv[1:] = ['--includedir'];"
        "runpy.run_module('cutlass.cute.export.aot_config', run_name='__main__', alter_sys=True)"
    )
    done = run_child(sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr
    assert (Path(done.stdout.strip()) / "CuteDSLRuntime.h").is_file()


SCRIPT = """
set -eu
wheel=$({python} -c "import cutlass, os; print(os.path.dirname(cutlass.__file__))")/../..
flavor=$(ls "$wheel" | grep -oP 'cu\\K[0-9]+' | sort -nr | head -1)
lib="$wheel/cu$flavor/lib"
g++ -std=c++17 -o use_wheel -I"$wheel/cu$flavor/include" {source} \
  -L"$lib" -lcute_dsl_runtime "$lib/libcuda_dialect_runtime_static.a" -Wl,-rpath,"$lib"
{python} -m cutlass.cute.export.aot_config --libs
{python} -c "import cutlass, cutlass.cute as cute, tilewright.cute; from cutlass import Float32, base_dsl; print(
    cute is tilewright.cute, cutlass.cute is cute, Float32, hasattr(cutlass, 'nonesuch'), 'Float32' in dir(cutlass))"
"""


def test_scripts_that_look_into_the_wheel(folder, fake, monkeypatch, capsys):
    built = runtime_library.library_folder(folder / "cache")
    monkeypatch.setattr(wheel_folders, "library_folder", lambda: built)
    for _ in range(2):  # again over what is there
        assert aot_config.main(["--wheel", str(folder / "wheel")]) == 0
    packages = folder / "wheel" / "python_packages"
    assert capsys.readouterr().out.splitlines() == [str(packages)] * 2
    source = Path(__file__).with_name("use_runtime.cpp")
    script = SCRIPT.format(python=sys.executable, source=source)
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["-lcute_dsl_runtime", "True True Float32 False True"]
    assert run_child(folder / "use_wheel", "path", folder / "add.o", "add", driver=fake).returncode == 0


def test_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setattr(runtime_library.shutil, "which", lambda _: None)
    with pytest.raises(CompileError, match="built by a C compiler, and there is none"):
        runtime_library.library_folder(tmp_path)
