"""What is read from a cubin, against the words of `ptxas -v`, nvdisasm, and llvm-dwarfdump."""

import re
import struct

import pytest

from tests.nvidia import ptx_kernels
from tests.nvidia.ptx_kernels import ARCHES
from tilewright.base.errors import CompileError
from tilewright.targets.nvidia.binary.cubin import line_table, ptx_line_table, read_cubin
from tilewright.targets.nvidia.binary.elf import read_elf
from tilewright.targets.nvidia.binary.nv_info import Parameter
from tilewright.targets.nvidia.sass.listing import disassemble, parse
from tilewright.targets.nvidia.toolkit.assemble import assemble

MODULES = {
    "store": ptx_kernels.store,
    "scale": ptx_kernels.scale,
    "shared": ptx_kernels.shared,
    "dynamic_shared": ptx_kernels.dynamic_shared,
    "stack": ptx_kernels.stack,
    "spilling": ptx_kernels.spilling,
}
COUNTS = {
    "registers": r"Used (\d+) registers",
    "barriers": r"used (\d+) barriers",
    "cumulative_stack": r"(\d+) bytes cumulative stack size",
    "shared": r"(\d+) bytes smem",
    "constant": r"(\d+) bytes cmem\[0\]",
    "stack": r"(\d+) bytes stack frame",
    "spill_stores": r"(\d+) bytes spill stores",
    "spill_loads": r"(\d+) bytes spill loads",
}


def said_by_ptxas(log: str) -> dict[str, dict[str, int]]:
    """The figures of `ptxas -v` for each kernel; what it leaves out is 0."""
    blocks = re.split(r"Compiling entry function '(\w+)'", log)[1:]
    found = {}
    for name, text in zip(blocks[::2], blocks[1::2], strict=True):
        # Functions that the kernel calls have figures of their own in the same block.
        own = re.search(rf"Function properties for {name}\n(.*\n)", text)
        figures = {key: re.search(pattern, text) for key, pattern in COUNTS.items()}
        figures |= {key: re.search(COUNTS[key], own[1]) for key in ("stack", "spill_stores", "spill_loads")}
        found[name] = {key: int(match[1]) if match else 0 for key, match in figures.items()}
    return found


def figure_cases():
    """Every module on every chip by both tools. Linking adds what called functions use after ptxas has printed its
    figures, so the module with a call goes by ptxas only."""
    for name in MODULES:
        for arch in ARCHES:
            yield name, arch, "ptxas"
            if name != "stack":
                yield name, arch, "nvJitLink"


@pytest.mark.parametrize(("name", "arch", "tool"), list(figure_cases()))
def test_the_figures_of_ptxas(name, arch, tool):
    by_ptxas = tool == "ptxas"
    options = ("-v", "--maxrregcount=32") if name == "spilling" else ("-v",)
    text = MODULES[name](arch)
    cubin = assemble(text, arch, extra=options, use_ptxas=by_ptxas)
    said, info = said_by_ptxas(cubin.log), read_cubin(cubin.data)
    assert info.arch == arch
    assert set(info.kernels) == set(said) and name in said
    for kernel, figures in said.items():
        got = info.kernels[kernel]
        read = {
            "registers": got.registers,
            "barriers": got.barriers,
            "cumulative_stack": got.cumulative_stack_bytes,
            "shared": got.shared_bytes,
            "stack": got.stack_bytes,
            "spill_stores": got.spill_store_bytes,
            "spill_loads": got.spill_load_bytes,
            # From Hopper on ptxas does not print bank 0 any more.
            "constant": got.constant_bytes[0] if figures["constant"] else 0,
        }
        if not by_ptxas:  # for code that will be linked ptxas prints no total
            assert read.pop("cumulative_stack") >= figures.pop("cumulative_stack")
        assert read == figures


def test_the_spilling_kernel_spills():
    kernel = read_cubin(assemble(ptx_kernels.spilling("sm_80"), "sm_80", max_registers=32).data).kernels["spilling"]
    assert kernel.registers == 32
    assert kernel.spill_store_bytes > 0 and kernel.spill_load_bytes > 0
    assert kernel.local_bytes >= kernel.stack_bytes > 0


@pytest.mark.parametrize("arch", ARCHES)
def test_parameters_and_bounds(arch):
    """The layout of the text: 8 bytes, 4 bytes, 24 bytes aligned to 8."""
    kernels = read_cubin(assemble(ptx_kernels.shared(arch), arch).data).kernels
    kernel = kernels["shared"]
    assert kernel.parameters == (Parameter(0, 0, 8), Parameter(1, 8, 4), Parameter(2, 16, 24))
    assert kernel.parameter_bytes == 40
    assert kernel.constant_bytes[0] == kernel.parameter_base + 40
    assert (kernel.max_threads, kernel.max_block_threads, kernel.required_threads) == ((128, 2, 1), 256, False)
    assert (kernels["empty"].parameters, kernels["empty"].max_threads) == ((), None)
    required = read_cubin(assemble(ptx_kernels.dynamic_shared(arch), arch).data).kernels["dynamic_shared"]
    assert (required.max_threads, required.required_threads, required.shared_bytes) == ((64, 1, 1), True, 0)


