"""The measured tables of docs/kernels are what their files of bench/results have."""

import json

import pytest

from scripts import measured_tables

ROOF = {"op": "copy", "shape": [2, 4], "dtype": "float32", "gbs": {"copy": 80.0, "read": 100.0}}


def row(backend, gbs, **more):
    return {"op": "copy", "backend": backend, "shape": [2, 4], "dtype": "float32", "gbs": gbs, **more}


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(measured_tables, "RESULTS", tmp_path)

    def write(rows, roofs=(ROOF,)):
        path = tmp_path / "peers-card-2026-01-01.json"
        path.write_text(json.dumps({"results": rows, "roofs": list(roofs)}))
        return path

    return write


def test_the_tables_of_the_docs_are_those_of_their_files(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["measured_tables.py", "--check"])
    assert measured_tables.main() == 0, capsys.readouterr().out


def test_every_page_of_a_measured_op_has_tables():
    pages = {path.stem for path in measured_tables.PAGES.glob("*.md")
             if measured_tables.MARKER.search(path.read_text(encoding="utf-8"))}  # fmt: skip
    assert {"softmax_online", "rmsnorm", "layernorm", "cross_entropy", "elementwise", "copy_transpose"} <= pages


def test_a_table_has_fractions_of_the_roof(results):
    path = results([row("kernel", 97.0), row("torch", 50.0)])
    page = "Before\n\n<!-- measured copy -->\n\nAfter\n"
    filled = measured_tables.filled(page, path)
    assert filled == (
        "Before\n\n<!-- measured copy -->\n<!-- from peers-card-2026-01-01.json -->\n"
        "| | float32, ours | torch | bfloat16, ours | torch |\n|---|---|---|---|---|\n"
        "| 2×4 | 0.97 | 0.50 | – | – |\n\nAfter\n"
    )
    assert measured_tables.filled(filled, None) == filled
    results([row("kernel", 96.0), row("torch", 50.0)])
    assert measured_tables.filled(filled, None) != filled


def test_options_choose_the_rows(results):
    roof = {**ROOF, "options": {"op": "add"}}
    path = results([row("kernel", 97.0, options={"op": "add"}), row("kernel", 10.0, options={"op": "mul"})], [roof])
    assert "| 0.97 |" in measured_tables.filled("<!-- measured copy op=add -->\n", path)


def test_without_a_file_a_table_that_names_none_stays(results):
    assert measured_tables.filled("<!-- measured copy -->\n", None) == "<!-- measured copy -->\n"
