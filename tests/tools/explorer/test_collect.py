"""What the explorer's page shows."""

import json
import re

import pytest

from tests.tools.explorer import cases
from tilewright import ArgumentError
from tilewright.passes.pass_changes import PassChange
from tilewright.tools import demo_kernels
from tilewright.tools.explorer.collect import collected, compact, rows
from tilewright.tools.explorer.page import data_of, page
from tilewright.tools.function_runs import run_executor
from tilewright.tools.profiling.line_counts import Counts
from tilewright.tools.profiling.ncu_lines import Recording

SECTOR = 32


@pytest.fixture(scope="module")
def row_sum():
    return collected(run_executor(*cases.row_sum()))


def counts_at(data, line, kernel=0):
    """The counts of a line of Python."""
    (number,) = [at for at, (_, row) in enumerate(data["places"]) if row == line]
    return data["kernels"][kernel]["counts"]["python"][number]


def test_sectors_of_a_line(row_sum):
    line = cases.line_of(demo_kernels.row_sum_kernel, "total += x[row, column]")
    counts = counts_at(row_sum, line)
    assert counts["sectors"] == 128 * 1024 * 4 // SECTOR
    assert "excess" not in counts


def test_lines_of_ptx_add_up(row_sum):
    kernel = row_sum["kernels"][0]
    by_line = sum(counts.get("instructions", 0) for counts in kernel["counts"]["ptx"].values())
    rows = dict(kernel["launches"][0]["rows"])
    assert kernel["fidelity"].startswith("fidelity: of ") and "recorded bit for bit on an H100" in kernel["fidelity"]
    assert f"{by_line:,}" == rows["thread instructions"]


def test_conflicts_and_excess_sectors_of_a_line():
    data = collected(run_executor(*cases.conflicting()))
    counts = counts_at(data, cases.line_of(cases.conflicts_kernel, "shared[i, 0] = x[i, 0]"))
    # One warp: 32 loads, each in a sector of its own where 4 would do; 32 stores to one bank.
    assert counts["sectors"] == 32
    assert counts["excess"] == 32 - 4
    assert counts["wavefronts"] == 32
    assert counts["conflicts"] == 31


