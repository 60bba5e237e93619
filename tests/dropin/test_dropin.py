"""`import cutlass` resolves to Tilewright; the tutorial as its readers type it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the tutorial uses PyTorch, an extra")
SCRIPT = Path(__file__).with_name("tutorial.py")


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tilewright.dropin", *arguments], capture_output=True, text=True, cwd=cwd
    )


@pytest.fixture(scope="module")
def lines() -> dict[str, str]:
    """What each step of the tutorial printed."""
    done = run(str(SCRIPT), "one", "--two")
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


@pytest.mark.parametrize(
    "step", ["simple", "cached", "dynamic", "dynamic other", "middle", "streamed", "layout form", "still alive"]
)
def test_sums(lines, step):
    assert lines[step] == "True"


def test_a_static_layout_and_another_shape_is_an_error_that_names_both(lines):
    text = lines["other shape"]
    assert "(16, 1024) : (1024, 1)" in text and "(8, 32) : (32, 1)" in text
    assert re.search(r"tutorial\.py:\d+ +fn\(a_, b_\)", text)


def test_one_compilation_takes_both_shapes(lines):
    assert lines["compilations"] == "1"


def test_the_unguarded_form_is_reported(lines):
    text = lines["unguarded"]
    assert text.startswith("EmulationError Out-of-bounds read of global memory")
    line = next(n for n, row in enumerate(SCRIPT.read_text().splitlines(), 1) if "thr_val = thr_frag" in row)
    assert f"{SCRIPT}:{line}   thr_val = thr_frag[tidx, 0]" in text
    assert "thread" in text and "block" in text and "hint:" in text


def test_printed_layouts(lines):
    assert lines["layout"] == "(32,1):(1,0)"
    assert lines["tiler"] == "(32,)"
    assert re.fullmatch(r"tensor<ptr<f32, (gmem|generic)> o \(\(1,32\),\(\?,\?\)\):\(\(0,1\),\(\?,32\)\)>", lines["gx"])


def test_the_script_sees_its_own_world(lines):
    assert lines["argv"] == "['one', '--two'] main: __main__ numpy: numpy cutlass: tilewright"


def test_modules(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "tool.py").write_text(
        "import sys, cutlass.cute as cute\nprint(cute.__name__, sys.argv[1:])\n"
    )
    done = run("-m", "package.tool", "x", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "tilewright.cute ['x']\n"), done.stderr


def test_imports_in_every_spelling():
    code = """
import tilewright.dropin
import cutlass, cutlass.cute, cutlass.utils, cutlass.cute.runtime, cutlass.cute.nvgpu, cutlass.cute.testing
import tilewright, tilewright.cute
from cutlass import Float32, Int32, const_expr, range_constexpr, Constexpr, dsl_user_op
from cutlass.cute.runtime import from_dlpack, make_fake_compact_tensor
from cutlass.cute.typing import Tensor
assert cutlass is tilewright and cutlass.cute is tilewright.cute and cutlass.cute.runtime is tilewright.cute.runtime
assert cutlass.__spec__.name == "tilewright" and cutlass.cute.Float32 is Float32 is tilewright.Float32
try:
    import cutlass.no_such_module
except ModuleNotFoundError as error:
    assert "no_such_module" in str(error)
else:
    raise AssertionError
tilewright.dropin.install()
import sys
assert sum(type(f).__name__ == "_Finder" for f in sys.meta_path) == 1
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_closed_package_is_not_mixed_in():
    code = """
import sys, types
sys.modules["cutlass"] = types.ModuleType("cutlass")
import tilewright
try:
    import tilewright.dropin
except tilewright.CompileError as error:
    print(error.message, "|", error.hint)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "cutlass is imported already, from elsewhere | import tilewright.dropin before it\n", (
        done.stderr
    )


def test_usage():
    for arguments in ((), ("-m",)):
        done = run(*arguments)
        assert done.returncode == 1 and "usage: python -m tilewright.dropin" in done.stderr
    done = run("/nowhere/script.py")
    assert done.returncode != 0 and "/nowhere/script.py" in done.stderr


def test_attributes_of_a_device_without_nvidias_bindings():
    from_names = "from cutlass.base_dsl.runtime.cuda import cuda; print(int(cuda.CUdevice_attribute.{name}))"
    name = "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"
    source = f"import tilewright.dropin\n{from_names.format(name=name)}"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.split() == ["81"]


def test_calls_without_tvm_ffi_say_what_to_install():
    source = """
import sys
class Hide:
    def find_spec(self, name, *_):
        if name == "tvm_ffi":
            raise ModuleNotFoundError("No module named 'tvm_ffi'", name="tvm_ffi")
sys.meta_path.insert(0, Hide())
from tilewright.targets.host import ffi
try:
    ffi.tvm_ffi()
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=100, check=True)
    assert "calls of compiled functions need the package tvm-ffi, which is not installed" in done.stdout
    assert "pip install apache-tvm-ffi" in done.stdout
