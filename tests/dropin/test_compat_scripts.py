"""What `scripts/compatibility.py` relies on: products as tensor cores give them, archives of sources, verdicts."""

from __future__ import annotations

import csv
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright.targets.emu.numerics import accumulate

torch = pytest.importorskip("torch", reason="the stand-in is PyTorch's")
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def loaded(name):
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, SCRIPTS / name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for the scripts that import each other, and for dataclasses
    spec.loader.exec_module(module)
    return module


tensor_cores = loaded("compat/tensor_cores.py")
sources = loaded("compat/sources.py")
compatibility = loaded("compatibility.py")


@pytest.mark.parametrize("dtype, name", [(torch.float16, "f16"), (torch.bfloat16, "bf16")])
@pytest.mark.parametrize("spread", [1, 1000])
def test_products_are_the_emulator_s(dtype, name, spread):
    """Two models of the same hardware, written apart: steps of 16 along K."""
    generator = torch.Generator().manual_seed(spread)
    scale = torch.exp2(torch.randint(-spread.bit_length(), spread.bit_length(), (12, 80), generator=generator))
    a = (torch.randn(12, 80, generator=generator) * scale).to(dtype)
    b = torch.randn(9, 80, generator=generator).to(dtype)
    got = tensor_cores.product("mk,nk->mn", a, b)
    total = np.zeros((12, 9))
    left, right = a.double().numpy(), b.double().numpy()
    for k in range(0, 80, 16):
        part = left[:, k : k + 16], right[:, k : k + 16].T
        total = accumulate.fused(*part, total, (name, name, "f32"), "f32").astype(np.float64)
    assert torch.equal(got, torch.from_numpy(total).to(dtype))
    exact = left @ right.T
    bound = 2.0**-20 * (np.abs(left) @ np.abs(right.T)) + 2.0 ** (-7 if name == "bf16" else -10) * np.abs(exact)
    assert (np.abs(got.double().numpy() - exact) <= bound).all()


def test_exact_sums_come_out_exactly_in_every_arrangement():
    generator = torch.Generator().manual_seed(1)
    a = torch.randint(-4, 5, (3, 5, 20), generator=generator).half()
    b = torch.randint(-4, 5, (3, 20, 7), generator=generator).half()
    wanted = torch.einsum("lmk,lkn->lmn", a.double(), b.double())
    assert torch.equal(tensor_cores.product("lmk,lkn->lmn", a, b).double(), wanted)
    assert torch.equal(tensor_cores.product("lmk,lkn->nlm", a, b).double(), wanted.permute(2, 0, 1))
    turned = a.permute(2, 1, 0), b.permute(1, 2, 0)
    assert torch.equal(tensor_cores.product("kml, knl -> mnl", *turned).double(), wanted.permute(1, 2, 0))


def test_an_archive_holds_what_the_table_names(tmp_path):
    for name in ("examples/python/CuTeDSL/cute/notebooks/a.ipynb", "examples/python/CuTeDSL/cute/notebooks/b.png",
                 "python/CuTeDSL/secret.py", "test/examples/CuTeDSL/t.py",
                 "examples/python/CuTeDSL/dsl_tutorials/export/build/old.h"):  # fmt: skip
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(name)
    archive = tmp_path / "made" / "sources.tar.gz"
    assert sources.pack({"cutlass": tmp_path / "in"}, archive) == archive.stat().st_size
    folders = sources.unpack(archive)
    found = sorted(path.name for path in folders["cutlass"].rglob("*") if path.is_file())
    assert folders.keys() == {"cutlass"} and found == ["a.ipynb", "t.py"]


def test_every_row_of_the_table_can_be_packed():
    with (SCRIPTS / "compat/files.csv").open() as file:
        rows = list(csv.DictReader(file))
    needed = sources._NEEDED
    assert len(rows) > 40
    assert {row["path"].partition("#")[0] for row in rows if row["path"].startswith("calls/")} == {
        f"calls/{path.name}" for path in (SCRIPTS / "compat/calls").glob("*.py")
    }
    for row in rows:
        assert row["path"].startswith("calls/") or any(
            row["path"].startswith(folder) for folder in needed[row["repository"]]
        ), row["path"]


