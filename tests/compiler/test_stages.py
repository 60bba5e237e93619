"""All stages for every chip, the same text in every process, source lines, figures of the compiled code."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import THREADS, double, double_kernel, floats
from tilewright.base import settings
from tilewright.hw.chips import chip
from tilewright.targets.nvidia.sass.listing import disassemble, parse
from tilewright.targets.nvidia.toolkit.assemble import assemble

STAGES = ["python", "cute", "nvvm", "llvm", "ptx", "cubin", "sass"]
ARCHS = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_110", "sm_101", "sm_120"]


@cute.kernel
def reduce_kernel(x: cute.Tensor, out: cute.Tensor):
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((32,)))
    thread, _, _ = cute.arch.thread_idx()
    total = cute.arch.warp_reduction_sum(x[thread])
    if cute.arch.lane_idx() == 0:
        shared[cute.arch.warp_idx()] = total
    cute.arch.sync_threads()
    if thread == 0:
        out[0] = shared[0] + shared[1]


@cute.jit
def reduce(x: cute.Tensor, out: cute.Tensor):
    reduce_kernel(x, out).launch(grid=1, block=64)


@pytest.fixture(scope="module")
def executor():
    return cute.compile(double, *floats())


@pytest.mark.parametrize("arch", ARCHS)
def test_every_stage_for_every_chip(arch):
    x, out = np.arange(64, dtype=np.float32), np.zeros(1, np.float32)
    executor = cute.compile(reduce, x, out, arch=arch)
    assert list(executor.stages) == STAGES and len(executor.stages) == 7
    name = executor.arch
    assert name == arch.replace("101", "110")
    assert "def reduce(" in executor.stages["python"]
    assert '"cute.load"' in executor.stages["cute"] and "gpu.func @reduce_kernel" in executor.stages["cute"]
    assert "llvm.func @reduce_kernel" in executor.stages["nvvm"] and "cute." not in executor.stages["nvvm"]
    assert "define ptx_kernel void @reduce_kernel" in executor.stages["llvm"]
    assert f".target {name}" in executor.stages["ptx"] and f".version {chip(name).ptx}" in executor.stages["ptx"]
    assert executor.stages["cubin"][:4] == b"\x7fELF"
    assert "reduce_kernel" in executor.stages["sass"] and parse(executor.stages["sass"])
    executor(x, out)
    assert out[0] == x.sum()


def test_stages_of_the_function_and_of_its_kernel(executor):
    kernel = executor.kernels["double_kernel"]
    assert "def double_kernel(" in kernel.stages["python"]
    assert kernel.stages["cute"].startswith("gpu.module @double_kernel")
    assert kernel.stages["nvvm"].startswith("gpu.module @double_kernel")
    for stage in ("llvm", "ptx", "cubin", "sass"):
        assert kernel.stages[stage] == executor.stages[stage]
    assert executor.__mlir__ == executor.stages["cute"] and executor.__ptx__ == executor.stages["ptx"]
    assert executor.__cubin__ == executor.stages["cubin"] and executor.__sass__ == executor.stages["sass"]


def test_tensor_operations_stay_whole_in_stage_cute():
    def body(x):
        fragment = cute.make_rmem_tensor((4,), cute.Float32)
        tile = cute.local_tile(x, (4,), (cute.arch.lane_idx(),))
        cute.autovec_copy(tile, fragment)
        tile.store(fragment.load() * 2.0)

    kernel = cute.kernel(body)

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=32)

    x = np.arange(128, dtype=np.float32)
    executor = cute.compile(host, cute.runtime.from_dlpack(x, assumed_align=16))
    text = executor.stages["cute"]
    for operation, count in (("cute.copy_value", 1), ("cute.load_tensor", 0), ("cute.store_tensor", 1)):
        assert text.count(f'"{operation}"') == count
    assert '"rmem"' not in text and '!cute.tensor<f32, "gmem", "(4):(1)"' in text  # registers are values
    assert executor.report().kernels[0].vector_bits == (128,)
    executor(cute.runtime.from_dlpack(x, assumed_align=16))
    assert (x == 2 * np.arange(128)).all()


SCRIPT = """
import hashlib, sys
import numpy as np
import tilewright.cute as cute
from tests.compiler.test_stages import reduce, double
from tests.compiler.support import floats
x, out = np.arange(64, dtype=np.float32), np.zeros(1, np.float32)
for executor in (cute.compile(double, *floats()), cute.compile(reduce, x, out)):
    for stage in executor.stages:
        content = executor.stages[stage]
        data = content if isinstance(content, bytes) else content.encode()
        print(executor.name, stage, hashlib.sha256(data).hexdigest())
    print(executor.name, "host", hashlib.sha256(executor.host_llvm.encode()).hexdigest())
    print(executor.name, "object", hashlib.sha256(executor.device.host.object_bytes).hexdigest())
