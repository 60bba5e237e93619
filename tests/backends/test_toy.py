"""A back end of a folder and a line of registration: it compiles, runs, takes overrides, options and `--emit`."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.cute as cute
from tests.backends.kernels import add, scaled_sum
from tilewright import ArgumentError, CompileError, LaunchError, PassError, before
from tilewright.base import settings
from tilewright.ir import mlir
from tilewright.ir.walk import operations
from tilewright.passes.pipeline import Pass
from tilewright.targets.artifact_bytes import from_bytes, to_bytes
from tilewright.targets.target import back_end_of, device_of, register, target_names
from tilewright.tools.commands.compile import command
from tilewright.tools.demo_kernels import add as tutorial_add

N = 150


def vectors(dtype=np.float32):
    """Two vectors of integers, whose sums are exact, and one for the result."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-100, 100, N).astype(dtype) for _ in range(2))
    return a, b, np.zeros(N, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_vector_add(dtype):
    a, b, c = vectors(dtype)
    compiled = cute.compile(tutorial_add, a, b, c, target="toy")
    compiled(a, b, c)
    assert (c == a + b).all() and c.any()
    assert (compiled.target, compiled.arch, compiled.back_end.name) == ("toy", "numpy", "toy")


def test_a_direct_call_goes_to_the_target_that_is_set():
    a, b, c = vectors()
    with settings.scope(target="toy"):
        add(a, b, c)
    assert (c == a + b).all()


def test_a_host_function_with_two_launches():
    a, b, c = vectors()
    compiled = cute.compile(scaled_sum, a, b, c, 1.0, target="toy")
    assert list(compiled.kernels) == ["add_kernel", "scale_kernel"]
    for factor in (3.0, -0.5):
        compiled(a, b, c, factor)
        assert (c == np.float32(factor) * (a + b)).all()
    compiled(a, b, factor=2.0, c=c)
    assert (c == 2 * (a + b)).all()


def test_its_stages():
    a, b, c = vectors()
    compiled = cute.compile(scaled_sum, a, b, c, 1.0, target="toy")
    assert list(compiled.stages) == ["python", "cute", "counts"]
    assert compiled.stages["cute"].count("gpu.launch_func") == 2 and compiled.__mlir__ == compiled.stages["cute"]
    counts = compiled.stages["counts"]
    assert "arith.addf 1\n" in counts["add_kernel"] and "arith.addf" not in counts["scale_kernel"]
    assert "arith.mulf 1\n" in counts["scale_kernel"]
    assert compiled.kernels["scale_kernel"].stages["counts"] == counts["scale_kernel"]
    assert set(compiled.timings) == {"python", "cute", "counts"} and set(compiled.operations) == {"cute"}
    with pytest.raises(KeyError, match="'ptx'; the stages are python, cute, counts"):
        compiled.stages["ptx"]


def test_override():
    a, b, c = vectors()
    text = cute.compile(add, a, b, c, target="toy").stages["cute"]
    edited = cute.compile(add, a, b, c, target="toy", override={"cute": text.replace("arith.addf", "arith.subf")})
    edited(a, b, c)
    assert (c == a - b).all()
    assert "arith.subf 1\n" in edited.stages["counts"]
    given = cute.compile(add, a, b, c, target="toy", override={"counts": "kernel add_kernel\nnone\n"})
    assert given.stages["counts"] == "kernel add_kernel\nnone\n"


def test_overrides_that_it_refuses():
    a, b, c = vectors()
    with pytest.raises(CompileError, match="stage 'ptx' cannot be replaced") as caught:
        cute.compile(add, a, b, c, target="toy", override={"ptx": "x\n"})
    assert caught.value.hint == "override takes cute, counts"
    given = cute.compile(add, a, b, c, target="toy", override={"counts": "kernel other\n"})
    with pytest.raises(CompileError, match="the text given for stage counts has no kernel 'add_kernel'"):
        given.stages["counts"]


def test_options_of_its_own():
    a, b, c = vectors()
    compiled = cute.compile(add, a, b, c, target="toy", options="--most-threads 128 --fast-sums")
    assert compiled.artifact.options.fast_sums
    with pytest.raises(LaunchError, match="too many threads: 192, at most 128"):
        compiled(a, b, c)
    given = cute.CompileOptions("--most-threads 192")
    assert given.to_str() == "--most-threads 192"
    cute.compile(add, a, b, c, target="toy", options=given)(a, b, c)
    assert (c == a + b).all()


@pytest.mark.parametrize("options", ["--most-threads many", "--keep-ptx", cute.KeepPTX, {"ptx_backend": "llvm"}])
def test_options_that_it_refuses(options):
    a, b, c = vectors()
    with pytest.raises(CompileError, match=r"unknown compile option|takes a number, not 'many'"):
        cute.compile(add, a, b, c, target="toy", options=options)
    with pytest.raises(CompileError, match="unknown compile option '--most-threads'"):
        cute.compile(add, a, b, c, target="emu", options="--most-threads 128")


def test_the_command_line_emits_its_stages(tmp_path, capsys):
    place, vector = "tests/backends/kernels.py:scaled_sum", "f32[?]"
    arguments = [vector, vector, vector, "2.0"]
    command(place, arg=arguments, emit="cute,counts", out=tmp_path / "some", target="toy")
    names = sorted(path.name for path in (tmp_path / "some").iterdir() if path.suffix != ".json")
    assert names == [
        "add_kernel.numpy.counts.txt",
        "scale_kernel.numpy.counts.txt",
        "scaled_sum.numpy.cute.mlir",
    ]
    assert "arith.mulf 1\n" in (tmp_path / "some" / "scale_kernel.numpy.counts.txt").read_text()
    command(place, arg=arguments, options="--most-threads 64", out=tmp_path / "usual", target="toy")
    assert (tmp_path / "usual" / "scaled_sum.numpy.cute.mlir").read_text().count("gpu.launch_func") == 2
    with pytest.raises(ArgumentError, match="there is no stage ptx") as caught:
        command(place, arg=arguments, emit="ptx", out=tmp_path, target="toy")
    assert "stages: python, cute, counts, or all" in str(caught.value)


def test_stages_are_kept_in_files(tmp_path):
    a, b, c = vectors()
    options = {"keep_ir": True, "dump_dir": str(tmp_path)}
    compiled = cute.compile(add, a, b, c, target="toy", options=options)
    assert (tmp_path / "add.numpy.cute.mlir").read_text() == compiled.stages["cute"]
    (path,) = compiled.write(tmp_path, ["counts"])
    assert path.name == "add.numpy.counts.txt"


class Subtract(Pass):
    """Additions of floats become subtractions."""

    name = "subtract"

    def run(self, module):
        for op in [op for op in operations(module) if op.name == "arith.addf"]:
            with mlir.ir.InsertionPoint(op), op.location:
                made = mlir.ir.Operation.create("arith.subf", [op.results[0].type], list(op.operands))
            op.results[0].replace_all_uses_with(made.results[0])
            op.erase()


class Look(Pass):
    """Changes nothing."""

    name = "look"

    def run(self, module):
        assert operations(module)


def test_passes_of_the_user():
    a, b, c = vectors()
    cute.compile(add, a, b, c, target="toy", passes=[Look, before("look", Subtract())])(a, b, c)
    assert (c == a - b).all()
    listed = cute.compile(add, a, b, c, target="toy", pipeline="builtin.module(canonicalize)")
    assert listed.pipeline == "builtin.module(canonicalize)"
    listed(a, b, c)
    assert (c == a + b).all()


def test_passes_are_validated_on_it():
    a, b, c = vectors()
    cute.compile(add, a, b, c, target="toy", passes=[Look], validate=(a, b, c))
    with pytest.raises(PassError, match="pass subtract changes what add computes"):
        cute.compile(add, a, b, c, target="toy", passes=[Look, Subtract], validate=(a, b, c))


def test_an_artifact_goes_through_bytes():
    a, b, c = vectors()
    made = cute.compile(scaled_sum, a, b, c, 1.0, target="toy", options="--most-threads 200").artifact
    copy = from_bytes(to_bytes(made))
    assert copy == made and copy.options.most_threads == 200 and list(copy.stages) == ["cute"]
    device_of("toy")(copy, True).run([a, b, c, 4.0])
    assert (c == 4 * (a + b)).all()


def test_arguments_that_it_refuses():
    a, b, c = vectors()
    compiled = cute.compile(add, a, b, c, target="toy")
    with pytest.raises(ArgumentError, match="c: a contiguous array of f32 is expected"):
        compiled(a, b, c.astype(np.float64))
    with pytest.raises(ArgumentError, match="add takes 3 arguments, got 4"):
        compiled(a, b, c, c)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda made: made.report(), "back end toy has no report"),
        (lambda made: made.occupancy(64), "back end toy has no occupancy"),
        (lambda made: made.source_map, "back end toy has no source map"),
        (lambda made: made.chip, "back end toy has no table of chips"),
        (lambda made: made.kernels["add_kernel"].info, "back end toy has no machine code to read"),
        (lambda made: made.export_to_c("add.o", function_name="add"), "back end toy has no export for tvm-ffi"),
        (lambda made: made.native, "this target runs no native host code"),
        (lambda made: made.host_llvm, "back end toy has no host function as LLVM IR"),
    ],
)
def test_what_it_leaves_out_is_an_error(ask, message):
    with pytest.raises(CompileError, match=message):
        ask(cute.compile(add, *vectors(), target="toy"))


def test_a_tvm_ffi_function_is_refused():
    with pytest.raises(CompileError, match="this target gives no tvm-ffi function"):
        cute.compile(add, *vectors(), target="toy", options="--enable-tvm-ffi")


def test_architectures_are_its_own():
    with pytest.raises(CompileError, match="unknown architecture 'sm_90a'") as caught:
        cute.compile(add, *vectors(), target="toy", arch="sm_90a")
    assert caught.value.hint == "the toy back end has one: numpy"
    assert cute.compile(add, *vectors(), target="toy", arch="numpy").arch == "numpy"


def test_the_registry():
    assert target_names() == ("cuda", "emu", "tenstorrent", "toy")
    assert back_end_of("emu") is back_end_of("cuda") is not back_end_of("toy")
    with pytest.raises(CompileError, match="unknown target 'toys'") as caught:
        cute.compile(add, *vectors(), target="toys")
    assert caught.value.hint == "targets: cuda, emu, tenstorrent, toy"
    with pytest.raises(CompileError, match="target 'emu' belongs to back end nvidia"):
        register("other", "nowhere:BACK_END", ("emu",))