def test_two_kernels_are_counted_apart():
    data = collected(run_executor(*cases.two_kernels()))
    assert [kernel["name"] for kernel in data["kernels"]] == ["first_kernel", "second_kernel"]
    for kernel in data["kernels"]:
        (launch,) = kernel["launches"]
        assert dict(launch["rows"])["sectors of global memory"] == str(2 * 64 * 4 // SECTOR)


def test_findings_are_collected():
    data = collected(run_executor(*cases.racing()))
    (kernel,) = data["kernels"]
    assert any("race" in item["text"].lower() for item in kernel["findings"])
    line = cases.line_of(cases.racy_kernel, "x[0] = x[1]")
    assert {data["places"][item["place"]][1] for item in kernel["findings"]} == {line}


def test_without_a_run_the_page_says_so():
    executor, _ = cases.two_kernels()
    data = collected(run_executor(executor, None))
    assert data["missing"] == "the function was not run: give arguments with all extents"
    for lines in data["kernels"][0]["counts"].values():
        assert all(set(counts) == {"live"} for counts in lines.values())


def test_a_run_that_takes_too_long_leaves_a_page():
    data = collected(run_executor(*cases.row_sum(512, 4096), seconds=1e-6))
    assert data["missing"].startswith("the emulator did not run it: The launch ran longer than its limit")
    assert data["kernels"][0]["stages"]


def test_figures_are_those_of_the_report(row_sum):
    executor, _ = cases.row_sum()
    report = executor.report().kernels[0]
    shown = dict(row_sum["kernels"][0]["report"]["rows"])
    assert shown["registers"] == str(report.registers)
    assert shown["occupancy"] == report.occupancy
    limits = row_sum["kernels"][0]["report"]["limits"]
    (binding,) = [name for name, _, binds in limits if binds]
    assert f"limited by {binding}" in report.occupancy
    assert min(limits, key=lambda row: row[1])[0] == binding


def test_passes_are_those_of_the_pipeline(row_sum):
    names = [item["name"] for item in row_sum["programs"][0]["passes"]]
    assert [name for name in names if name in ("place-shared-memory", "expand-views", "cute-to-nvvm")] == [
        "place-shared-memory", "expand-views", "cute-to-nvvm",
    ]  # fmt: skip
    changed = next(item for item in row_sum["programs"][0]["passes"] if item["name"] == "place-shared-memory")["rows"]
    assert any("cute.alloc" in left and "cute.smem_base" in right for _, left, right in changed)


def test_rows_of_a_change():
    before = "\n".join(["a", *"bcdefgh", "x %1", "gone", "i", "j"])
    after = "\n".join(["a", *"bcdefgh", "x %2", "i", "new", "other"])
    assert list(rows(PassChange("p", before, after))) == [
        ["skipped", "6 lines are the same", ""],
        ["same", "g", "g"], ["same", "h", "h"], ["same", "x %1", "x %2"],
        ["removed", "gone", ""], ["same", "i", "i"], ["changed", "j", "new"], ["added", "", "other"],
    ]  # fmt: skip


def test_a_pass_that_renames_values_changed_nothing():
    assert list(rows(PassChange("p", "  %0 = f %a\n", "  %7 = f %b\n"))) == []


def test_machine_code_without_gaps():
    wide = (
        "        /*0010*/                   S2R R0, SR_TID.X ;\n"
        "        /*0020*/              @!P0 BRA `(.L_x) ;\n"
        ".L_x:\n"
    )
    assert compact(wide) == "/*0010*/        S2R R0, SR_TID.X ;\n/*0020*/   @!P0 BRA `(.L_x) ;\n.L_x:\n"


def test_a_page_is_one_file_that_loads_nothing(row_sum):
    text = page(row_sum)
    assert "{{" not in text.partition('id="data">')[0]
    assert "http://" not in text.replace("http://www.w3.org/", "").partition('id="data">')[0]
    for words in (" src=", "<link", "@import", "url(http", 'url("http', "import("):
        assert words not in text
    assert "default-src 'none'" in text
    assert data_of(text) == json.loads(json.dumps(row_sum))


def test_a_text_that_ends_a_script_stays_text(row_sum):
    text = page({**row_sum, "function": "</script><script>alert(1)</script>"})
    assert "<script>alert" not in text


def test_blocks_and_registers_are_those_of_the_machine_code(row_sum):
    executor, _ = cases.row_sum()
    code = executor.machine_code()
    shown = row_sum["kernels"][0]["code"]
    lines = next(stage["text"] for stage in row_sum["kernels"][0]["stages"] if stage["name"] == "sass").splitlines()
    # Each block ends where a warp may go elsewhere, or before a label that is a target; what follows is in the text.
    for block in shown["blocks"]:
        last = lines[block["last"] - 1]
        label = f"`({lines[shown['blocks'][block['next'][0]]['first'] - 2].rstrip(':')})" if block["next"] else "EXIT"
        assert label in last or "BRA" not in last
        assert bool(block["next"]) or "EXIT" in last
    for line, used in shown["registers"].items():
        text = lines[line - 1].split("*/")[1].replace(".reuse", "").replace(".64", "")
        assert all(re.search(rf"\b{name}\b", text) for name in used["writes"] if not name[-1].isdigit()), text
    assert max(used["live"].get("GPR", 0) for used in shown["registers"].values()) == code.most_live["GPR"]
    by_hand = [int(row) for row in re.findall(r"// \|\s+(\d+)", code.live)]
    assert [used["live"].get("GPR", 0) for used in shown["registers"].values()][:5] == by_hand[:5]
    assert row_sum["kernels"][0]["counts"]["sass"][min(shown["registers"])]["live"] == by_hand[0]


def test_what_ncu_measured_stands_beside():
    executor, values = cases.row_sum(8, 64)
    run = run_executor(executor, values)
    offsets = {item.offset: item.mnemonic for item in executor.machine_code().instructions}
    load = next(at for at, name in offsets.items() if name == "LDG")
    counts = {load: Counts(64, sectors=7, wavefronts=3, wavefronts_ideal=1, stalls={"barrier": 5.0})}
    recording = Recording("", {"row_sum_kernel": counts}, {"row_sum_kernel": offsets})
    (kernel,) = collected(run.beside(recording))["kernels"]
    (own,) = [line for line in kernel["counts"]["sass"].values() if "ncu_sectors" in line]
    assert (own["ncu_sectors"], own["ncu_wavefronts"], own["ncu_conflicts"]) == (7, 3, 2)
    assert (own["ncu_samples"], own["ncu_instructions"], own["sectors"]) == (5, 64, 8 * 64 * 4 // SECTOR)
    assert kernel["all_sampled"] == [["barrier", 1.0]]
    assert kernel["all_waits"][0][0] != "barrier"


def test_what_ncu_measured_of_other_code_is_refused():
    executor, values = cases.row_sum(8, 64)
    run = run_executor(executor, values)
    offsets = {item.offset: item.mnemonic for item in executor.machine_code().instructions}
    padded = offsets | {max(offsets) + 16: "NOP"}
    assert run.beside(Recording("", {"row_sum_kernel": {0: Counts()}}, {"row_sum_kernel": padded})).measured
    other = offsets | {0x20: "FMUL"}
    with pytest.raises(ArgumentError, match="ncu measured other code of row_sum_kernel than what is compiled") as error:
        run.beside(Recording("", {"row_sum_kernel": {0: Counts()}}, {"row_sum_kernel": other}))
    assert "at 0020, measured" in str(error.value) and "FMUL" in str(error.value)
    with pytest.raises(ArgumentError, match="ncu measured no kernel of row_sum"):
        run.beside(Recording("", {"vadd": {0: Counts()}}))
