"""What ncu prints of each machine instruction, recorded on an H200, and the emulator's counts of the same kernel."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.tools.explorer.cases import fake, row_sum
from tilewright import ArgumentError
from tilewright.tools import demo_kernels
from tilewright.tools.commands import explore, profile_lines
from tilewright.tools.explorer.page import data_of
from tilewright.tools.function_runs import run_executor
from tilewright.tools.profiling import gpu_launch, ncu_lines
from tilewright.tools.profiling.line_counts import Counts
from tilewright.tools.profiling.line_profile import line_profiles
from tilewright.tools.profiling.line_tables import table

RECORDED = Path(__file__).parent / "data" / "ncu_source_h200.csv"


@cute.kernel
def naive_transpose_kernel(x: cute.Tensor, y: cute.Tensor):
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((32, 32), stride=(32, 1)))
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    for k in cutlass.range_constexpr(4):
        shared[ty + 8 * k, tx] = x[by * 32 + ty + 8 * k, bx * 32 + tx]
    cute.arch.sync_threads()
    for k in cutlass.range_constexpr(4):
        y[bx * 32 + ty + 8 * k, by * 32 + tx] = shared[tx, ty + 8 * k]


@cute.jit
def naive_transpose(x: cute.Tensor, y: cute.Tensor):
    m, n = x.shape
    naive_transpose_kernel(x, y).launch(grid=(n // 32, m // 32, 1), block=(32, 8, 1))


@pytest.fixture(scope="module")
def recorded():
    return ncu_lines.read(RECORDED).counts


def test_the_recorded_kernel(recorded):
    assert list(recorded) == ["naive_transpose_kernel"]
    counts = recorded["naive_transpose_kernel"]
    assert sorted(counts) == [16 * at for at in range(112)]
    assert sum(item.sectors for item in counts.values()) == 2 * 512 * 512 * 4 // 32
    assert sum(item.stalls.get("short scoreboard", 0) for item in counts.values()) > 0


def test_the_emulator_counts_what_ncu_measured(recorded):
    values = [np.ones((512, 512), np.float32), np.zeros((512, 512), np.float32)]
    executor = cute.compile(naive_transpose, *map(fake, values), target="emu")
    (found,) = line_profiles(run_executor(executor, values))
    measured = Counts()
    for counts in recorded["naive_transpose_kernel"].values():
        measured.add(counts)
    total = found.total
    for name in ("sectors", "sectors_ideal", "wavefronts", "wavefronts_ideal"):
        assert getattr(total, name) == getattr(measured, name), name
    (_, load), (_, store) = [item for item in sorted(found.python.items()) if item[1].sectors]
    assert (load.sectors, load.wavefronts, load.conflicts) == (32768, 8192, 0)
    assert (store.sectors, store.wavefronts, store.conflicts) == (32768, 262144, 262144 - 8192)


def test_what_was_measured_goes_to_lines_of_python():
    executor, values = row_sum(8, 64)
    run = run_executor(executor, values)
    offsets = {16 * at: Counts(32, sectors=at, stalls={"barrier": 1.0}) for at in range(4)}
    measured = type(run)(run.name, run.executors, run.reports, measured={"row_sum_kernel": offsets})
    (found,) = line_profiles(measured)
    assert found.measured
    assert sum(counts.sectors for counts in found.python.values()) == 0 + 1 + 2 + 3
    said = "\n".join(table(found, "cycles", 5))
    assert "row_sum_kernel on sm_90a: measured by ncu" in said
    assert "samples*" in said and "100%  barrier" in said


def test_several_launches_add_up():
    text = RECORDED.read_text(encoding="utf-8")
    once, twice = (ncu_lines.parse(text * times).counts["naive_transpose_kernel"] for times in (1, 2))
    assert {offset: counts.sectors for offset, counts in twice.items()} == {
        offset: 2 * counts.sectors for offset, counts in once.items()
    }


def test_without_ncu_the_error_names_the_emulator(monkeypatch):
    monkeypatch.setattr(ncu_lines, "locate", lambda program: None)
    with pytest.raises(ArgumentError, match="ncu is not installed here: it is part of Nsight Compute") as raised:
        ncu_lines.measured("kernels.py:add", [], None, "")
    assert "--by emu" in str(raised.value)


def test_an_ncu_that_fails_is_quoted(monkeypatch, tmp_path):
    program = tmp_path / "ncu"
    program.write_text(f"#!{shutil.which('sh')}\necho 'ERR_NVGPUCTRPERM: no permission'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(ncu_lines, "locate", lambda name: str(program))
    with pytest.raises(ArgumentError, match=r"ncu could not profile kernels\.py:add") as raised:
        ncu_lines.measured("kernels.py:add", [], None, "")
    assert "ERR_NVGPUCTRPERM" in str(raised.value)


def test_an_unknown_profiler():
    with pytest.raises(ArgumentError, match="--by cupti: there is no such profiler"):
        profile_lines.profiler("cupti")


def test_a_plain_function_needs_pytorch(monkeypatch, tmp_path):
    (tmp_path / "case.py").write_text("def case(x):\n    pass\n")
    monkeypatch.setattr(gpu_launch, "torch", None)
    monkeypatch.setattr(sys, "argv", ["x", f"{tmp_path / 'case.py'}:case", "", "", "f32[4]"])
    with pytest.raises(ArgumentError, match="a plain function runs on tensors of PyTorch, which is not installed"):
        gpu_launch.main()


def listing(executor, kernel):
    """What ncu prints of a kernel, with a sample of each reason and its offset as sectors, in its form."""
    instructions = executor.machine_code(kernel).instructions
    head = '"Address","Source","Thread Instructions Executed","L2 Theoretical Sectors Global","stall_long_sb"'
    rows = [f'"{0x7F00 + item.offset:#x}","      {item.text}","32","{item.offset}","1"' for item in instructions]
    return "\n".join([f'"Kernel Name","{kernel}(float*)",""', head, *rows, ""])


def test_a_recording_is_read_back_by_the_commands(tmp_path, capsys):
    executor, _ = row_sum(8, 64)
    recorded = tmp_path / "measured.csv"
    recorded.write_text(listing(executor, "row_sum_kernel"))
    place, words = f"{demo_kernels.__file__}:row_sum", ["--arg", "f32[8,64]", "--arg", "f32[8]", "--arch", "sm_90a"]
    profile_lines.run([place, *words, "--ncu", str(recorded), "--json"])
    (found,) = json.loads(capsys.readouterr().out)
    offsets = [item.offset for item in executor.machine_code().instructions]
    assert sum(line["sectors"] for line in found["sass"]) == sum(offsets)
    assert found["estimates"] == []
    explore.command(place, arg=["f32[8,64]", "f32[8]"], arch="sm_90a", ncu=recorded, out=tmp_path / "page.html")
    (kernel,) = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))["kernels"]
    assert sum(line.get("ncu_sectors", 0) for line in kernel["counts"]["sass"].values()) == sum(offsets)
    assert kernel["all_sampled"] == [["long scoreboard", 1.0]]


def test_ncu_prints_a_report_that_is_kept(monkeypatch, tmp_path):
    program, report = tmp_path / "ncu", tmp_path / "lines.ncu-rep"
    program.write_text(f"#!{shutil.which('sh')}\ncat {RECORDED}\n")
    program.chmod(0o755)
    report.write_bytes(b"")
    monkeypatch.setattr(ncu_lines, "locate", lambda name: str(program))
    assert ncu_lines.read(report).text == RECORDED.read_text(encoding="utf-8")
    monkeypatch.setattr(ncu_lines, "locate", lambda name: None)
    with pytest.raises(ArgumentError, match="ncu is not installed here") as raised:
        ncu_lines.read(report)
    assert "ncu --import lines.ncu-rep --page source --csv" in str(raised.value)


@pytest.mark.parametrize(
    ("content", "said"), [(None, "there is no report"), ("a,b\n1,2\n", "says nothing of single instructions")]
)
def test_files_that_are_no_recordings(tmp_path, content, said):
    file = tmp_path / "measured.csv"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ArgumentError, match=said) as raised:
        ncu_lines.read(file)
    assert "profile lines --by ncu --save" in str(raised.value)


def test_only_what_ncu_measured_is_saved():
    with pytest.raises(ArgumentError, match="--save keeps what ncu measured, and the emulator counts here"):
        profile_lines.run(["kernels.py:add", "--by", "emu", "--save", "x.csv"])
