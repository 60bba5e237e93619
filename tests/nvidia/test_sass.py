"""Disassembly as instructions, against nvdisasm's own JSON."""

import json
import subprocess

import pytest

from tests.nvidia import ptx_kernels
from tilewright.base.errors import CompileError
from tilewright.targets.nvidia.binary.cubin import INSTRUCTION_BYTES, read_cubin
from tilewright.targets.nvidia.sass.listing import (
    branches,
    by_category,
    control_flow_graph,
    disassemble,
    histogram,
    live_registers,
    memory_accesses,
    parse,
    split_operands,
)
from tilewright.targets.nvidia.toolkit import toolchain
from tilewright.targets.nvidia.toolkit.assemble import assemble

LISTING = """\t.target\tsm_90a
//--------------------- .text.k                   --------------------------
.text.k:
\t//## File "/home/user/a b.py", line 12
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   S2R R0, SR_TID.X ;                       /* 0x0000000000007919 */
                                                                            /* 0x000e220000002100 */
\t//## File "/home/user/a b.py", line 13
        /*0020*/               @P0 EXIT ;                                   // |  2 : :   | 2 v :  |
        /*0030*/              @!PT LDS RZ, [RZ] ;
        /*0040*/                   LDG.E.128 R4, desc[UR8][R2.64+0x10] ;
        /*0050*/                   STL.64 [R1+0x28], R6                  (*"SpillRefill"*);
        /*0060*/              @UP0 UTMALDG.2D [UR8], [UR4] ;
.L_x_1:
        /*0070*/                   NOP;
        /*0080*/                   UCGABAR_ARV ;
        /*0090*/                   BRA `(.L_x_1);
        /*00a0*/                   NOP;
.text.other:
        /*0000*/                   EXIT ;
"""


def test_a_listing():
    found = parse(LISTING)
    assert [i.offset for i in found] == [*range(0, 0xA0, 16), 0]
    assert [i.mnemonic for i in found[:3]] == ["LDC", "S2R", "EXIT"]  # S2R whole, not "S"
    assert (found[2].predicate, found[3].predicate, found[6].predicate) == ("@P0", "@!PT", "@UP0")
    assert (found[1].file, found[1].line, found[2].line) == ("/home/user/a b.py", 12, 13)
    assert found[4].modifiers == ("E", "128")
    assert found[4].operands == ("R4", "desc[UR8][R2.64+0x10]")
    assert found[5].text == "STL.64 [R1+0x28], R6"
    assert (found[7].mnemonic, found[8].mnemonic) == ("NOP", "UCGABAR_ARV")
    assert (found[-1].kernel, found[-1].line) == ("other", 0)


def test_operands_are_split_outside_brackets_only():
    assert split_operands("R4, desc[UR8][R2.64], c[0x0][0x210], `(.L_x_1)") == (
        "R4", "desc[UR8][R2.64]", "c[0x0][0x210]", "`(.L_x_1)",
    )  # fmt: skip
    assert split_operands("") == ()


def test_views_of_a_listing():
    found = parse(LISTING)
    assert next(iter(histogram(found).items())) == ("EXIT", 2) and histogram(found)["S2R"] == 1
    groups = {name: [i.mnemonic for i in members] for name, members in by_category(found).items()}
    assert groups["memory"] == ["LDC", "LDS", "LDG", "STL", "UTMALDG"]
    assert groups["control"] == ["EXIT", "BRA", "EXIT"]
    assert groups["thread"] == ["S2R", "UCGABAR_ARV"]
    assert [(a.space, a.bytes) for a in memory_accesses(found)] == [
        ("constant", 4), ("shared", 4), ("global", 16), ("local", 8), ("global", 0),
    ]  # fmt: skip
    assert [i.text for i in branches(found)] == ["@P0 EXIT"]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120"])
def test_instructions_are_those_of_nvdisasms_json(arch, tmp_path):
    cubin = assemble(ptx_kernels.scale(arch), arch).data
    file = tmp_path / "k.cubin"
    file.write_bytes(cubin)
    command = [str(toolchain.find("nvdisasm").path), "--emit-json", str(file)]
    said = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[1][0]
    assert said["function-name"] == "scale"
    wanted = [(i.get("predicate", ""), i["opcode"]) for i in said["sass-instructions"]]
    found = parse(disassemble(cubin))
    names = [(i.predicate, ".".join((i.mnemonic, *i.modifiers))) for i in found]
    assert names == wanted[: len(names)] and {name for _, name in wanted[len(names) :]} <= {"NOP"}
    assert [i.offset for i in found] == [INSTRUCTION_BYTES * n for n in range(len(found))]
    assert read_cubin(cubin).kernels["scale"].code_bytes == said["length"]
    counts = histogram(found)
    assert (counts["LDG"], counts["STG"], counts["FMUL"]) == (1, 1, 1)
    assert counts["S2R"] + counts.get("S2UR", 0) >= 2


def test_one_kernel_of_two():
    cubin = assemble(ptx_kernels.shared("sm_90a"), "sm_90a").data
    assert {i.kernel for i in parse(disassemble(cubin))} == {"shared", "empty"}
    assert {i.kernel for i in parse(disassemble(cubin, kernel="empty"))} == {"empty"}
    with pytest.raises(CompileError, match="no kernel 'shard'"):
        disassemble(cubin, kernel="shard")


def test_graph_and_live_registers():
    cubin = assemble(ptx_kernels.scale("sm_90a"), "sm_90a").data
    graph = control_flow_graph(cubin)
    assert graph.startswith("digraph") and "->" in graph
    live = live_registers(cubin, mode="count")
    assert "GPR" in live and len(parse(live)) == len(parse(disassemble(cubin)))


def test_nvdisasms_refusal_is_an_error():
    with pytest.raises(CompileError, match="nvdisasm cannot read the cubin") as error:
        disassemble(b"garbage")
    assert "kernel.cubin" in error.value.nvvm_error
