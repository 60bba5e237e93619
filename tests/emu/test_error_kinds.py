"""`EmulationError.kind`: the class of each finding, as the documentation lists them."""

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from tilewright.base.errors import EmulationError, FaultKind
from tilewright.emulate import run_ptx

DOCS = Path(__file__).parents[2] / "docs" / "emulator.md"
HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a)
{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .f32 %f<40>;
  .shared .align 16 .b8 s[64];
  ld.param.u64 %d1, [a]; mov.u32 %r1, %tid.x;
"""
EXAMPLES = {
    "bounds": "ld.global.u32 %r2, [%d1+4096];",
    "misaligned": "ld.global.u32 %r2, [%d1+2];",
    "readonly": "mov.u64 %d2, k_constant; st.global.u32 [%d2], 1;",
    "uninitialised": "ld.shared.u32 %r2, [s]; st.global.u32 [%d1], %r2;",
    "race": "st.global.u32 [%d1], %r1;",
    "barrier": "barrier.cluster.wait;",
    "mbarrier": "mbarrier.arrive.shared.b64 %d2, [s];",
    "cluster": "mapa.shared::cluster.u32 %r2, 0, 5;",
    "deadlock": "setp.eq.u32 %p1, %r1, 0; @%p1 bar.sync 1, 64; bar.sync 2;",
    "trap": "trap;",
    "limit": "L: add.u32 %r2, %r2, 1; bra L;",
    "program": "fence.proxy.texture;",
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_kind_of_an_error(kind):
    variable = "" if kind != "readonly" else "\n.const .align 4 .u32 k_constant = 5;"
    text = HEAD.replace("\n.visible", f"{variable}\n.visible") + EXAMPLES[kind] + "\n ret;\n}\n"
    with pytest.raises(EmulationError) as caught:
        run_ptx(text, "k", 1, 64, [np.zeros(64, np.uint32)], limit=20_000)
    assert caught.value.kind == kind, caught.value


def test_collected_findings_have_kinds_too():
    text = HEAD + EXAMPLES["race"] + EXAMPLES["uninitialised"] + EXAMPLES["bounds"] + " ret; }"
    report = run_ptx(text, "k", 1, 64, [np.zeros(64, np.uint32)], checks="collect")
    assert {error.kind for error in report.races} == {"race"}
    assert {error.kind for error in report.errors} == {"bounds", "uninitialised"}


def test_each_kind_is_documented():
    table = DOCS.read_text().split("| kind | what it means |")[1].split("\n\n")[0]
    named = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split(" | ")[0])]
    assert sorted(named) == sorted(get_args(FaultKind))


def test_an_error_made_by_hand_is_of_the_program():
    assert EmulationError("no").kind == "program" and EmulationError("no", kind="race").kind == "race"
