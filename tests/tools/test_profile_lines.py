"""`tilewright profile lines`, and the estimate of what warps wait for."""

import json
import re
from types import SimpleNamespace

import pytest

from tests.tools.explorer import cases
from tilewright import ArgumentError
from tilewright.hw.latencies import Latencies, latencies
from tilewright.targets.nvidia.sass.blocks import blocks_of, labels_of
from tilewright.targets.nvidia.sass.listing import parse
from tilewright.targets.nvidia.sass.registers import Registers, read_registers
from tilewright.tools import demo_kernels
from tilewright.tools.commands import profile
from tilewright.tools.function_runs import run_executor
from tilewright.tools.profiling.line_counts import Counts
from tilewright.tools.profiling.line_profile import line_profiles
from tilewright.tools.profiling.line_tables import bar
from tilewright.tools.profiling.stalls import ChipTimes, executions, stalls

PLACE = f"{demo_kernels.__file__}:row_sum"
ARGS = ["--arg", "f32[128,1024]", "--arg", "f32[128]"]
LINE = cases.line_of(demo_kernels.row_sum_kernel, "total += x[row, column]")


def shown(capsys, *words):
    profile.command("lines", [PLACE, *ARGS, "--arch", "sm_90a", *words])
    return capsys.readouterr().out


def test_the_table(capsys):
    lines = shown(capsys, "--top", "3").splitlines()
    assert lines[0] == "row_sum_kernel on sm_90a: counted by the emulator"
    (row,) = [line for line in lines if f"demo_kernels.py:{LINE} " in line]
    assert row.startswith("█")
    assert re.search(r"294,912 +16,384 .* total \+= x\[row, column\]$", row)
    assert "  13 lines with less are left out (--top)" in lines
    assert any("estimate" in line and "warp" in line for line in lines)
    assert any(line.startswith("row_sum_kernel on H100 SXM: global memory binds") for line in lines)
    said = r"  fidelity: of \d+ forms of instructions \d+ are recorded bit for bit on an H100"
    assert any(re.match(said, line) for line in lines)


def test_another_column_chooses_the_lines(capsys):
    said = shown(capsys, "--sort", "wavefronts", "--top", "1")
    assert re.search(r"█  demo_kernels.py:\d+ .* 512 .* shared\[warp\] = total\n", said)
    assert "total += x[row, column]" not in said


def test_json(capsys):
    (found,) = json.loads(shown(capsys, "--json"))
    (line,) = [line for line in found["lines"] if line["line"] == LINE]
    assert (line["sectors"], line["excess"], line["instructions"]) == (16384, 0, 294912)
    assert found["estimates"] == ["cycles", "waits"]
    for stage in ("ptx", "sass"):
        assert sum(row["sectors"] for row in found[stage]) == sum(row["sectors"] for row in found["lines"]) == 16512


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sort", "heat"], "--sort heat: there is no such column"),
        (["--top", "0"], "--top 0 shows no lines"),
        (["--arg", "3"], "row_sum"),
    ],
)
def test_bad_words(words, said):
    with pytest.raises(Exception, match=said):
        profile.command("lines", [PLACE, *ARGS, *words])


def test_a_function_that_cannot_be_run():
    with pytest.raises(ArgumentError, match="there is nothing to show: the function was not run: give arguments"):
        profile.command("lines", [PLACE, "--arg", "f32[?,64]", "--arg", "f32[?]"])


def test_all_lines_add_up():
    executor, values = cases.row_sum()
    (found,) = line_profiles(run_executor(executor, values))
    (report,) = found.reports
    assert sum(counts.instructions for counts in found.python.values()) == report.instructions
    assert sum(counts.sectors for counts in found.sass.values()) == report.sectors
    assert sum(counts.wavefronts for counts in found.sass.values()) == report.wavefronts
    assert sum(counts.stalled for counts in found.python.values()) == pytest.approx(
        sum(counts.stalled for counts in found.sass.values())
    )


def test_most_of_the_waiting_is_for_the_row():
    executor, values = cases.row_sum()
    (found,) = line_profiles(run_executor(executor, values))
    ((_, line), counts) = max(found.python.items(), key=lambda item: item[1].stalls.get("long scoreboard", 0.0))
    assert line == LINE
    assert counts.stalls["long scoreboard"] > 0.5 * counts.stalled


# The estimate, on machine code and registers written by hand.

TIMES = Latencies(memory=500, l2=200, l1=40, shared=30, arithmetic=4, tensor=33)


