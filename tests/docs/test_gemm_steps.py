"""The programs of docs/gemm.md: exact on the emulator, counted as the page says, quoted as they are."""

import importlib.util
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from scripts import gemm_tutorial as tutorial
from tilewright import EmulationError, cute

PAGE = tutorial.PAGE.read_text(encoding="utf-8")
LONG = 512, 256, 512  # long enough that every buffer is used again
STEPS = pytest.mark.parametrize("name", tutorial.STEPS)


def loaded(path):
    """A module of a file that is not one of the steps."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table_row(name):
    """The counts of a step on the page."""
    line = next(line for line in PAGE.splitlines() if re.match(rf"\| \d {re.escape(tutorial.STEPS[name])} \|", line))
    return [float(cell.replace(",", "")) for cell in line.strip("| ").split("|")[1:]]


@STEPS
def test_a_step_is_exact_and_counts_what_the_page_says(name):
    module = tutorial.step(name)
    report = importlib.import_module("harness").check(module.gemm, **module.ON_EMULATOR)
    instructions, *moved = tutorial.per_thousand(report, module.ON_EMULATOR["shape"])
    stated, *stated_moved = table_row(name)
    assert instructions == pytest.approx(stated, rel=0.1), "run: python scripts/gemm_tutorial.py"
    np.testing.assert_allclose(moved, stated_moved, rtol=0.05, atol=1e-3)


@pytest.mark.parametrize("name", [name for name in tutorial.STEPS if name >= "step4"])
def test_the_assembler_neither_serialises_nor_spills(name, capfd):
    arrays = [np.zeros((256, 256), ml_dtypes.bfloat16) for _ in range(3)]
    step = tutorial.step(name)  # which finds the harness
    tensors = importlib.import_module("harness").as_tensors(*arrays)
    cute.compile(step.gemm, *tensors, target="emu", options="--gpu-arch sm_90a --ptxas-options -v").report()
    text = "".join(capfd.readouterr())
    assert "Used" in text and "C75" not in text and "serializ" not in text
    assert "0 bytes spill stores, 0 bytes spill loads" in text


def test_what_the_page_quotes_stands_in_a_step():
    sources = [(tutorial.EXAMPLES / f"{name}.py").read_text(encoding="utf-8") for name in tutorial.STEPS]
    quotes = re.findall(r"```py\n(.*?)```", PAGE, flags=re.S)
    assert len(quotes) > 8
    assert not [quote for quote in quotes if not any(quote in source for source in sources)]


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("step7_clusters", "pipe.producer_tail(state)", "ended|exited|ends"),
        ("step8_ping_pong", 'cute.arch.fence_proxy("async.shared", space="cta")', "proxy|fence"),
        ("step4_tensor_cores", "cute.arch.sync_threads()", "race|before"),
        ("step6_warp_specialised", "warpgroup.wait_group(1)", "wgmma|race|under way"),
    ],
)
def test_a_step_without_one_of_its_lines_is_found_out(name, line, words, tmp_path):
    """As the page promises: for each line that the hardware needs there is a report."""
    source = (tutorial.EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert source.count(line) == 1
    path = Path(tmp_path) / f"{name}_wrong.py"
    path.write_text(source.replace(line, "pass"), encoding="utf-8")
    tutorial.step(name)
    module = loaded(path)
    with pytest.raises(EmulationError, match=f"(?i){words}"):
        importlib.import_module("harness").check(module.gemm, **{**module.ON_EMULATOR, "shape": LONG})
