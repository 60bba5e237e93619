"""Programs through assemblers that miscompile, crash, hang or refuse: what is found, and what is left of it."""

import json
import random

import numpy as np
import pytest

from scripts import fuzz_ptxas
from tests.tools.fuzzing.stand_ins import Inline, Planted, TextMachine, script
from tilewright.tools.fuzzing.assemblers import Assembler, Failure, found_at
from tilewright.tools.fuzzing.campaign import Finding, Oracle, disagreements, helped, made, survey
from tilewright.tools.fuzzing.drawing import Drawing
from tilewright.tools.fuzzing.exchanges import product_of_warpgroup
from tilewright.tools.fuzzing.generator import generate
from tilewright.tools.fuzzing.machines import emulated
from tilewright.tools.fuzzing.program import Program, Region, Step, kernel, module
from tilewright.tools.fuzzing.reducer import reduced, size
from tilewright.tools.fuzzing.report import row_of

LEVELS = (Planted(0), Planted(3))
WITH_XOR = [seed for seed in range(140) if "xor.b32" in module([generate(seed)])]


def test_nothing_is_found_where_nothing_is_wrong():
    result = survey(range(12), [Planted(0), Planted(3, form="none such")], TextMachine(), Inline(), batch=5)
    assert (result.programs, result.findings) == (12, [])
    assert 0 < result.exact <= 12


def test_a_miscompilation_is_found_at_its_level():
    result = survey(WITH_XOR, LEVELS, TextMachine(), Inline(), batch=4)
    assert result.programs == len(WITH_XOR)
    assert result.findings
    for finding in result.findings:
        assert (finding.kind, finding.differing) == ("value", ("stand-in -O3",))


def test_a_miscompilation_is_reduced_to_its_instruction():
    xor = Step(("xor.b32 \t%r1, %r1, %r2;",))
    body = generate(3).body[:4]
    region = Region(("@%p0 bra \t$past;", (xor, *generate(7).body[:2]), "$past:"))
    program = Program(3, (*body, region, Step(("add.s32 \t%r3, %r1, 7;",))), ("%r3", "%r0", "%d1"))
    finding = Finding(program, ("stand-in -O3",), np.zeros(1), np.ones(1))
    oracle = Oracle(finding, LEVELS, TextMachine(), Inline())
    assert oracle([program]) == [True]
    small = reduced(program, oracle, seconds=60)
    assert oracle([small]) == [True]
    assert small.body == (xor, *program.body[-1:])  # what is stored is %r3
    assert small.outputs == ("%r3",)


@pytest.mark.slow
def test_a_planted_fault_of_a_random_program_becomes_a_few_lines():
    found = survey(WITH_XOR, LEVELS, TextMachine(), Inline()).findings
    finding = min(found, key=lambda finding: size(finding.program))
    small = reduced(finding.program, Oracle(finding, LEVELS, TextMachine(), Inline()), seconds=60)
    assert "xor.b32" in kernel("k0", small)
    assert size(small) < size(finding.program) / 2
    assert len(small.outputs) == 1


def test_no_smaller_program_reads_what_it_does_not_write():
    steps = [
        Step(("add.cc.u32 \t%r0, %r1, %r2;", "addc.u32 \t%r1, %r2, %r3;")),
        Step(("{ .reg .pred %nan; setp.nan.f32 \t%nan, %f0, %f0; selp.b32 \t%r1, 12345, %f0, %nan; }",)),
        warpgroup_step(),
    ]
    for step in steps:
        for one in tried_for(Program(3, (step,), ("%r1",))):
            text = kernel("k0", one)
            assert "addc" not in text or "add.cc" in text
            assert "%nan;" not in text.replace(".pred %nan;", "") or "setp.nan" in text
            assert "%more," not in text or "setp.ne.b32 \t%more" in text


def tried_for(program):
    """The programs that the reducer tries in the place of one."""
    tried = []

    def none_fails(programs):
        tried.extend(programs)
        return [False] * len(programs)

    reduced(program, none_fails)
    assert tried
    return tried


def warpgroup_step():
    return product_of_warpgroup(Drawing(random.Random(4)))


def test_what_a_change_of_the_text_helps_is_told_from_the_rest():
    found = survey(WITH_XOR, LEVELS, TextMachine(), Inline()).findings
    assert helped(found, LEVELS, TextMachine(), Inline(), in_other_words) == {one.program.seed for one in found}
    assert helped(found, LEVELS, TextMachine(), Inline(), str.strip) == set()