def by_hand(*instructions, counts=None, missing=1.0, warps=1, sector_cycles=0.0):
    """The waiting at each of some instructions (text, registers read, registers written), one warp each."""
    text = ".text.k:\n" + "".join(f"        /*{16 * at:04x}*/  {row[0]} ;\n" for at, row in enumerate(instructions))
    registers = {16 * at: Registers(frozenset(row[1]), frozenset(row[2]), {}) for at, row in enumerate(instructions)}
    parsed = parse(text)
    code = SimpleNamespace(
        instructions=parsed, registers=registers, blocks=blocks_of(parsed, labels_of(text, "k"), registers)
    )
    lines = {item.offset: at + 1 for at, item in enumerate(parsed)}
    known = counts or {line: Counts(instructions=32) for line in lines.values()}
    found = stalls(code, lines, known, ChipTimes(TIMES, missing, warps, sector_cycles))
    return [
        {reason: cycles for reason, cycles in found[item.offset].items() if reason != "selected"} for item in parsed
    ]


def test_the_first_use_of_a_load_waits_for_it():
    waits = by_hand(
        ("LDG.E R1, desc[UR4][R2.64]", {"R2"}, {"R1"}),
        ("LDG.E R3, desc[UR4][R2.64+0x80]", {"R2"}, {"R3"}),
        ("FADD R4, R1, R1", {"R1"}, {"R4"}),
        ("FADD R5, R3, R3", {"R3"}, {"R5"}),
        ("EXIT", set(), set()),
    )
    # The first add is issued when its load is there, 500 cycles after cycle 0, instead of at cycle 2; the second load
    # came one cycle later, so the second add waits no more.
    assert waits == [{}, {}, {"long scoreboard": 498}, {}, {}]


def test_what_is_in_l2_is_there_sooner():
    load = ("LDG.E R1, desc[UR4][R2.64]", {"R2"}, {"R1"})
    use = ("FADD R4, R1, R1", {"R1"}, {"R4"})
    assert by_hand(load, use, missing=0.0)[1] == {"long scoreboard": 199}
    assert by_hand(load, use, missing=0.5)[1] == {"long scoreboard": 349}


def test_bank_conflicts_take_longer():
    load = ("LDS R1, [R2]", {"R2"}, {"R1"})
    use = ("FADD R4, R1, R1", {"R1"}, {"R4"})
    counts = {1: Counts(instructions=32, wavefronts=8, wavefronts_ideal=1), 2: Counts(instructions=32)}
    assert by_hand(load, use)[1] == {"short scoreboard": 29}
    assert by_hand(load, use, counts=counts)[1] == {"short scoreboard": 36}


def test_other_warps_access_memory_at_the_same_time():
    use = ("FADD R4, R1, R1", {"R1"}, {"R4"})
    others = {2: Counts(instructions=32)}
    shared, counts = ("LDS R1, [R2]", {"R2"}, {"R1"}), {1: Counts(instructions=32, wavefronts=8, wavefronts_ideal=1)}
    assert by_hand(shared, use, counts=counts | others, warps=5)[1] == {"short scoreboard": 36 + 2 * 8}
    memory, counts = ("LDG.E R1, desc[UR4][R2.64]", {"R2"}, {"R1"}), {1: Counts(instructions=32, sectors=4)}
    found = by_hand(memory, use, counts=counts | others, warps=5, sector_cycles=2.5)
    assert found[1] == {"long scoreboard": 499 + (2 + 1) * 4 * 2.5}


def test_accesses_are_served_in_order():
    # Two loads of 8 wavefronts by each of 5 warps: the second ones come after all first ones.
    first, second = (("LDS R1, [R2]", {"R2"}, {"R1"}), ("LDS R3, [R2]", {"R2"}, {"R3"}))
    uses = (("FADD R4, R1, R1", {"R1"}, {"R4"}), ("FADD R5, R3, R3", {"R3"}, {"R5"}))
    loads = Counts(instructions=32, requests=1, wavefronts=8, wavefronts_ideal=1)
    counts = {1: loads, 2: loads, 3: Counts(instructions=32), 4: Counts(instructions=32)}
    found = by_hand(first, second, *uses, counts=counts, warps=5)
    # There at 0 + 3 * 8 - 1 + 30 and at 5 * 8 + 3 * 8 - 1 + 30; the adds would be issued at 2 and one after the first.
    assert found[2:] == [{"short scoreboard": 53 - 2}, {"short scoreboard": 93 - 54}]


def test_a_warp_ends_once_its_stores_are_out():
    store = ("STG.E desc[UR4][R2.64], R1", {"R1", "R2"}, set())
    counts = {1: Counts(instructions=32, requests=1, sectors=16), 2: Counts(instructions=32)}
    assert by_hand(store, ("EXIT", set(), set()), counts=counts, warps=3, sector_cycles=2.0)[1] == {
        "drain": 16 * 2 * 2 - 1
    }


