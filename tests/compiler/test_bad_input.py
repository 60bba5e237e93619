"""Every mistake gets an error of ours: the user's line, the values that disagree, what to do. Nothing half-done."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import assembly, double, double_kernel, floats, launched, refused
from tilewright import ArgumentError, CompileError, EmulationError, LaunchError, PassError
from tilewright.base import settings
from tilewright.ir import mlir

Int32, Float32 = cutlass.Int32, cutlass.Float32


@pytest.fixture
def ints():
    return np.zeros(64, np.int32)


@pytest.fixture(scope="module")
def compiled_double():
    return cute.compile(double, *floats())


# Calls that the language does not have.


def test_kernel_called_from_python():
    x, out = floats()
    error = refused(lambda: double_kernel(x, out), CompileError, "double_kernel is called from Python")
    assert error.hint == "kernels are launched from a @cute.jit function: kernel(args).launch(grid=..., block=...)"


def test_compile_of_a_kernel():
    x, out = floats()
    refused(lambda: cute.compile(double_kernel, x, out), CompileError, "double_kernel is a kernel", hint="@cute.jit")


def test_compile_of_a_plain_function():
    refused(lambda: cute.compile(floats), CompileError, "takes a @cute.jit function, not function", hint="decorate")


def test_kernel_called_from_a_kernel(ints):
    inner = cute.kernel(lambda out: None)

    def outer(out):
        inner(out).launch(grid=1, block=32)  # here

    refused(lambda: cute.compile(launched(outer), ints), CompileError, "called from device code", hint="@cute.jit")


@pytest.mark.parametrize(
    "what, use",
    [
        ("thread_idx", lambda: cute.arch.thread_idx()),
        ("SmemAllocator", lambda: cutlass.utils.SmemAllocator()),
        ("sync_threads", lambda: cute.arch.sync_threads()),
        ("warp_reduction", lambda: cute.arch.warp_reduction_sum(1)),
        ("a shuffle", lambda: cute.arch.shuffle_sync(1, 0)),
        ("a vote", lambda: cute.arch.vote_any_sync(True)),
    ],
)
def test_device_code_under_jit(what, use):
    @cute.jit
    def host():
        use()

    with pytest.raises(CompileError) as caught:
        cute.compile(host)
    assert what in caught.value.message and "is device code, and this function is host code" in caught.value.message
    assert caught.value.location.file == __file__
    assert caught.value.location.caller.line == use.__code__.co_firstlineno or caught.value.location.line > 0
    assert "@cute.kernel" in caught.value.hint


def test_nvvm_operation_under_jit():
    @cutlass.dsl_user_op
    def lane(loc=None, ip=None):
        i32 = mlir.ir.IntegerType.get_signless(32)
        return Int32(mlir.nvvm.read_ptx_sreg_laneid(i32, loc=loc, ip=ip))

    @cute.jit
    def host():
        cute.printf("{}", lane())  # here

    refused(lambda: cute.compile(host), CompileError, "is device code in a host function", hint="@cute.kernel")


def test_assembly_under_jit():
    @cute.jit
    def host():
        cute.printf("{}", assembly("mov.u32 $0, 1;", "=r"))  # here

    with pytest.raises(CompileError, match="inline_asm is device code in a host function") as caught:
        cute.compile(host)
    assert caught.value.location.source().endswith("# here")


@pytest.mark.parametrize(
    "use", [lambda: cute.arch.thread_idx(), lambda: cute.printf("x"), lambda: cute.arch.lane_idx()]
)
def test_language_used_in_plain_python(use):
    with pytest.raises(CompileError, match="this works only inside") as caught:
        use()
    assert caught.value.location.line == use.__code__.co_firstlineno


# Arguments.


def test_wrong_dtype(compiled_double):
    x, out = floats()
    error = refused(
        lambda: compiled_double(x.astype(np.int32), out), ArgumentError, "argument 1 'x' of double: wrong dtype"
    )
    assert error.values["expected"] == "f32 (?) : (1) on cpu" and error.values["actual"] == "i32 (100) : (1) on cpu"


def test_wrong_rank(compiled_double):
    x, out = floats()
    error = refused(lambda: compiled_double(x.reshape(10, 10), out), ArgumentError, "argument 1 'x'", "wrong rank")
    assert error.values["actual"] == "f32 (10, 10) : (10, 1) on cpu"


def test_not_a_tensor(compiled_double):
    refused(lambda: compiled_double(3, floats()[1]), ArgumentError, "argument 1 'x' of double is not a tensor", "int 3")


def test_too_few_arguments(compiled_double):
    refused(lambda: compiled_double(floats()[0]), ArgumentError, "double needs an argument for 'out'", "x, out")


def test_too_many_arguments(compiled_double):
    refused(lambda: compiled_double(*floats(), 3), ArgumentError, "double takes 2 arguments, got 3")


def test_unknown_argument_name(compiled_double):
    refused(lambda: compiled_double(*floats(), y=3), ArgumentError, "double has no parameter 'y'")


def test_wrong_number_of_arguments_to_compile():
    refused(lambda: cute.compile(double, floats()[0]), CompileError, "missing a required argument: 'out'")


def test_unknown_keyword_to_compile():
    refused(lambda: cute.compile(double, *floats(), y=3), CompileError, "unexpected keyword argument 'y'")


def test_wrong_type_for_a_tensor_parameter():
    error = refused(lambda: cute.compile(double, 3, floats()[1]), CompileError, "expects argument #1 (x) to be")
    assert error.message == "expects argument #1 (x) to be cute.Tensor, but got int"


def test_wrong_type_for_a_number_parameter():
    @cute.jit
    def host(n: Int32):
        pass

    error = refused(
        lambda: cute.compile(host, "seven"), CompileError, "expects argument #1 (n) to be Int32, but got str"
    )
    assert "Int32" in error.message


def test_wrong_argument_of_a_kernel(ints):
    @cute.kernel
    def kernel(out: cute.Tensor, n: Int32):
        out[0] = n

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out, out).launch(grid=1, block=1)  # here

    refused(lambda: cute.compile(host, ints), CompileError, "expects argument #2 (n) to be", "Int32", "Tensor")


def test_wrong_number_of_arguments_of_a_kernel():
    @cute.jit
    def host(x: cute.Tensor):
        double_kernel(x).launch(grid=1, block=1)  # here

    refused(
        lambda: cute.compile(host, floats()[0]), CompileError, "double_kernel", "missing a required argument: 'out'"
    )


def test_read_only_array():
    x, out = floats()
    out.flags.writeable = False
    executor = cute.compile(double, x, out)
    with pytest.raises(EmulationError, match=r"(?i)write.*read-only"):
        executor(x, out)
    assert not out.any()


# Control flow; the whole of it is tested in tests/lang/control.


def test_type_change_across_a_branch(ints):
    def body(out):
        i = cute.arch.lane_idx()
        value = i
        if i > 3:  # here
            value = Float32(1.5)
        out[i] = value

    error = refused(lambda: cute.compile(launched(body), ints), CompileError, "`value` has different types")
    assert {"Int32", "Float32"} <= set(error.values.values())


def test_name_defined_in_one_branch_only(ints):
    def body(out):
        i = cute.arch.lane_idx()
        if i > 3:
            value = 1
        out[i] = value  # here

    refused(
        lambda: cute.compile(launched(body), ints),
        CompileError,
        "`value` is used",
        "only one branch",
        hint="before the `if`",
    )


def test_break_in_a_runtime_loop(ints):
    def body(out):
        for i in range(cute.arch.lane_idx()):
            if i > 3:
                break  # here
        out[0] = 1

    refused(lambda: cute.compile(launched(body), ints), CompileError, "`break`", hint="range_constexpr")


def test_runtime_condition_without_preprocessing(ints):
    @cute.kernel(preprocess=False)
    def kernel(out: cute.Tensor):
        if cute.arch.lane_idx() > 1:  # here
            out[0] = 1

    @cute.jit(preprocess=False)
    def host(out: cute.Tensor):
        kernel(out).launch(grid=1, block=32)

    refused(
        lambda: cute.compile(host, ints),
        CompileError,
        "known only at run time decides a Python branch",
        hint="preprocess=True",
    )


# Launches.


def test_block_over_1024_threads_static():
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        double_kernel(x, out).launch(grid=1, block=(32, 33, 1))  # here

    refused(
        lambda: cute.compile(host, *floats()),
        CompileError,
        "a block of 1056 threads",
        "(32, 33, 1)",
        hint="fewer threads",
    )


@cute.jit
def launch_sizes(x: cute.Tensor, out: cute.Tensor, grid: Int32, block: Int32, smem: Int32):
    double_kernel(x, out).launch(grid=(grid, 1, 1), block=(block, 1, 1), smem=smem)


LAUNCH_LINE = launch_sizes.function.__code__.co_firstlineno + 2


@pytest.fixture(scope="module")
def sized():
    return cute.compile(launch_sizes, *floats(), 1, 32, 0)


@pytest.mark.parametrize(
    "grid, block, smem, kind, words",
    [
        (1, 1025, 0, LaunchError, ["at most 1024 threads", "(1025, 1, 1)"]),
        (1, 0, 0, LaunchError, ["at most 1024 threads", "(0, 1, 1)"]),
        (1, -32, 0, LaunchError, ["(-32, 1, 1)"]),
        (0, 32, 0, LaunchError, ["a grid has 1 to 2147483647 blocks", "(0, 1, 1)", "skip the launch"]),
        (-1, 32, 0, LaunchError, ["(-1, 1, 1)"]),
        (1, 32, 300000, (LaunchError, ArgumentError), ["shared memory", "300000", "232448"]),
    ],
)
def test_sizes_refused_at_launch(sized, grid, block, smem, kind, words):
    x, out = floats()
    with pytest.raises(kind) as caught:
        sized(x, out, grid, block, smem)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert (caught.value.location.file, caught.value.location.line) == (__file__, LAUNCH_LINE)
    assert not out.any()
    sized(x, out, 4, 32, 0)  # the function still works


def test_grid_without_blocks_static():
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        double_kernel(x, out).launch(grid=(0, 1, 1), block=32)  # here

    refused(
        lambda: cute.compile(host, *floats()),
        CompileError,
        "a grid without blocks",
        "(0, 1, 1)",
        hint="skip the launch",
    )


@pytest.mark.parametrize(
    "name, value", [("grid", (1, 2, 3, 4)), ("grid", 1.5), ("block", "32"), ("block", (1, 2.5)), ("cluster", 2.0)]
)
def test_launch_dimensions_that_are_none(name, value):
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        double_kernel(x, out).launch(**{"grid": 1, "block": 32, name: value})  # here

    refused(lambda: cute.compile(host, *floats()), CompileError, f"{name} takes one to three integers", str(value))


def test_unknown_launch_option():
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        double_kernel(x, out).launch(grid=1, blocks=32)  # here

    refused(
        lambda: cute.compile(host, *floats()),
        CompileError,
        "launch has no option 'blocks'",
        hint="grid, block, cluster",
    )


def test_shared_memory_by_another_name():
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        double_kernel(x, out).launch(grid=1, block=32, shared_mem=1024)  # here

    refused(lambda: cute.compile(host, *floats()), CompileError, "no option 'shared_mem'", hint="memory is `smem=`")


def test_shared_memory_over_the_limit(ints):
    def body(out):
        shared = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout(60000))
        shared[0] = 1.0
        out[0] = Int32(shared[0])

    @cute.jit
    def host(out: cute.Tensor):
        cute.kernel(body)(out).launch(grid=1, block=1)  # here

    error = refused(
        lambda: cute.compile(host, ints), CompileError, "240000 bytes of shared memory", hint="smaller tile"
    )
    assert error.values == {"limit": "232448 bytes a block on sm_90a"}
    with pytest.raises(CompileError, match="101376 bytes a block on sm_86"):
        cute.compile(host, ints, arch="sm_86")


# Chips, options, tools.


@pytest.mark.parametrize(
    "given", [{"arch": "sm_42"}, {"options": "--gpu-arch sm_42"}, {"options": cute.GPUArch("sm_42")}]
)
def test_unknown_arch(given):
    error = refused(lambda: cute.compile(double, *floats(), **given), CompileError, "unknown architecture 'sm_42'")
    assert "sm_90a" in error.hint


def test_unknown_option():
    error = refused(lambda: cute.compile(double, *floats(), options="--frobnicate 3"), CompileError, "'--frobnicate'")
    assert "--opt-level" in error.hint and error.values == {"options": "--frobnicate 3"}


@pytest.mark.parametrize(
    "options, words",
    [
        ("--opt-level 7", "0, 1, 2 or 3, not 7"),
        ("--opt-level", "needs a value"),
        (3, "3 is no compile option"),
        ("opt-level 2", "'opt-level'"),
    ],
)
def test_wrong_options(options, words):
    refused(lambda: cute.compile(double, *floats(), options=options), CompileError, words)


def test_unknown_target():
    refused(
        lambda: cute.compile(double, *floats(), target="tpu"), CompileError, "unknown target 'tpu'", hint="cuda, emu"
    )


def test_missing_assembler_and_the_emulator_still_runs(monkeypatch):
    from tilewright.targets.nvidia.toolkit import toolchain

    monkeypatch.setattr(toolchain, "locate", lambda name, *rest, **kw: None)
    x, out = floats()
    executor = cute.compile(double, x, out)
    executor(x, out)
    assert (out == 2 * x).all()
    error = refused(lambda: executor.stages["cubin"], CompileError, "not found")
    assert "pip install nvidia-nvjitlink, or set CUDA_TOOLKIT_PATH" in error.hint


# Inline assembly.


@pytest.mark.parametrize(
    "text, constraints, words",
    [
        ("add.s32 $0, $1, 5;", "=Q,r", ["there is no constraint 'Q'"]),
        ("add.s32 $0, $1, 5;", "=r,r,r", ["2 input constraints for 1 operands"]),
        ("add.s32 $0, $1, 5;", "r,r", ["0 output constraints for 1 results"]),
        ("add.s32 $0, $1, 5;", "+r,r", ["read and written"]),
        ("add.s32 $0, $1, 5;", "=r,7", ["there is no constraint '7'"]),
        ("add.s32 $0, $1, $9;", "=r,r", ["`$9` is used, but the last operand is $1"]),
        ("add.s32 $0, $1, $ 5;", "=r,r", ["`$ ` names no operand", "`$$`"]),
        ("add.s32 $0, $1, 5;", "=r,h", ["'h' is a register of 16 bits, its operand has 32"]),
        ("add.s32 $0, $1, 5;", "", ["0 output constraints for 1 results", "(none)"]),
        ("add.s32 $0, $1, 5;", "r,=r", ["outputs must stand before inputs"]),
    ],
)
def test_inline_assembly_that_cannot_be_right(ints, text, constraints, words):
    def body(out):
        out[0] = assembly(text, constraints, cute.arch.lane_idx())  # here

    error = refused(lambda: cute.compile(launched(body), ints), CompileError, "inline assembly", *words)
    assert error.values["assembly"] == text and "~{memory}" in error.hint


def test_inline_assembly_that_is_right(ints):
    def body(out):
        i = cute.arch.lane_idx()
        out[i] = assembly("add.s32 $0, $1, $2;", "=r,r,n", i, Int32(5)) + assembly("mov.u32 $0, $1; // $$", "=r,0", i)

    executor = cute.compile(launched(body), ints)
    executor(ints)
    assert (ints[:32] == 2 * np.arange(32) + 5).all()


def test_instruction_that_does_not_exist(ints):
    def body(out):
        out[0] = assembly("frobnicate.s32 $0, $1;", "=r,r", cute.arch.lane_idx())  # here

    executor = cute.compile(launched(body), ints)
    for use in (lambda: executor(ints), lambda: executor.stages["cubin"]):
        error = refused(use, CompileError, "Not a name of any known instruction: 'frobnicate'", "Possible Solutions:")
        assert "PTX Compilation Error:" in error.message and "Target Architecture: sm_90a" in error.message


# Operations that the chip lacks.


@cutlass.dsl_user_op
def elect(loc=None, ip=None):
    return cutlass.Boolean(mlir.nvvm.elect_sync(mlir.ir.IntegerType.get_signless(1), loc=loc, ip=ip))


TMA = (
    "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [$1], [$2, {0}], [$1]; mov.u32 $0, 0;"
)


@pytest.mark.parametrize(
    "use, words",
    [
        (lambda out: elect(), ["nvvm.elect.sync is not available on sm_80 (Ampere (A100))", "sm_90 or newer"]),
        (
            lambda out: assembly("setmaxnreg.inc.sync.aligned.u32 64; mov.u32 $0, 0;", "=r"),
            ["setmaxnreg is not", "sm_90a"],
        ),
        (
            lambda out: assembly(TMA, "=r,l,l", cutlass.Int64(0), out.iterator.toint()),
            ["cp.async.bulk is not available on sm_80"],
        ),
        (lambda out: assembly("{ .reg .b32 a; mapa.shared::cluster.u32 $0, $1, 0; }", "=r,r", Int32(0)), ["mapa"]),
        (lambda out: assembly("mov.u32 $0, %cluster_ctarank;", "=r"), ["cluster"]),
        (lambda out: cute.arch.block_idx_in_cluster(), ["is not available on sm_80"]),
        (lambda out: cute.arch.fence_acq_rel_cluster(), ["is not available on sm_80"]),
    ],
)
def test_operation_that_the_chip_lacks(ints, use, words):
    def body(out):
        use(out)
        out[0] = 1

    with pytest.raises(CompileError) as caught:
        cute.compile(launched(body), ints, arch="sm_80")
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.values["architecture"] == "sm_80" and "compile for" in caught.value.hint
    assert caught.value.location.file == __file__
    assert {place.line for place in caught.value.location.chain()} >= {body.__code__.co_firstlineno + 1}
    cute.compile(launched(body), ints, arch="sm_90a")  # the same process, on a chip that has it


def test_cluster_on_a_chip_without():
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        double_kernel(x, out).launch(grid=2, block=32, cluster=(2, 1, 1))  # here

    refused(
        lambda: cute.compile(host, *floats(), arch="sm_89"),
        CompileError,
        "a launch with clusters is not available on sm_89",
    )


def test_ptx_version_follows_inline_assembly(ints):
    def body(out):
        out[0] = assembly(
            "{ .reg .b128 v; atom.global.exch.b128 v, [$1], v; mov.u32 $0, 0; }", "=r,l", out.iterator.toint()
        )

    executor = cute.compile(launched(body), ints)
    assert executor.stages["ptx"].splitlines()[4] == ".version 8.3"  # atom.b128 came with 8.3, sm_90a with 8.0
    assert executor.stages["cubin"]


# Faults while running.


def test_out_of_bounds_on_the_emulator(ints):
    def body(out):
        i = cute.arch.lane_idx()
        out[i + 40] = i  # here

    executor = cute.compile(launched(body), ints)
    error = refused(
        lambda: executor(ints), EmulationError, "Out-of-bounds write of global memory", "thread", "(24, 0, 0)"
    )
    assert error.values["kernel"] == "body"
    x, out = floats()
    double(x, out)  # the process lives on
    assert (out == 2 * x).all()


def test_false_host_assertion():
    @cute.jit
    def host(n: Int32):
        cute.testing.assert_(n < 10, "n must be small")  # here

    executor = cute.compile(host, 3)
    executor(9)
    with pytest.raises(LaunchError, match="n must be small") as caught:
        executor(10)
    assert f"{__file__}:{host.function.__code__.co_firstlineno + 2}" in str(caught.value)
    executor(3)


def test_false_assertion_of_compile_time():
    @cute.jit
    def host():
        cute.testing.assert_(1 > 2, "impossible")  # here

    refused(lambda: cute.compile(host), CompileError, "impossible")


def test_device_assertion(ints):
    def body(out):
        i = cute.arch.lane_idx()
        cute.testing.assert_(i < 10, "i must be small")  # here
        out[i] = i

    cute.compile(launched(body), ints)(ints)
    executor = cute.compile(launched(body), ints, options="--enable-assertions")
    refused(lambda: executor(ints), EmulationError, "i must be small", "(10, 0, 0)")


def test_exception_of_the_users_own_at_trace_time(ints):
    def body(out):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        cute.compile(launched(body), ints)
    x, out = floats()
    double(x, out)
    assert (out == 2 * x).all()


def test_a_list_for_a_tensor():
    refused(lambda: double([1.0, 2.0], floats()[1]), CompileError, "expects argument #1 (x)", hint="numpy.asarray")


def test_an_argument_left_out():
    refused(lambda: double(floats()[0]), CompileError, "double(x, out): missing a required", hint="each parameter")


def test_shared_memory_of_a_launch_is_too_small():
    @cute.kernel
    def kernel(out: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        shared = cutlass.utils.SmemAllocator().allocate_tensor(Int32, cute.make_layout(64), 16)
        shared[thread] = thread  # here
        out[thread] = shared[thread]

    @cute.jit
    def host(out: cute.Tensor, smem: Int32):
        kernel(out).launch(grid=(1, 1, 1), block=(64, 1, 1), smem=smem)

    compiled = cute.compile(host, np.zeros(64, np.int32), 256, target="emu")
    compiled(np.zeros(64, np.int32), 256)
    with pytest.raises(EmulationError, match="Out-of-bounds access to shared memory") as caught:
        compiled(np.zeros(64, np.int32), 64)
    assert "smem= must cover all that the kernel allocates" in str(caught.value)


# Tensors.


@pytest.mark.parametrize(
    "use, words",
    [
        (lambda t: t[1.5], ["indexed by integers, not by float", "1.5"]),
        (lambda t: t[0, 0], ["2 indices for a tensor of rank 1", "(0,0)"]),
        (lambda t: t.load(), ["load of a tensor whose size is known only at run time"]),
        (lambda t: t.store(1), ["store of a tensor whose size"]),
        (lambda t: t.fill(1), ["fill of a tensor whose size"]),
        (lambda t: t["a"], ["indexed by integers, not by str"]),
        (lambda t: int(t[0]), ["known only at run time is used where Python needs a number"]),
        (lambda t: cute.make_rmem_tensor(cute.size(t), Int32), ["the size must be known then", "cutlass.Constexpr"]),
        (lambda t: np.exp(Float32(t[0])), ["loop of ufunc", "`cute.math` has functions of runtime values"]),
        (lambda t: Int32(1) // 0, ["division by zero"]),
        (lambda t: list(t), ["iteration of a tensor whose size is known only at run time"]),
        (lambda t: cutlass.utils.SmemAllocator().allocate(-3), ["-3 bytes of shared memory"]),
        (lambda t: cutlass.utils.SmemAllocator().allocate(8, byte_alignment=3), ["alignment 3 is no power of two"]),
        (lambda t: Int32("a"), ["takes a number, got str"]),
        (lambda t: t[0] & 1.5, ["`and` on Int32 and Float32"]),
        (lambda t: ~Float32(t[0]), ["~ on a Float32"]),
        (lambda t: cute.arch.barrier(barrier_id=16), ["barrier 16"]),
        (lambda t: cute.arch.barrier(barrier_id=1, number_of_threads=33), ["a barrier of 33 threads"]),
        (lambda t: cute.arch.barrier_arrive(barrier_id=1), ["needs number_of_threads"]),
        (lambda t: cute.arch.warp_reduction_sum(1, threads_in_group=3), ["over 3 lanes"]),
        (lambda t: cute.printf("{} {}", 1), ["more placeholders than values"]),
        (lambda t: cute.printf("{}", 1, 2), ["1 values without a placeholder"]),
        (lambda t: Int32(1).bitcast(cutlass.Int64), ["bitcast from Int32 to Int64"]),
        (
            lambda t: cute.composition(cute.make_layout((4, 6, 8), stride=(2, 3, 5)), cute.make_layout(6, stride=3)),
            ["4", "3"],
        ),
    ],
)
def test_misuse_in_a_kernel(ints, use, words):
    def body(out):
        use(out)

    with pytest.raises(cutlass.TilewrightError) as caught:
        cute.compile(launched(body), ints)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.location.file == __file__
    assert caught.value.location.line == use.__code__.co_firstlineno


@pytest.mark.parametrize("value", ["text", None, [1]])
def test_store_of_no_number(ints, value):
    def body(out):
        out[0] = value  # here

    error = refused(lambda: cute.compile(launched(body), ints), CompileError, "expected a number to store")
    assert error.values["tensor"] is not None


def test_unknown_stage(compiled_double):
    with pytest.raises(KeyError, match="python, cute, nvvm, llvm, ptx, cubin, sass"):
        compiled_double.stages["spirv"]


def test_stage_of_a_function_without_kernels():
    @cute.jit
    def host():
        pass

    executor = cute.compile(host)
    executor()
    with pytest.raises(CompileError, match="host launches no kernel"):
        executor.stages["ptx"]


def test_settings_that_are_not_valid():
    with pytest.raises(CompileError, match="unknown setting 'speed'"), settings.scope(speed=3):
        pass


def test_errors_are_of_one_family():
    for kind in (CompileError, PassError, ArgumentError, EmulationError, LaunchError, cutlass.LayoutError):
        assert issubclass(kind, cutlass.TilewrightError)
    assert cutlass.DSLRuntimeError is cutlass.CompilationError is CompileError


def test_a_layout_before_the_pointer():
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        cute.make_tensor(cute.make_layout(4), x.iterator)  # here

    refused(
        lambda: cute.compile(host, *floats()), CompileError, "the pointer first", hint="make_tensor(pointer, layout)"
    )


@pytest.mark.parametrize("decorator", [cute.jit, cute.kernel], ids=["jit", "kernel"])
def test_a_decorator_says_which_options_it_ignores(decorator):
    with pytest.warns(UserWarning, match=r"ignores preproces=, which it does not have; it takes preprocess=") as caught:

        @decorator(preproces=False)
        def function(x: cute.Tensor):
            pass

    assert [item.filename for item in caught] == [__file__]


def test_an_error_of_a_call_names_the_call_alone():
    executor = cute.compile(double, *floats())
    error = refused(lambda: executor(3, floats()[1]), ArgumentError, "is not a tensor")
    assert "called from" not in error.values
