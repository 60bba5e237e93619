"""docs/gemm.md: its pictures are those that the script draws, and its rates are those of a record."""

import pytest

from scripts import gemm_tutorial as tutorial

MACHINE = {"device": "NVIDIA Made Up", "commit": "abc", "date": "2026-12-01 10:00"}


@pytest.mark.parametrize(("name", "picture"), tutorial.pictures().items(), ids=tutorial.pictures())
def test_pictures_are_up_to_date(name, picture):
    assert (tutorial.IMAGES / name).read_text(encoding="utf-8") == picture, "run: python scripts/gemm_tutorial.py"


def rows(**rates):
    return [{"name": f"{name} 4096x4096x4096", "median": rate, "unit": "TFLOP/s"} for name, rate in rates.items()]


def test_rates_come_from_a_record():
    record = {"machine": MACHINE, "rows": rows(step1_naive=3.0, step8_ping_pong=600.0, cuBLAS=800.0)}
    lines = tutorial.rates(record, "made-up.json").splitlines()
    assert lines[0] == "| step | 4096x4096x4096, TFLOP/s | of cuBLAS |"
    assert lines[2] == "| 1 naive | 3.0 | 0.004 |" and lines[9] == "| 8 ping-pong | 600.0 | 0.750 |"
    assert lines[3] == "| 2 shared tile |  |  |"
    assert lines[-1] == "NVIDIA Made Up, commit abc, 2026-12-01 ([record](../bench/results/made-up.json))."


def test_a_table_is_replaced_where_it_stands():
    text = "a\n<!-- rates: by a script -->\nold\n<!-- end of rates -->\nb\n<!-- counted -->\n<!-- end of counted -->\n"
    assert tutorial.replaced(text, "rates", "new\n") == text.replace("old", "new")


def test_without_a_record_the_page_says_that_nothing_is_measured():
    text = tutorial.PAGE.read_text(encoding="utf-8")
    found = text.split("record of `python -m bench gemm_steps` -->\n")[1].split("<!-- end of rates -->")[0]
    assert found == tutorial.NOT_MEASURED or "([record](../bench/results/gemm_steps-" in found
