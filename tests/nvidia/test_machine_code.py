"""Views of machine code against what the emulator counts, nvdisasm's own graph, and brute force."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.nvidia import ptx_kernels
from tilewright import CompileError
from tilewright.base import settings
from tilewright.targets.nvidia.sass.blocks import reachable
from tilewright.targets.nvidia.sass.lanes import bank_conflicts, sectors
from tilewright.targets.nvidia.sass.machine_code import VIEWS, MachineCode
from tilewright.targets.nvidia.sass.registers import read_registers
from tilewright.targets.nvidia.toolkit.assemble import assemble

ARCHES = pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120"])
THREADS = 64


# Accesses.


@cute.kernel
def strided_kernel(x: cute.Tensor, y: cute.Tensor, step: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    y[i] = x[i * step]


@cute.jit
def strided(x: cute.Tensor, y: cute.Tensor, step: cutlass.Constexpr):
    strided_kernel(x, y, step).launch(grid=(2, 1, 1), block=(THREADS, 1, 1))


@pytest.mark.parametrize(
    ("arch", "dtype", "step"),
    [("sm_80", np.int8, 2), ("sm_90a", np.float32, 0), ("sm_90a", np.float32, 1), ("sm_90a", np.float16, 3),
     ("sm_90a", np.float32, 8), ("sm_120", np.float64, 2), ("sm_120", np.float16, 64)],
)  # fmt: skip
def test_coalescing_is_what_the_emulator_counts(tmp_path, arch, dtype, step):
    x = np.arange(2 * THREADS * max(step, 1)).astype(dtype)
    y = np.zeros(2 * THREADS, dtype)
    executor = cute.compile(strided, x, y, step, target="emu", arch=arch)
    counted = counts(tmp_path, lambda: executor(x, y))
    accesses = [item for item in executor.machine_code().memory if item.space == "global"]
    load, store = ([item for item in accesses if item.instruction.mnemonic == name] for name in ("LDG", "STG"))
    assert [item.step for item in load + store] == [step * x.itemsize, x.itemsize]
    warps = 2 * THREADS // 32
    assert sum(item.sectors for item in load + store) * warps == counted["sectors"]
    assert load[0].used == pytest.approx(_share(step * x.itemsize, x.itemsize))


def counts(folder, run):
    """What the emulator counts of the one kernel that `run` launches."""
    with settings.scope(counters=str(folder / "counters")):
        run()
    (line,) = (folder / "counters").read_text().splitlines()
    return json.loads(line)


def _share(step, width):
    touched = {lane * step + byte for lane in range(32) for byte in range(width)}
    return len(touched) / (32 * len({byte // 32 for byte in touched}))


@pytest.mark.parametrize(
    ("step", "width", "count", "share"),
    [(4, 4, 4, 1), (0, 4, 1, 0.125), (8, 4, 8, 0.5), (16, 16, 16, 1), (128, 4, 32, 0.125)],
)  # fmt: skip
def test_sectors(step, width, count, share):
    assert sectors(step, width) == (count, share)


@pytest.mark.parametrize(
    ("step", "width", "ways"),
    [(4, 4, 1), (0, 4, 1), (8, 4, 2), (128, 4, 32), (132, 4, 1), (8, 8, 1), (16, 8, 2), (16, 16, 1), (32, 16, 2),
     (1, 1, 1)],
)  # fmt: skip
def test_bank_conflicts(step, width, ways):
    assert bank_conflicts(step, width) == ways


@cute.kernel
def shared_kernel(x: cute.Tensor, y: cute.Tensor, step: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    room = cutlass.utils.SmemAllocator().allocate_tensor(x.element_type, cute.make_layout((THREADS * 32,)))
    room[thread * step] = x[thread]
    y[thread] = room[thread * step]


@cute.jit
def shared(x: cute.Tensor, y: cute.Tensor, step: cutlass.Constexpr):
    shared_kernel(x, y, step).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))


@pytest.mark.parametrize("step", [1, 2, 4, 32])
def test_conflicts_are_what_the_emulator_counts(tmp_path, step):
    x, y = np.arange(THREADS, dtype=np.float32), np.zeros(THREADS, np.float32)
    executor = cute.compile(shared, x, y, step, target="emu", arch="sm_90a")
    counted = counts(tmp_path, lambda: executor(x, y))
    (store,) = [item for item in executor.machine_code().memory if item.instruction.mnemonic == "STS"]
    assert (store.step, store.conflicts) == (4 * step, min(step, 32))
    stores = [item for item in executor.machine_code().memory if item.space == "shared"]
    warps = THREADS // 32
    assert sum(item.conflicts for item in stores) * warps == counted["wavefronts"]
    assert f"{step}-way" in executor.machine_code().view("memory")


@cute.kernel
def gather_kernel(x: cute.Tensor, y: cute.Tensor, places: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    y[thread] = x[places[thread]]


@cute.jit
def gather(x: cute.Tensor, y: cute.Tensor, places: cute.Tensor):
    gather_kernel(x, y, places).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))


def test_an_address_from_memory_is_not_known():
    x, y = (np.zeros(THREADS, np.float32) for _ in range(2))
    executor = cute.compile(gather, x, y, np.zeros(THREADS, np.int32), target="emu", arch="sm_90a")
    steps = [item.step for item in executor.machine_code().memory if item.space == "global"]
    assert sorted(map(str, steps)) == ["4", "4", "None"]
    assert "4 bytes a thread, how far apart is not known" in executor.machine_code().view("memory")


# Branches.


@cute.kernel
def branch_kernel(x: cute.Tensor, y: cute.Tensor, case: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    if cutlass.const_expr(case == "thread"):
        if thread < 40:
            y[i] = x[i] * 2
    if cutlass.const_expr(case == "odd"):
        if thread % 2 == 0:
            y[i] = x[i] * 2
    if cutlass.const_expr(case == "data"):
        if x[i] > 0:
            y[i + 1] = x[i] * 2
    if cutlass.const_expr(case == "trip"):
        for k in range(thread):
            y[i + k] = x[k]
    if cutlass.const_expr(case == "block"):
        if block < 1:
            y[i] = x[i] * 2
    if cutlass.const_expr(case == "warp"):
        if thread // 32 == 0:
            y[i] = x[i] * 2
    if cutlass.const_expr(case == "same data"):
        if x[block] > 0:
            y[i] = x[i] * 2
    if cutlass.const_expr(case == "same trip"):
        for k in range(cute.size(x)):
            y[i + k] = x[k]
    if cutlass.const_expr(case == "written apart"):
        n = cutlass.Int32(0)
        if x[i] > 0:
            n = cutlass.Int32(x[0]) + 1
        for k in range(n):
            y[i + k] = x[k]


@cute.jit
def branch(x: cute.Tensor, y: cute.Tensor, case: cutlass.Constexpr):
    branch_kernel(x, y, case).launch(grid=(2, 1, 1), block=(THREADS, 1, 1))


def branches(case, arch):
    x, y = (np.zeros(4 * THREADS, np.float32) for _ in range(2))
    return cute.compile(branch, x, y, case, target="emu", arch=arch).machine_code().branches


@pytest.mark.parametrize("arch", ["sm_90a"])
@pytest.mark.parametrize("case", ["thread", "odd", "data", "trip", "written apart"])
def test_branches_that_may_diverge(arch, case):
    assert branches(case, arch)


@pytest.mark.parametrize("arch", ["sm_90a"])
@pytest.mark.parametrize("case", ["block", "warp", "same data", "same trip"])
def test_branches_that_may_not(arch, case):
    assert not branches(case, arch)


# Blocks.


def chain(count, dependent):
    """PTX of `count` additions, each of which needs the one before or none of which needs another."""
    regs = f".reg .b32 v<{count + 1}>; .reg .b64 q; ld.param.u64 q, [p]; ld.global.b32 v0, [q];"
    steps = "".join(f"mad.lo.s32 v{i + 1}, v{i if dependent else 0}, v0, {i + 3}; " for i in range(count))
    stores = f"st.global.b32 [q], v{count};" if dependent else "".join(
        f"st.global.b32 [q+{4 * i}], v{i + 1}; " for i in range(count)
    )  # fmt: skip
    body = f".visible .entry chain(.param .u64 p) {{ {regs} {steps} {stores} ret; }}\n"
    return ptx_kernels.module("sm_90a", body)


def test_parallelism_of_chains():
    (slow,), (fast,) = (
        reachable(MachineCode(assemble(chain(20, dependent), "sm_90a").data).blocks) for dependent in (True, False)
    )
    products = [item for item in slow.instructions if item.mnemonic == "IMAD"]
    assert len(products) == 20 and slow.steps >= 21
    assert fast.steps <= 6 and fast.parallelism > 4 * slow.parallelism


@ARCHES
def test_blocks_are_those_of_the_graph(arch):
    x, y = (np.zeros(4 * THREADS, np.float32) for _ in range(2))
    code = cute.compile(branch, x, y, "written apart", target="emu", arch=arch).machine_code()
    nodes = nodes_of_graph(code)
    holding = {item.offset: block.number for block in code.blocks for item in block.instructions}
    edges = set()
    for source, target in re.findall(r'^"([^"]+)":\S* -> "([^"]+)"', code.graph, re.MULTILINE):
        here, there = holding[nodes[source][-1]], holding[nodes[target][0]]
        if here != there or nodes[target][0] == code.blocks[here].instructions[0].offset:
            edges.add((here, there))
    ours = {(block.number, number) for block in reachable(code.blocks) for number in block.successors}
    assert len(ours) > 10 and ours == {edge for edge in edges if edge[0] in {block for block, _ in ours}}


def nodes_of_graph(code):
    """The offsets of the instructions in each node of nvdisasm's graph, whose nodes come in the order of the code."""
    waiting = [item.offset for item in code.instructions]
    found = {}
    for name, label in re.findall(r'^"([^"]+)"\n\[label="(.*)"\]$', code.graph, re.MULTILINE):
        count = len(re.findall(r"\\ ;|NOP;", label))
        found[name], waiting = waiting[:count], waiting[count:]
    return found