def test_runs_end_at_their_limit_and_are_kept_one_by_one(tmp_path, monkeypatch):
    folder = tmp_path / "cutlass"
    folder.mkdir()
    (folder / "good.py").write_text("print('fine')")
    (folder / "bad.py").write_text("raise KeyError('x | y')")
    (folder / "slow.py").write_text("import subprocess; subprocess.run(['sleep', '60'])")
    table = tmp_path / "files.csv"
    rows = [("1", "cutlass", name, "", "", "") for name in ("good.py", "bad.py", "slow.py", "missing.py")]
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([("tier", "repository", "path", "arguments", "expects", "note"), *rows])
    for name, path in (("TABLE", table), ("RESULTS", tmp_path / "out.csv"), ("PAGE", tmp_path / "out.md")):
        monkeypatch.setattr(compatibility, name, path)
    monkeypatch.setattr(compatibility, "_command", lambda source, path, column: [sys.executable, str(path)])
    monkeypatch.setattr(
        sys, "argv", ["compatibility.py", f"cutlass={folder}", "--jobs", "3", "--timeout", "2", "--column", "h100"]
    )
    compatibility.main()
    kept = {name: verdict for (name, _), verdict in compatibility.load().items()}
    assert kept["cutlass/good.py"][0] == "pass"
    assert kept["cutlass/bad.py"] == ("fail", "KeyError: 'x / y'")
    assert kept["cutlass/slow.py"] == ("fail", "not done after 2 s")
    assert kept["cutlass/missing.py"] == ("skip", "not in this checkout")
    assert "H100: 1 of 3 pass" in (tmp_path / "out.md").read_text()
    monkeypatch.setattr(sys, "argv", [*sys.argv[:2], "--column", "h100", "--budget", "0"])
    compatibility.main()
    assert {name: verdict for (name, _), verdict in compatibility.load().items()} == kept


def test_what_went_wrong_is_said_without_this_machine_s_folders():
    text = "E   OSError: [Errno 2] No such file: '/tmp/x-1/a/b.py' | a/b, https://example.org/a\n1 failed"
    assert compatibility.reason(text) == "OSError: [Errno 2] No such file: '.../b.py' / a/b, https://example.org/a"


def test_the_script_explains_itself():
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "compatibility.py"), "--help"], capture_output=True, text=True, check=True
    )
    assert "--budget" in done.stdout and "nanobind_ROOT" in done.stdout


run_one = loaded("compat/run_one.py")
names = loaded("compat/names.py")
closure = loaded("compat/closure.py")


def test_scripts_are_run_with_other_sizes_and_as_parts_of_their_package(tmp_path, capsys):
    folder = tmp_path / "01_parts"
    folder.mkdir()
    (folder / "utils.py").write_text("SIZE = 3\n")
    (folder / "02_main.py").write_text("from .utils import SIZE\nprint(__name__, SIZE)\n")
    (folder / "plain.py").write_text("import sys\nM, N = 4096, 2048\nprint(M * N, sys.argv[1:])\n")
    assert run_one.main([str(folder / "02_main.py")]) == 0
    assert run_one.main([str(folder / "plain.py"), "--replace", "4096", "4", "--replace", "2048", "2", "--x"]) == 0
    assert capsys.readouterr().out.splitlines() == ["__main__ 3", "8 ['--x']"]


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("cute.arch.barrier", "built"),
        ("cutlass.Float32.mlir_type", "built"),
        (".retile (ThrCopy)", "built"),
        (".iterator (Tensor)", "built"),
        (".is_m_major_c (LayoutEnum)", "built"),
        ("launch(grid=)", "built"),
        ("launch(nonesuch=)", "missing"),
        ("cute.compile(options=)", "built"),
        ("cute.compile[...]", "built"),
        ("cute.nvgpu.tcgen05.MmaF16BF16Op", "stub"),
        (".retrieve_ptr (TmemAllocator)", "stub"),
        (".nonesuch (Tensor)", "missing"),
        ("cute.nonesuch", "missing"),
    ],
)
def test_names_are_built_stubs_or_missing(name, verdict):
    assert names.verdict(name) == verdict


def test_a_file_needs_what_it_reaches(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("from lib.parts import used\n")
    (tmp_path / "lib" / "parts.py").write_text(
        "import cutlass.cute as cute\nfrom cutlass import pipeline\n"
        "def used(pipeline):\n    pipeline.acquire()\n    return helper()\n"
        "def helper():\n    return cute.arch.thread_idx()\n"
        "class Unused:\n    op = cute.nvgpu.tcgen05.Op\n"
    )
    (tmp_path / "main.py").write_text(
        "import cutlass\nfrom cutlass.cute.nvgpu import warp, cpasync\nfrom lib import used\nimport lib.parts as p\n"
        "def kernel():\n    used(1)\n    return warp.MmaF16BF16Op\nkernel(), p.helper, cutlass.Float32.zero\n"
    )
    assert closure.Closure(tmp_path).names("main.py") == {
        "cute.arch.thread_idx", "cute.nvgpu.warp.MmaF16BF16Op", "cutlass.Float32.zero",
    }  # fmt: skip
