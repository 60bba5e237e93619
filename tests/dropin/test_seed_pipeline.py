"""The document on the compilation pipeline (seed 001), row by row where no other test shows it."""

from __future__ import annotations

import importlib
import importlib.util
import io
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
import tilewright.dropin
from tests.compiler.support import double, floats
from tilewright import CompileError, LaunchError, TilewrightError
from tilewright.base import settings
from tilewright.compat import compiler as names
from tilewright.compat.compiler import Compiler, PostCompileHookContext
from tilewright.compat.jit_executor import JITExecutor, walk_module_and_get_cubin_data
from tilewright.targets.nvidia.devices.driver_errors import ERRORS

ROOT = Path(__file__).resolve().parents[2]


def compiled(*options, **given):
    return cute.compile[options](double, *floats(), target="emu", **given) if options else cute.compile(
        double, *floats(), target="emu", **given
    )  # fmt: skip


def test_vector_add_is_documented_at_every_stage():
    """The page is what the compiler makes today, the machine code apart, which is the assembler's."""
    script = importlib.util.spec_from_file_location("write_vector_add", ROOT / "scripts" / "write_vector_add.py")
    module = importlib.util.module_from_spec(script)
    script.loader.exec_module(module)
    page = module.PAGE.read_text(encoding="utf-8")
    for name, text in module.stages().items():
        assert f"## `{name}`" in page
        assert name == "sass" or text in page, f"run scripts/write_vector_add.py: stage {name} has changed"


@pytest.mark.parametrize(
    "name",
    [
        "Compiler",
        "CompileOptions",
        "CompileCallable",
        "CompilationError",
        "PostCompileHookContext",
        "OptLevel",
        "GPUArch",
        "PtxasOptions",
        "EnableAssertions",
        "GenerateLineInfo",
        "KeepPTX",
        "KeepCUBIN",
        "LinkLibraries",
        "EnableTVMFFI",
        "CompileOption",
        "BooleanCompileOption",
        "StringCompileOption",
        "BooleanBasedFileDumpOption",
    ],
)
def test_names_of_the_compiler(name):
    assert getattr(names, name) is getattr(importlib.import_module("cutlass.base_dsl.compiler"), name)


@pytest.mark.parametrize(
    "name", ["ir", "passmanager", "execution_engine", "dialects.gpu", "dialects.nvvm", "dialects.scf"]
)
def test_modules_of_mlir(name):
    ours, mlirs = (importlib.import_module(f"{root}.{name}") for root in ("cutlass._mlir", "mlir"))
    public = [word for word in dir(mlirs) if word[0].isupper()]
    assert public and all(hasattr(ours, word) for word in public)


@pytest.mark.parametrize("name", ["cutlass._mlir_helpers.vector"])
def test_modules_that_are_not_here_say_what_is(name):
    with pytest.raises(ImportError, match="NVIDIA's compiler"):
        importlib.import_module(name)


def test_an_executor_is_invoked_and_shows_its_module(capsys):
    executor = compiled()
    assert isinstance(executor, JITExecutor)
    x, out = floats()
    executor.invoke(x, out)
    assert (out == 2 * x).all()
    print(executor._module)
    assert capsys.readouterr().out.strip() == executor.stages["cute"].strip()
    assert walk_module_and_get_cubin_data(executor) == [executor.stages["cubin"]]


def test_a_hook_sees_the_module():
    seen = []
    with PostCompileHookContext(Compiler(), seen.append):
        compiled()
    compiled()
    assert len(seen) == 1 and "llvm.func" in seen[0]


def test_option_strings_of_the_document():
    executor = cute.compile(
        double, *floats(), target="emu", options="--opt-level=3 --gpu-arch=sm_90 --keep-ptx=off --keep-cubin=off"
    )
    assert executor.arch == "sm_90"


@pytest.mark.parametrize("variable", ["MLIR_ENABLE_DUMP", "CUTLASS_PRINT_IR", "CUTE_DSL_PRINT_IR"])
def test_ir_is_printed_for_a_variable(monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    shown = io.StringIO()
    with redirect_stderr(shown):
        compiled()
    assert "// ---- cute of double, " in shown.getvalue() and "// ---- ptx of double_kernel, " in shown.getvalue()


def test_dumps_of_two_levels_are_two_files(tmp_path):
    for level in (0, 3):
        compiled(cute.OptLevel(level), cute.KeepCUBIN, cute.DumpDir(str(tmp_path)), cute.GPUArch("sm_90"))
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["double.sm_90.1.cubin", "double.sm_90.cubin"]
    assert files[0].read_bytes() != files[1].read_bytes()


def test_ptx_and_cubin_are_dumped_for_variables(monkeypatch, tmp_path):
    monkeypatch.setenv("CUTLASS_KEEP_PTX", "1")
    monkeypatch.setenv("CUTLASS_KEEP_CUBIN", "1")
    monkeypatch.setenv("CUTLASS_DUMP_DIR", str(tmp_path))
    compiled(cute.GPUArch("sm_90"))
    assert {file.name for file in tmp_path.iterdir()} == {"double.sm_90.ptx", "double.sm_90.cubin"}


def test_defaults_of_options():
    made = type(compiled().job.options)()
    assert (made.opt_level, made.ptxas_options, made.enable_assertions, made.generate_line_info) == (
        3,
        "",
        False,
        False,
    )
    assert (made.keep_ptx, made.keep_cubin, made.dump_dir) == (False, False, "")


def test_no_toolkit_is_required():
    with settings.scope(toolkit=""):
        assert compiled().stages["cubin"].startswith(b"\x7fELF")


def test_launch_failures_are_runtime_errors():
    assert issubclass(LaunchError, RuntimeError) and issubclass(LaunchError, TilewrightError)


@pytest.mark.parametrize("code", ["CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_LAUNCH_FAILED"])
def test_driver_errors_are_explained(code):
    (found,) = [error for error in ERRORS.values() if error.name == code]
    assert found.meaning and found.hint


def test_a_switch_of_the_verifier():
    text = compiled()._module
    assert Compiler().compile(text, "builtin.module(canonicalize)", enable_verifier=False)


def test_textures_are_said_to_be_missing():
    assert "neither are textures and surfaces" in " ".join((ROOT / "docs" / "pipeline.md").read_text().split())


def test_a_compile_error_has_the_tools_words():
    head = ".version 8.0\n.target sm_90a\n.address_size 64\n"
    text = f"{head}.visible .entry double_kernel() {{ nonsense; }}"
    with pytest.raises(CompileError) as caught:
        compiled(override={"ptx": text}, arch="sm_90a").stages["cubin"]
    assert "nonsense" in caught.value.nvvm_error and "Current Settings" in str(caught.value)


def test_a_dialect_by_its_proxy_takes_numbers_of_the_language():
    from cutlass._mlir.dialects import arith
    from cutlass._mlir_helpers.dialect_proxy import DialectAutoConvertProxy

    proxy = DialectAutoConvertProxy(arith)

    @cute.kernel
    def kernel(out: cute.Tensor):
        out[0] = proxy.addi(out[0], cutlass.Int32(5))

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=1, block=1)

    out = np.array([3], np.int32)
    run(out)
    assert out[0] == 8