def test_clusters():
    kernels = read_cubin(assemble(ptx_kernels.clusters("sm_90a"), "sm_90a").data).kernels
    assert (kernels["pair"].cluster, kernels["pair"].max_cluster_rank) == ((2, 1, 1), None)
    assert (kernels["any"].cluster, kernels["any"].max_cluster_rank) == (None, 8)


def test_constants_of_the_module_are_counted():
    kernel = read_cubin(assemble(ptx_kernels.stack("sm_90a"), "sm_90a").data).kernels["stack"]
    assert kernel.constant_bytes[3] == 64
    assert kernel.cumulative_stack_bytes >= kernel.stack_bytes + 256


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_source_lines_are_those_of_nvdisasm(arch):
    cubin = assemble(ptx_kernels.located(arch), arch, lineinfo=True).data
    for kernel in ("first", "second"):
        table = line_table(cubin, kernel)
        assert {file for _, file, _ in table} <= {"/home/user/my kernels/first.py", "/home/user/helper.py"}
        shown = {i.offset: (i.file, i.line) for i in parse(disassemble(cubin, lines=True, kernel=kernel)) if i.line}
        assert shown == {offset: line_at(table, offset) for offset in shown} and shown
    lines = {line for _, _, line in line_table(cubin, "first")}
    assert {10, 11, 1000, 1001, 13} >= lines - {14} and {11, 1000, 13} <= lines


def line_at(table, offset):
    """The row that holds for an offset."""
    return [(file, line) for start, file, line in table if start <= offset][-1]


def test_lines_of_the_ptx_text():
    text = ptx_kernels.located("sm_90a")
    cubin = assemble(text, "sm_90a", lineinfo=True).data
    rows = text.splitlines()
    instructions = {i.offset: i.mnemonic for i in parse(disassemble(cubin, kernel="first"))}
    table = dict(ptx_line_table(cubin, "first"))
    loads = [rows[table[offset] - 1] for offset, name in instructions.items() if name == "LDG" and offset in table]
    stores = [rows[table[offset] - 1] for offset, name in instructions.items() if name == "STG" and offset in table]
    assert loads == [" ld.global.u32 r, [q];"]
    assert stores == [" st.global.b32 [q], r;"]


def test_line_tables_do_not_change_the_code():
    text = ptx_kernels.located("sm_90a")
    without = re.sub(r"^ \.loc.*\n|^\.file.*\n", "", text, flags=re.MULTILINE)
    codes = [read_elf(assemble(t, "sm_90a", lineinfo=on).data).section(".text.first").data
             for t, on in ((text, True), (without, False))]  # fmt: skip
    assert codes[0] == codes[1]


def test_without_directives_there_are_no_source_lines():
    cubin = assemble(ptx_kernels.store("sm_80"), "sm_80").data
    assert line_table(cubin, "store") == [] and ptx_line_table(cubin, "store") == []


def test_sections_and_symbols():
    info = read_cubin(assemble(ptx_kernels.shared("sm_90a"), "sm_90a").data)
    assert {".text.shared", ".text.empty", ".nv.info", ".nv.info.shared", ".symtab"} <= set(info.sections)
    assert info.sections[".text.shared"] == info.kernels["shared"].code_bytes
    assert {"shared", "empty"} <= {symbol.name for symbol in info.symbols}


def test_an_unknown_kernel_is_named():
    cubin = assemble(ptx_kernels.shared("sm_90a"), "sm_90a").data
    with pytest.raises(CompileError, match="no kernel 'shard'") as error:
        line_table(cubin, "shard")
    assert "shared" in error.value.hint and "empty" in error.value.hint


@pytest.mark.parametrize("data", [b"", b"garbage", b"\x7fELF\x02\x01" + bytes(20), b"\x7fELF\x01\x01" + bytes(80)])
def test_what_is_no_cubin_is_refused(data):
    with pytest.raises(CompileError, match="not a cubin"):
        read_cubin(data)


def test_an_object_for_another_machine_is_refused():
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 1, 62) + bytes(44)
    with pytest.raises(CompileError, match="another machine"):
        read_cubin(header)


def test_damage_is_an_error_and_never_a_crash():
    """Cut at every length, and with single bytes changed: a CompileError or a reading, nothing else."""
    cubin = assemble(ptx_kernels.shared("sm_90a"), "sm_90a", lineinfo=True).data
    for length in range(0, len(cubin) - 1, 37):
        readable(cubin[:length])
    for place in range(0, len(cubin), 11):
        for value in (0, 0x55, 0xFF):
            readable(cubin[:place] + bytes([cubin[place] ^ 0x55 if value == 0x55 else value]) + cubin[place + 1 :])
    with pytest.raises(CompileError, match="damaged cubin"):
        read_cubin(cubin[: len(cubin) // 2])


def readable(data: bytes) -> bool:
    try:
        for name in read_cubin(data).kernels:
            line_table(data, name)
    except CompileError:
        return False
    return True
