"""Files of results: their names and contents, comparing two, drawing one."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tilewright.base.errors import ArgumentError
from tilewright.tools.benching import chart, compare, results, tables
from tilewright.tools.benching.suite_run import Results


def row(op="softmax_online", backend="kernel", n=1024, p50=100.0, dtype="float32", **more):
    bytes_ = 8 * 32 * n
    return {
        "op": op, "backend": backend, "shape": [32, n], "dtype": dtype, "bytes": bytes_, "p50_us": p50,
        "p90_us": p50 * 1.1, "gbs": bytes_ / p50 / 1e3, "fraction_of_copy": 0.9, **more,
    }  # fmt: skip


def contents(*rows):
    roofs = [
        {"op": r["op"], "shape": r["shape"], "dtype": r["dtype"], "gbs": {"copy": 3.0, "read": 3.1}, "spread": 0.0042}
        for r in rows
    ]
    return {"machine": {"device": "NVIDIA H100 80GB HBM3"}, "results": list(rows), "roofs": roofs, "failures": []}


@pytest.mark.parametrize(
    ("device", "card"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA GeForce RTX 4090", "geforce-rtx-4090"),
        ("emulator", "emulator"),
        ("80GB", "unknown"),
    ],
)
def test_the_card_in_a_files_name(device, card):
    assert results.card(device) == card


def test_the_name_of_a_file(tmp_path):
    path = results.default_path(tmp_path, "peers", "NVIDIA H100 80GB HBM3")
    assert path.parent == tmp_path
    assert re.fullmatch(r"peers-h100-20\d\d-\d\d-\d\d\.json", path.name)


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "new" / "r.json"
    found = Results({"device": "NVIDIA B200"}, [row()], [], [{"op": "x"}])
    results.write(path, results.record(found, "smoke"))
    again = results.read(path)
    assert again["results"] == [row()] and again["failures"] == [{"op": "x"}]
    assert again["machine"]["device"] == "NVIDIA B200" and again["machine"]["suite"] == "smoke"
    assert [item.name for item in path.parent.iterdir()] == ["r.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "is no JSON"), ("[]", "has no results"), ('{"results": [{"op": "a"}]}', "has no results")],
)
def test_other_files_are_refused(tmp_path, text, message):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=message):
        results.read(path)
    with pytest.raises(ArgumentError, match="there is no file"):
        results.read(tmp_path / "other.json")


def test_comparing_pairs_rows_and_judges_beyond_the_noise():
    old = contents(row(p50=100.0), row(n=2048, p50=100.0), row(backend="torch", p50=100.0), row(op="gone"))
    new = contents(row(p50=90.0), row(n=2048, p50=100.9), row(backend="torch", p50=102.0), row(dtype="bfloat16"))
    found = compare.compare(old, new)
    assert [(change.ratio, change.verdict) for change in found.changes] == [
        (0.9, "faster"), (pytest.approx(1.009), "same"), (1.02, "slower"),
    ]  # fmt: skip
    assert [item["op"] for item in found.only_old] == ["gone"]
    assert [item["dtype"] for item in found.only_new] == ["bfloat16"]
    lines = list(tables.comparison(found))
    assert lines[1].split() == ["softmax_online", "32x1024", "float32", "torch", "100.0", "102.0", "1.020", "slower"]
    assert lines[-2:] == ["only in the old file: 1 rows", "only in the new file: 1 rows"]


def test_rows_of_the_emulator_have_no_times_to_compare():
    counted = {"op": "a", "backend": "kernel", "shape": [1], "dtype": "float32", "bytes": 4, "emulator": []}
    found = compare.compare(contents(), {"results": [counted]})
    assert not found.changes and not found.only_new


def test_the_summary_has_fractions_of_the_roof_and_of_the_best_peer():
    lines = list(
        tables.summary(contents(row(p50=100.0), row(backend="torch", p50=200.0), row(backend="quack", p50=80.0)))
    )
    assert lines[0] == "GB/s on NVIDIA H100 80GB HBM3"
    gbs = 8 * 32 * 1024 / 100.0 / 1e3
    assert lines[2].split()[3:] == [
        f"{gbs:.0f}", f"{gbs / 2:.0f}", f"{gbs / 0.8:.0f}", f"{gbs / 0.9:.0f}", "0.900", "0.800", "0.004",
    ]  # fmt: skip


def test_charts_are_drawn_as_png_and_svg(tmp_path):
    pytest.importorskip("matplotlib", reason="charts need matplotlib")
    rows = [
        row(op=op, backend=backend, n=n, dtype=dtype, p50=n / 10)
        for op in ("softmax_online", "rmsnorm") for backend in ("kernel", "torch.compile") for n in (1024, 4096)
        for dtype in ("float32", "bfloat16")
    ]  # fmt: skip
    png, svg = chart.draw(contents(*rows), tmp_path / "charts" / "peers.json")
    assert png.name == "peers.png" and png.read_bytes().startswith(b"\x89PNG\r\n")
    text = svg.read_text()
    assert ET.fromstring(text).tag.endswith("svg")
    for words in ("softmax_online, float32", "rmsnorm, bfloat16", "tilewright", "torch.compile", "copy or read"):
        assert f"<!-- {words} -->" in text
    again = chart.draw(contents(*rows), tmp_path / "again.json")[1]
    assert again.read_text() == text


def test_what_cannot_be_drawn_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(chart, "available", lambda: False)
    with pytest.raises(ArgumentError, match="charts need matplotlib"):
        chart.draw(contents(row()), tmp_path / "a")
    monkeypatch.setattr(chart, "available", lambda: True)
    with pytest.raises(ArgumentError, match="no row was timed"):
        chart.draw(contents(), tmp_path / "a")


def test_results_that_are_kept_can_be_read():
    folder = Path(__file__).resolve().parents[2] / "bench" / "results"
    kept = [path for suite in ("smoke", "standard", "full", "peers") for path in folder.glob(f"{suite}-*.json")]
    for path in kept:
        machine = json.loads(path.read_text())["machine"]
        assert path.name.startswith(f"{machine['suite']}-{results.card(machine['device'])}-20")
        assert results.read(path)["results"]
