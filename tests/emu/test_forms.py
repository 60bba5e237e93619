"""The emulator takes what ptxas takes for sm_90a, in every form of `forms.forms`, and refuses the rest by name."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emu import forms
from tilewright.base.errors import EmulationError
from tilewright.targets.emu import Program

EVERY = forms.forms()
REFUSED = {"alloca", "multimem", "stackrestore", "stacksave"}
BATCH = 400
ERROR = re.compile(r"line (\d+)[;:]\s*(?:error|fatal)", re.IGNORECASE)


def ptxas():
    """The assembler of the installed wheel."""
    places = [file for place in sys.path for file in Path(place).glob("nvidia/*/bin/ptxas")] if sys.path else []
    found = places[0] if places else shutil.which("ptxas")
    if found is None:
        pytest.skip("ptxas is not installed")
    return str(found)


def assembled(tool, chosen, folder):
    """Those of some forms that ptxas takes; it names the lines of all that it refuses."""
    while chosen:
        text, owner = forms.HEAD, {}
        for number, form in enumerate(chosen):
            start = text.count("\n")
            text += forms.kernel(f"k{number}", form)
            owner.update(dict.fromkeys(range(start + 1, text.count("\n") + 1), form))
        source = folder / "forms.ptx"
        source.write_text(text)
        command = [tool, "-arch=sm_90a", "-c", "-O0", str(source), "-o", str(folder / "forms.cubin")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return chosen
        wrong = {owner.get(int(line)) for line in ERROR.findall(done.stdout + done.stderr)} - {None}
        if not wrong and len(chosen) == 1:
            return []
        if not wrong:
            half = len(chosen) // 2
            return assembled(tool, chosen[:half], folder) + assembled(tool, chosen[half:], folder)
        chosen = [form for form in chosen if form not in wrong]
    return []


def complaint(form):
    """What the emulator says of a form, empty if it takes it."""
    try:
        Program(forms.HEAD + forms.kernel("k", form)).image("k", True)
    except EmulationError as error:
        return error.message
    return ""


def test_expansion():
    assert sorted(forms.expand("a{.b}.(c|d.(e|f))")) == sorted(["a.c", "a.d.e", "a.d.f", "a.b.c", "a.b.d.e", "a.b.d.f"])
    assert forms.filled("mad.wide.u16", "W0, T1, T2, W3") == "r0, h1, h2, r3"
    assert forms.filled("set.eq.or.f16.u64", "S0, T1, T2&") == "h0, d1, d2, !p3"
    assert forms.filled("ld.global.L2::cache_hint.v2.f32", "V0, [d9]&") == "{r0, r1}, [d9], d6"
    assert not [form for form in EVERY if re.search(r"\b[TSVW]\d|[&<>()^]", form)]
    assert len(EVERY) == len(set(EVERY)) > 12_000


@pytest.mark.parametrize("form", EVERY[:: len(EVERY) // 97])
def test_some_forms_are_taken_or_refused_by_name(form):
    said = complaint(form)
    named = (form.split()[0].rstrip(";"), "no such combination", "there is no atomic", "in the other layout only")
    assert not said or any(text in said for text in named), said


@pytest.mark.slow
def test_what_ptxas_takes_is_taken(tmp_path):
    tool = ptxas()
    taken = [form for k in range(0, len(EVERY), BATCH) for form in assembled(tool, EVERY[k : k + BATCH], tmp_path)]
    assert len(taken) > 11_000
    wrong = {form: said for form in taken if (said := complaint(form))}
    assert {form.split(".")[0] for form in wrong} == REFUSED
