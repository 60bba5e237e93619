"""Shadow memory of large buffers: room for the pages that are touched, and the same findings as for small ones."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from tests.emu.test_instructions import HEAD
from tilewright.emulate import EmulationError, run_ptx
from tilewright.targets.emu.checks.history import pages, shadow
from tilewright.targets.emu.checks.history.pages import PAGE_SHIFT, Pages, left, resized
from tilewright.targets.emu.checks.history.shadow import Shadow

GIB = 1 << 30
BYTES = f"""{HEAD}
.visible .entry k(.param .u64 data, .param .u64 step)
{{ .reg .b32 %r<4>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [data]; ld.param.u64 %d2, [step]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3; cvt.u64.u32 %d3, %r1; mad.lo.u64 %d1, %d3, %d2, %d1;
  ld.global.u8 %r2, [%d1]; add.u32 %r2, %r2, %r1; st.global.u8 [%d1], %r2; ret; }}
"""

SPARSE = f"""
import resource, sys
import numpy as np
from tilewright.emulate import run_ptx
data = np.zeros(3 << 30, np.int8)
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = run_ptx('''{BYTES}''', "k", 2, 8, [data, (3 << 30) // 16])
assert report.ok, report
places = np.arange(16) * ((3 << 30) // 16)
assert (data[places] == np.arange(16)).all() and not data[places[1:] - 1].any()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_three_gibibytes_of_bytes_of_which_few_are_touched():
    done = subprocess.run([sys.executable, "-c", SPARSE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 120  # MiB, huge pages of the buffer itself among them


@pytest.fixture
def paged(monkeypatch):
    monkeypatch.setattr(shadow, "LARGE", 64)


@pytest.mark.parametrize("size", ["u8", "u16", "u32", "u64"])
def test_the_same_findings_page_by_page(monkeypatch, size):
    register = "%d4" if size == "u64" else "%r2"
    text = BYTES.replace("ld.global.u8 %r2", f"ld.global.{size} {register}").replace(
        "st.global.u8 [%d1], %r2", f"st.global.{size} [%d1], {register}"
    )
    shared = text.replace("mad.lo.u64 %d1", "and.b64 %d3, %d3, 63; mad.lo.u64 %d1")
    data = np.zeros(1 << 17, np.uint8)
    told = []
    for large in (1 << 40, 64):
        monkeypatch.setattr(shadow, "LARGE", large)
        assert run_ptx(text, "k", 2, 64, [data, 1024]).ok  # each has its own
        with pytest.raises(EmulationError) as caught:
            run_ptx(shared, "k", 2, 64, [data, 1032])
        told.append(str(caught.value))
    assert told[0] == told[1] and "Race condition in global memory" in told[0]
    assert (int(told[0].split("address")[1].split()[0], 16) - data.ctypes.data) % 1032 == 0


def test_wide_then_narrow_accesses_keep_what_was_noted(paged):
    # Thread 0 writes words on three pages, a barrier, then thread 33 reads their last bytes, then without a barrier.
    body = f"""{HEAD}
.visible .entry k(.param .u64 data)
{{ .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %d<2>; ld.param.u64 %d1, [data]; mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 33;
  @%p1 st.global.u32 [%d1+16], 1; @%p1 st.global.u32 [%d1+12288], 2; @%p1 st.global.u32 [%d1+4092], 3;
  bar.sync 0;
  @%p2 ld.global.u8 %r2, [%d1+4095]; @%p2 ld.global.u8 %r2, [%d1+12291]; @%p1 st.global.u32 [%d1+12288], 5;
  ret; }}
"""
    data = np.zeros(5000, np.uint32)
    with pytest.raises(EmulationError) as caught:
        run_ptx(body, "k", 1, 64, [data])
    assert caught.value.values["address"] == f"{data.ctypes.data + 12288 + 3:#x} (written now, read before)"
    assert run_ptx(body.replace("@%p1 st.global.u32 [%d1+12288], 5;", ""), "k", 1, 64, [data]).ok


@pytest.mark.parametrize("granule", [0, 2])
def test_pages_against_a_dictionary(granule):
    random = np.random.default_rng(granule)
    nbytes = 1 << 28
    table, known = Pages(nbytes), {}
    for _ in range(40):
        numbers = random.integers(0, nbytes >> granule, 50)
        cells = table.cells(numbers, granule)
        for number, cell in zip(numbers.tolist(), cells.tolist(), strict=True):
            assert known.setdefault(number, cell) == cell and table.number(cell, granule) == number
    assert len(set(known.values())) == len(known)
    touched = len({number >> PAGE_SHIFT - granule for number in known})
    assert table.used == touched <= table.capacity < 2 * touched + 256


def test_shadows_grow_with_what_is_touched():
    made = Shadow(1 << 34)
    assert made.writes.nbytes < 1 << 22
    cells, each = made.granules(np.arange(0, 1 << 34, 1 << 24), 8)
    assert each == 2 and len(made.writes) >= cells.max() + 1 and made.writes.nbytes < 1 << 24
    made.writes[cells] = np.arange(len(cells)) + 1
    made.written = True
    narrow, _ = made.granules(np.arange(3, 1 << 34, 1 << 24), 1)
    assert (made.writes[narrow] == 2 * np.arange(1024) + 1).all()
    assert [made.offset(int(cell)) for cell in narrow[:3]] == [3, 3 + (1 << 24), 3 + (2 << 24)]


# Where memory ends.


@pytest.mark.parametrize("checks", [True, "collect"])
def test_no_room_for_the_shadow_is_said_so(monkeypatch, paged, checks):
    monkeypatch.setattr(pages, "SPARE", 0)
    monkeypatch.setattr(pages, "left", lambda: 1 << 16)
    data = np.zeros(1 << 22, np.uint8)
    with pytest.raises(EmulationError) as caught:
        run_ptx(BYTES, "k", 8, 512, [data, 1024], checks=checks)
    error = caught.value
    assert error.message == "There is no memory left to check this launch" and error.kind == "limit"
    assert error.hint == "run it with checks=False, or on smaller arrays"
    assert "no room for" in error.values["asked for"] and error.values["PTX line"].endswith("ld.global.u8 %r2, [%d1]")
    assert run_ptx(BYTES, "k", 8, 512, [data, 1024], checks=False).ok


def test_no_memory_without_checks(monkeypatch):
    text = BYTES.replace("{ .reg", "{ .local .align 16 .b8 big[1073741824]; .reg", 1).replace(
        "add.u32 %r2, %r2, %r1;", "st.local.u32 [big+64], %r1; ld.local.u32 %r2, [big+64];"
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (64 * GIB, hard))
    try:
        with pytest.raises(EmulationError) as caught:
            run_ptx(text, "k", 8, 512, [np.zeros(1 << 22, np.uint8), 1024], checks=False)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert caught.value.message == "There is no memory left to run this launch"
    assert caught.value.hint == "run it on smaller arrays, or with fewer blocks"


def test_what_the_system_says_of_its_memory(tmp_path):
    assert left(tmp_path) > 1 << 50  # it says nothing
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:  8000000 kB\nMemAvailable:   1000000 kB\nHugePages_Total: 0\n")
    assert left(tmp_path) == 1024_000_000 - pages.SPARE
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("900000000\n")
    assert left(tmp_path) == 1024_000_000 - pages.SPARE
    (group / "memory.max").write_text("1000000000\n")
    (group / "memory.stat").write_text("anon 5\ninactive_file 300000000\n")
    assert left(tmp_path) == 400_000_000 - pages.SPARE
    (group / "memory.current").write_text("1400000000\n")
    assert left(tmp_path) == 0


def test_tables_keep_their_entries():
    table = resized(np.arange(5), 9)
    assert table.tolist() == [0, 1, 2, 3, 4, 0, 0, 0, 0] and resized(table, 9) is table and resized(table, 3) is table