def loop(trips, *body):
    """The waiting of a loop that each of 10 warps goes through so often."""
    text = ".text.k:\n.L_x_0:\n"
    rows = [*body, ("@P0 BRA `(.L_x_0)", {"P0"}, set()), ("EXIT", set(), set())]
    text += "".join(f"        /*{16 * at:04x}*/  {row[0]} ;\n" for at, row in enumerate([("NOP", set(), set()), *rows]))
    text = text.replace(".L_x_0:\n", "", 1).replace("        /*0010*/", ".L_x_0:\n        /*0010*/")
    everything = [("NOP", set(), set()), *rows]
    registers = {16 * at: Registers(frozenset(row[1]), frozenset(row[2]), {}) for at, row in enumerate(everything)}
    parsed = parse(text)
    code = SimpleNamespace(
        instructions=parsed, registers=registers, blocks=blocks_of(parsed, labels_of(text, "k"), registers)
    )
    lines = {item.offset: at + 1 for at, item in enumerate(parsed)}
    times = {1: 1, len(everything): 1}
    counts = {line: Counts(instructions=320 * times.get(line, trips)) for line in lines.values()}
    found = stalls(code, lines, counts, ChipTimes(TIMES))
    return [found[item.offset] for item in parsed][1:-1]


def test_copies_that_are_fetched_ahead_are_waited_for_once():
    # Each round begins a copy and waits until at most one group is under way: that of the round before.
    waits = loop(
        1000,
        ("LDGSTS.E.BYPASS.128 [R1], desc[UR4][R2.64]", {"R1", "R2"}, set()),
        ("LDGDEPBAR", set(), set()),
        ("DEPBAR.LE SB0, 0x1", set(), set()),
        *[(f"FADD R{9 + at}, R8, R8", {"R8"}, {f"R{9 + at}"}) for at in range(600)],
    )
    assert waits[2] == {"selected": 10_000}  # a copy takes 500 cycles, a round more than 600
    assert waits[0] == {"selected": 10_000}


def test_a_loop_waits_for_each_round_that_needs_the_last_one():
    waits = loop(50, ("LDG.E R1, desc[UR4][R1.64]", {"R1"}, {"R1"}))
    # The first load waits for nothing, 49 others of each warp for the one before: 500 cycles, 2 of them issuing.
    assert waits[0]["long scoreboard"] == pytest.approx(10 * 49 * 498)


def test_dependent_arithmetic_and_products():
    waits = by_hand(
        ("FADD R1, R2, R3", {"R2", "R3"}, {"R1"}),
        ("FADD R1, R1, R3", {"R1", "R3"}, {"R1"}),
        ("HMMA.16816.F32 R8, R4, R6, R8", {"R4", "R6", "R8"}, {"R8"}),
        ("FADD R9, R8, R8", {"R8"}, {"R9"}),
    )
    assert waits == [{}, {"wait": 3}, {}, {"math pipe": 32}]


def test_a_wait_for_copies_leaves_the_newest_groups():
    copy = ("LDGSTS.E.BYPASS.128 [R1], desc[UR4][R2.64]", {"R1", "R2"}, set())
    group = ("LDGDEPBAR", set(), set())
    waits = by_hand(
        copy, group, copy, group, ("DEPBAR.LE SB0, 0x1", set(), set()), ("DEPBAR.LE SB0, 0x0", set(), set())
    )
    # The first group's copy is there at cycle 500; the second's, issued at cycle 2, at 502.
    assert waits[4:] == [{"long scoreboard": 496}, {"long scoreboard": 1}]


def test_copies_of_an_unrolled_line_share_its_count():
    text = ".text.k:\n" + "".join(f"        /*{16 * at:04x}*/  LDG.E R{at}, [R9] ;\n" for at in range(4))
    lines = {16 * at: 7 for at in range(4)}
    found = executions(parse(text), lines, {7: Counts(instructions=32 * 100)})
    assert found == {16 * at: 25.0 for at in range(4)}


def test_a_copy_to_shared_memory_writes_no_register():
    text = (
        ".text.k:\n"
        "                                                      // |  GPR  | PRED  |\n"
        "                                                      // | # 1 2 | # 0 1 |\n"
        "        /*0000*/   @!P1 LDGSTS.E [R1], [R2], !P0 ;     // | 2 v v | 2 x v |\n"
        "        /*0010*/        IADD3 R1, R2, R1, RZ ;         // | 2 x v | 1 : : |\n"
    )
    found = read_registers(text)
    assert found["k", 0].writes == frozenset() and found["k", 0].reads == {"R1", "R2", "P0", "P1"}
    assert found["k", 16].writes == {"R1"}


@pytest.mark.parametrize(("arch", "like"), [("sm_80", "sm_86"), ("sm_90a", "sm_100a")])
def test_chips_that_nobody_measured(arch, like):
    assert latencies(arch) == latencies(like)


def test_latencies_ascend():
    for arch in ("sm_80", "sm_89", "sm_90"):
        found = latencies(arch)
        assert found.arithmetic < found.shared < found.l1 < found.l2 < found.memory


@pytest.mark.parametrize(("value", "shown"), [(0, " "), (0.01, "▁"), (50, "▄"), (100, "█")])
def test_heights(value, shown):
    assert bar(value, 100) == shown
    assert bar(0, 0) == " "