def in_other_words(ptx):
    """The same program, in a spelling that the planted fault does not know."""
    return ptx.replace("xor.b32 \t", "xor.b32  ")


def test_what_is_not_exact_is_compared_with_the_first_assembler():
    step = Step(("ex2.approx.f32 \t%f1, %f0;", "xor.b32 \t%r1, %r1, %r2;"))
    batch = made([Program(1, (step,), ("%f1", "%r1"), exact=False)], LEVELS, checks=True)
    (finding,) = disagreements(batch, LEVELS, TextMachine())
    assert finding.differing == ("stand-in -O3",)


def test_a_row_has_the_first_difference_and_the_inputs():
    program = Program(2, (Step(("xor.b32 \t%r1, %r1, %r2;",)),), ("%r1",))
    wanted = emulated(program)
    found = wanted.copy()
    found[7, 0] ^= 1
    row = row_of(Finding(program, ("ptxas 13.0 -O3",), wanted, found), known="minima", whole=True)
    assert (row["seed"], row["thread"], row["threads"], row["register"], row["known"]) == (2, 7, 1, "%r1", "minima")
    assert int(row["wanted"], 16) ^ int(row["found"], 16) == 1
    assert set(row["inputs"]) == {"%r1", "%r2"}
    assert "xor.b32" in row["ptx"]
    json.dumps(row)


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        ("__import__('os').kill(__import__('os').getpid(), 11)", "crash", "SIGSEGV"),
        ("sys.exit('ptxas x.ptx, line 9; error   : Unknown symbol')", "refusal", "Unknown symbol"),
        ("sys.exit('ptxas fatal : Internal error: C9999')", "crash", "Internal error"),
        ("time.sleep(30)", "hang", "no end after 1 s"),
        ("sys.exit(3)", "refusal", "status 3 without a reason"),
    ],
)
def test_how_an_assembler_fails(tmp_path, answer, kind, text):
    (tool,) = found_at(script(tmp_path, answer), levels=(3,))
    made = tool.assemble(module([generate(1)]), seconds=1 if kind == "hang" else 60)
    assert isinstance(made, Failure)
    assert made.kind == kind
    assert text in made.text


def test_the_program_that_an_assembler_crashes_on_is_found_in_its_batch(tmp_path):
    crash = "'xor.b32' in text and __import__('os').kill(__import__('os').getpid(), 11)"
    tools = found_at(script(tmp_path, crash), levels=(3,))
    seeds = list(range(WITH_XOR[0] - 1, WITH_XOR[0] + 2))
    result = survey(seeds, tools, None, Inline())
    assert [one.program.seed for one in result.findings] == [seed for seed in seeds if seed in WITH_XOR]
    assert {one.kind for one in result.findings} == {"crash"}


def test_a_program_that_is_no_ptxas_is_refused(tmp_path):
    with pytest.raises(ValueError, match="names no release"):
        found_at(script(tmp_path, "", said="hello"))
    assert Assembler("ptxas", "13.5", 3).name == "ptxas 13.5 -O3"


def test_the_script_writes_what_it_finds(tmp_path, monkeypatch, capsys):
    crash = "'xor.b32' in text and __import__('os').kill(__import__('os').getpid(), 11)"
    out = tmp_path / "found.json"
    arguments = ["--programs", "3", "--seed", str(WITH_XOR[0] - 1), "--no-device", "--workers", "1"]
    path = script(tmp_path, crash)
    monkeypatch.setattr(
        "sys.argv", ["fuzz_ptxas", *arguments, "--ptxas", path, "--out", str(out), "--reduce-seconds", "2"]
    )
    monkeypatch.setattr(fuzz_ptxas, "ProcessPoolExecutor", lambda *_: Inline())
    assert fuzz_ptxas.main() == 1
    summary = json.loads(out.read_text())
    assert summary["programs"] == 3
    assert [row["kind"] for row in summary["findings"]] == ["crash"] * len(
        [s for s in WITH_XOR if s <= WITH_XOR[0] + 1]
    )
    printed = capsys.readouterr().out
    assert "ptxas 99.1 -O0 | ptxas 99.1 -O3" in printed
    assert "xor.b32" in printed