@ARCHES
def test_registers_of_instructions(arch):
    code = MachineCode(assemble(ptx_kernels.spilling(arch), arch, max_registers=40).data)
    found = read_registers(code.live)
    checked = 0
    for item in code.instructions:
        names = [re.match(r"^-?\|?(R\d+)(\.reuse)?\|?$", text) for text in item.operands]
        if item.mnemonic in ("FADD", "FMUL", "FFMA") and not item.predicate and all(names):
            target, *sources = (match[1] for match in names)
            used = found[code.kernel, item.offset]
            assert target in used.writes and set(sources) <= used.reads
            checked += 1
    assert checked > 10
    assert 30 < code.most_live["GPR"] <= 40


def test_counts():
    code = MachineCode(assemble(chain(20, True), "sm_90a").data, "chain")
    assert code.histogram["IMAD"] == 20 and sum(code.histogram.values()) == len(code.instructions)
    rows = dict(reversed(line.split()) for line in code.view("categories").splitlines())
    assert sum(map(int, rows.values())) == len(code.instructions)
    assert list(rows) == ["memory", "arithmetic", "control", "thread", "special"]
    assert re.search(r"^ +20 IMAD$", code.view("histogram"), re.MULTILINE)


def test_every_view_is_text():
    code = MachineCode(assemble(chain(3, True), "sm_90a").data)
    views = {name: code.view(name) for name in VIEWS}
    assert "digraph" in views["graph"] and "GPR" in views["live"] and "/*0000*/" in views["code"] == str(code)
    assert views["branches"] == "no branch may diverge"
    assert views["blocks"].splitlines()[0].split() == ["block", "from", "instructions", "steps", "parallel", "to"]


def test_what_is_not_there():
    cubin = assemble(chain(3, True), "sm_90a").data
    with pytest.raises(CompileError, match="the cubin has no kernel 'other'") as caught:
        MachineCode(cubin, "other")
    assert caught.value.hint == "it has: chain"
    with pytest.raises(CompileError, match="there is no view 'pretty' of machine code") as caught:
        MachineCode(cubin).view("pretty")
    assert "histogram" in caught.value.hint
