"""Modules of `cutlass` through the drop-in, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import tilewright
from tilewright.cutlass_dsl import CutlassDSL


def run(source, tmp_path):
    """Run a script through the drop-in and give what it printed."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(source))
    done = subprocess.run(
        [sys.executable, "-m", "tilewright.dropin", str(script)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_resolve_and_stay_one(tmp_path):
    source = """
        import cutlass
        import cutlass.cute as cute
        from cutlass._mlir import ir
        from cutlass._mlir.dialects import arith, llvm, math, nvvm, vector
        from cutlass._mlir.extras import types
        from cutlass._mlir._mlir_libs._cutlass_ir._mlir.ir import IntegerType
        from cutlass.base_dsl.arch import Arch
        from cutlass.base_dsl.compiler import CompileOptions, Compiler, OptLevel, PostCompileHookContext
        from cutlass.base_dsl.env_manager import EnvironmentVarManager
        from cutlass.base_dsl.jit_executor import walk_module_and_get_cubin_data
        from cutlass.base_dsl.runtime.cuda import checkCudaErrors
        from cutlass.base_dsl.typing import get_mlir_types
        from cutlass.base_dsl.utils.logger import log
        from cutlass.cute.arch.nvvm_wrappers import FULL_MASK, WARP_SIZE
        from cutlass.cute.core import make_layout
        from cutlass.cutlass_dsl import T, BaseDSL, CuTeDSL, CutlassDSL, dsl_user_op, if_generate
        import cutlass.pipeline, cutlass.utils, cutlass.torch, cutlass.cuda, cutlass.cute.testing
        import cutlass.cute.cuda as cuda
        from cutlass.cute import from_dlpack

        assert cutlass.memory.SmemAllocator is cutlass.utils.SmemAllocator and cute.runtime.FakeTensor
        assert from_dlpack is cute.runtime.from_dlpack and cuda.CUstream(5).cuda_stream == 5
        assert IntegerType is ir.IntegerType and make_layout is cute.make_layout
        assert Arch.sm_90a >= Arch.sm_90 > Arch.sm_80 and Arch.sm_103.is_family_of(Arch.sm_100)
        assert checkCudaErrors((0, 5)) == 5
        print("fine")
    """
    assert run(source, tmp_path) == "fine\n"


def test_a_dsl_object_brings_its_pass_list_and_hooks_see_the_result(tmp_path):
    source = """
        import cutlass
        import cutlass.cute as cute
        from cutlass.base_dsl.compiler import PostCompileHookContext
        from cutlass.cutlass_dsl import CutlassDSL

        @cutlass.register_pass
        class Noted(cutlass.Pass):
            name = "noted"
            options = {"n": 0}

            def run(self, module):
                print("pass", self["n"])

        class Mine(CutlassDSL):
            def _get_pipeline(self, pipeline):
                standard = super()._get_pipeline(pipeline)
                return standard.replace("cute-to-nvvm", "noted{n=7},cute-to-nvvm", 1)

        dsl = Mine()

        @dsl.kernel
        def kernel():
            cute.printf("kernel")

        @dsl.jit
        def host():
            kernel().launch(grid=1, block=1)

        with PostCompileHookContext(None, lambda text: print("hook", "llvm.func" in text)):
            compiled = cute.compile(host, target="emu")
        compiled()
    """
    assert run(source, tmp_path) == "pass 7\nhook True\nkernel\n"


def test_programs_that_start_others_find_cutlass_on_the_path():
    folder = Path(tilewright.__file__).parent / "dropin_path"
    source = "import cutlass, cutlass.cute as cute; print(cutlass.__name__, cute.__name__)"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, env=environment)
    assert done.stdout == "tilewright tilewright.cute\n", done.stderr


def test_a_stream_named_as_in_the_guide_on_compiling_ahead_of_time(tmp_path):
    source = """
        import numpy as np
        import cutlass.cute as cute
        import cutlass.cute.cuda as cuda
        from cutlass.cute import from_dlpack

        @cute.kernel
        def kernel(a: cute.Tensor):
            a[0] = 7.0

        @cute.jit
        def fill(a: cute.Tensor, stream: cuda.CUstream):
            kernel(a).launch(grid=(1, 1, 1), block=(1, 1, 1), stream=stream)

        a = np.zeros(4, np.float32)
        cute.compile(fill, from_dlpack(a), cuda.CUstream(0))(from_dlpack(a), stream=cuda.CUstream(0))
        print(a[0])
    """
    assert run(source, tmp_path) == "7.0\n"


def test_modules_that_are_not_here_are_named_as_they_were_imported(tmp_path):
    source = """
        import importlib
        import numpy as np
        import cutlass.cute as cute

        def refused(name):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                print(error)

        @cute.jit
        def nothing(x: cute.Tensor):
            pass

        refused("cutlass.base_dsl.not_there")
        refused("cutlass._mlir.dialects.not_there")
        cute.compile(nothing, np.zeros(4, np.float32), target="emu")
        refused("cutlass._mlir.dialects.not_there")
    """
    printed = run(source, tmp_path)
    assert printed.splitlines() == [
        "No module named 'cutlass.base_dsl.not_there'",
        *["No module named 'cutlass._mlir.dialects.not_there'"] * 2,
    ]


def test_a_pass_list_with_the_chip_filled_in():
    dsl = CutlassDSL()
    for text, wanted in (
        ("builtin.module(cute-to-nvvm)", "builtin.module(cute-to-nvvm{cubin-chip=sm_80})"),
        ("builtin.module(a,cute-to-nvvm{opt-level=1})", "builtin.module(a,cute-to-nvvm{cubin-chip=sm_80 opt-level=1})"),
        ("builtin.module(cute-to-nvvm{cubin-chip=sm_90})", "builtin.module(cute-to-nvvm{cubin-chip=sm_90})"),
    ):
        assert dsl.preprocess_pipeline(text, "sm_80") == wanted