"""


def digests(seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_same_text_in_two_processes(executor):
    first, second = digests("1"), digests("4242")
    assert first == second and len(first.splitlines()) == 18
    ptx = hashlib.sha256(executor.stages["ptx"].encode()).hexdigest()
    assert f"double ptx {ptx}" in first


def test_the_same_text_twice_in_one_process(executor):
    again = cute.compile(double, *floats())
    for stage in STAGES:
        assert again.stages[stage] == executor.stages[stage]


# Source lines.

LINE = double_kernel.function.__code__.co_firstlineno
FILE = double_kernel.function.__code__.co_filename


def test_ptx_has_the_users_lines(executor):
    ptx = executor.stages["ptx"]
    assert f'"{FILE}"' in ptx
    lines = {int(line) for line in re.findall(r"\.loc\s+\d+ (\d+)", ptx)} - {0}
    assert {LINE + 2, LINE + 3, LINE + 4} <= lines
    assert "debug" not in ptx.splitlines()[5]


def test_lines_in_ptx_do_not_change_the_code(executor):
    bare = "".join(
        line for line in executor.stages["ptx"].splitlines(True) if ".loc" not in line and ".file" not in line
    )
    found = parse(disassemble(assemble(bare, executor.arch).data))
    assert [(i.offset, i.text) for i in found] == [(i.offset, i.text) for i in parse(executor.stages["sass"])]


def test_line_tables_do_not_change_the_code(executor):
    with_lines = cute.compile(double, *floats(), options="--generate-line-info")
    plain, lined = (
        [(item.offset, item.text) for item in parse(made.stages["sass"])] for made in (executor, with_lines)
    )
    assert plain == lined
    assert with_lines.stages["cubin"] != executor.stages["cubin"]


@pytest.mark.parametrize("options", ["", "--generate-line-info", "--opt-level 1"])
def test_source_map_goes_both_ways(options):
    executor = cute.compile(double, *floats(), options=options)
    table = executor.source_map
    store = table.of_line(LINE + 4)
    assert any("st.global" in item.text for item in store["ptx"]) and any("STG" in item.text for item in store["sass"])
    assert not any("S2R" in item.text for item in store["sass"])
    for stage, items in store.items():
        rows = executor.stages[stage].splitlines()
        for item in items:
            assert item.text.split()[0] in rows[item.line - 1]
            find = table.of_ptx if stage == "ptx" else table.of_sass
            assert find(item.line) == (FILE, LINE + 4)
    assert table.of_ptx(1) is None and table.of_sass(1) is None
    assert table.of_line(LINE + 4, FILE) == store and table.of_line(LINE + 4, "other.py") == {"ptx": [], "sass": []}


def helper(value):
    return inner(value) * 2.0


def inner(value):
    return value * value + 1.0


def test_inlined_helpers_keep_their_callers():
    @cute.kernel
    def kernel(x: cute.Tensor):
        i = cute.arch.lane_idx()
        x[i] = helper(x[i])

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=32)

    executor = cute.compile(host, np.zeros(32, np.float32))
    table = executor.source_map
    line = inner.__code__.co_firstlineno + 1
    callers = [(place.file, place.line) for place in table.chains[(__file__, line)]]
    assert callers == [
        (__file__, helper.__code__.co_firstlineno + 1),
        (__file__, kernel.function.__code__.co_firstlineno + 3),
    ]
    assert any("fma" in item.text or "mul" in item.text for item in table.of_line(line)["ptx"])
    assert any(item.text.startswith(("FFMA", "FMUL", "FADD")) for item in table.of_line(line)["sass"])


# Figures.


def test_figures_of_the_compiled_code():
    x, out = np.arange(64, dtype=np.float32), np.zeros(1, np.float32)
    executor = cute.compile(reduce, x, out)
    info = executor.kernels["reduce_kernel"].info
    assert 8 <= info.registers <= 32 and info.max_block_threads == 64 and info.barriers == 1
    assert (info.spill_store_bytes, info.spill_load_bytes, info.stack_bytes, info.local_bytes) == (0, 0, 0, 0)
    assert executor.smem_bytes() == 128 and info.shared_bytes == 0
    (row,) = executor.report().kernels
    assert (row.name, row.arch, row.registers, row.shared, row.block) == (
        "reduce_kernel",
        "sm_90a",
        info.registers,
        128,
        64,
    )
    text = str(executor.report())
    for word in ("registers", "spill stores", "shared", "128", "occupancy", "warps"):
        assert word in text


def test_occupancy():
    executor = cute.compile(double, *floats())
    full = executor.occupancy(block=256)
    assert full.active_warps == full.max_warps == 64 and full.blocks_per_sm == 8
    assert executor.occupancy(block=(16, 16, 1)) == full
    limited = executor.occupancy(block=128, smem=64 * 1024)
    assert limited.blocks_per_sm == 3 and limited.active_warps == 12  # 3 * 65 KB of 228 KB
    assert "shared memory" in str(limited)
    assert executor.occupancy(block=32).blocks_per_sm == 32  # at most 32 blocks a multiprocessor


def test_occupancy_needs_a_kernel_where_there_are_two():
    @cute.jit
    def both(x: cute.Tensor, out: cute.Tensor):
        double_kernel(x, out).launch(grid=2, block=THREADS)
        double_kernel(out, x).launch(grid=2, block=THREADS)

    executor = cute.compile(both, *floats())
    assert list(executor.kernels) == ["double_kernel", "double_kernel_1"]
    with pytest.raises(cutlass.CompileError, match="2 kernels"):
        executor.occupancy(block=64)
    assert executor.occupancy(block=64, kernel="double_kernel_1").active_warps > 0
    assert set(executor.stages["ptx"]) == set(executor.kernels)


def test_times_of_stages_and_passes(executor):
    assert list(executor.timings)[:5] == STAGES[:5] and all(seconds >= 0 for seconds in executor.timings.values())
    names = [name for name, _ in executor.pass_timings]
    assert any(name.startswith("cute-to-nvvm") for name in names) and "place-shared-memory" in names


def test_observers_look_on():
    seen = []
    cute.compile(double, *floats(), observers=[lambda stage, job: seen.append((stage, job.arch))])
    assert seen == [(stage, "sm_90a") for stage in STAGES[:5]]


def test_kept_files(tmp_path):
    with settings.scope(dump_dir=str(tmp_path)):
        cute.compile[cute.KeepPTX, cute.KeepCUBIN](double, *floats())
        cute.compile(double, *floats(), options="--keep-sass --opt-level 1")
        cute.compile(double, *floats(), options="--keep-ptx --opt-level 0")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "double.sm_90a.1.ptx", "double.sm_90a.cubin", "double.sm_90a.ptx", "double.sm_90a.sass",
    ]  # fmt: skip


def test_keeping_stages_of_host_code_alone_keeps_nothing(tmp_path):
    @cute.jit
    def host(a: cutlass.Int32):
        cute.printf("{}", a)

    with settings.scope(dump_dir=str(tmp_path)):
        compiled = cute.compile(host, 1, options="--keep-ptx --keep-cubin --keep-sass", target="emu")
    assert not list(tmp_path.iterdir())
    with pytest.raises(cutlass.CompileError, match="launches no kernel"):
        compiled.stages["cubin"]


def test_kept_texts(tmp_path):
    with settings.scope(dump_dir=str(tmp_path), keep=frozenset({"ir"})):
        executor = cute.compile(double, *floats())
    names = ["double.sm_90a.cute.mlir", "double.sm_90a.ll", "double.sm_90a.nvvm.mlir"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / names[0]).read_text() == executor.stages["cute"]


@pytest.mark.parametrize("options", ["--print-ir", "--enable-ir-printing"])
def test_printed_texts(options, capsys):
    executor = cute.compile(double, *floats(), options=options)
    text = capsys.readouterr().err
    heads = re.findall(r"^// ---- (.*) ----$", text, re.MULTILINE)
    assert heads == [
        "python of double, sm_90a", "cute of double, sm_90a", "nvvm of double, sm_90a", "llvm of double_kernel, sm_90a",
        "ptx of double_kernel, sm_90a",
    ]  # fmt: skip
    assert executor.stages["ptx"] in text and executor.stages["cute"] in text


def test_flags_of_the_disassembler():
    options = ["--generate-line-info", cute.NvdisasmOptions("--print-line-info")]
    executor = cute.compile(double, *floats(), options=options)
    assert f'//## File "{FILE}", line {LINE + 4}' in executor.stages["sass"]
    with pytest.raises(cutlass.CompileError, match="nvdisasm"):
        cute.compile(double, *floats(), options="--nvdisasm-options --no-such-flag").stages["sass"]


def test_flags_without_an_effect_here():
    flags = "--host-target linux-x86_64 --opt-level 2"
    made = cute.compile(double, *floats(), options=flags)
    assert made.stages["ptx"] == cute.compile(double, *floats(), options="--opt-level 2").stages["ptx"]


def test_levels_of_optimisation(executor):
    slow = cute.compile[cute.OptLevel(0)](double, *floats())
    assert len(slow.stages["ptx"]) > len(executor.stages["ptx"])
    x, out = floats()
    slow(x, out)
    assert (out == 2 * x).all()


def test_assembler_flags_and_log():
    executor = cute.compile(double, *floats(), options="--ptxas-options '-v --maxrregcount=32'")
    assert "registers" in executor.ptxas_log
    typed = cute.compile[cute.PtxasOptions("--maxrregcount=16"), cute.GPUArch("sm_80")](double, *floats())
    assert typed.arch == "sm_80" and typed.kernels["double_kernel"].info.registers <= 16
