"""What is found in the cache is what compiling makes, in this process and in others."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.cache.programs import compiled, forget, numbers, run, scale
from tests.compiler.support import double, floats
from tilewright.base import settings
from tilewright.compiler import hooks
from tilewright.compiler.cache import toolkit
from tilewright.targets.artifact_bytes import to_bytes

OTHER_PROCESS = """
import sys
from tests.compiler.cache.programs import compiled, numbers, scale
made = compiled(3)
x = numbers()
scale(x, 3)
print(made.cached, x[1], "mlir.ir" in sys.modules)
"""

WITHOUT_MLIR = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mlir", "llvm"):
            raise ImportError(name + " is not installed")
sys.meta_path.insert(0, Blocker())
"""


def test_first_memory_then_disk_then_no_cache(cache_dir):
    assert compiled(3).cached == ""
    assert compiled(3).cached == "memory"
    forget()
    assert compiled(3).cached == "disk"
    assert compiled(3, no_cache=True).cached == ""
    assert compiled(4).cached == ""


def test_off_by_settings(cache_dir, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_NO_CACHE", "1")
    assert [compiled(3).cached for _ in range(2)] == ["", ""]
    assert not cache_dir.exists()
    monkeypatch.delenv("TILEWRIGHT_NO_CACHE")
    monkeypatch.setenv("CUTE_DSL_DISABLE_FILE_CACHING", "1")
    assert [compiled(3).cached for _ in range(2)] == ["", "memory"]
    assert not cache_dir.exists()


@pytest.mark.parametrize(
    "variable", ["TILEWRIGHT_CACHE_DIR", "CUTE_DSL_CACHE_DIR", "CUTLASS_CACHE_DIR", "XDG_CACHE_HOME"]
)
def test_where_it_lies(cache_dir, tmp_path, monkeypatch, variable):
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR")
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    compiled(3)
    forget()
    assert compiled(3).cached == "disk"
    folder = tmp_path / "elsewhere" / ("tilewright" if variable.startswith("XDG") else "") / "v1"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.rglob("*") if file.parent.parent.name == "entries"} == {
        0o600
    }


def test_other_processes_find_it_without_mlir(cache_dir):
    assert run(OTHER_PROCESS) == " 3 True\n"
    assert run(OTHER_PROCESS) == "disk 3 False\n"
    assert run(WITHOUT_MLIR + OTHER_PROCESS) == "disk 3 False\n"
    assert run("import sys; sys.flags.hash_randomization\n" + OTHER_PROCESS, PYTHONHASHSEED="7") == "disk 3 False\n"


CELL = """
import linecache, os
text = '''
import numpy as np
import tilewright.cute as cute
@cute.kernel
def kernel(x: cute.Tensor):
    x[9] = 1.0
@cute.jit
def beyond(x: cute.Tensor):
    kernel(x).launch(grid=1, block=1)
x = np.zeros(8, np.float32)
made = cute.compile(beyond, x)
'''
file = f"/tmp/ipykernel_{os.getpid()}/1234.py"
linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
names = {"__name__": "__main__"}
exec(compile(text, file, "exec"), names)
print(names["made"].cached)
try:
    names["made"](names["x"])
except Exception as error:
    print(str(error).splitlines()[1].strip())
"""


def test_a_notebook_finds_it_after_a_restart(cache_dir):
    """Jupyter names the files of cells by the process; errors show the line of this process's cell."""
    line = "/tmp/ipykernel/1234.py:6   x[9] = 1.0\n"
    assert run(CELL) == "\n" + line
    assert run(CELL) == "disk\n" + line


def test_direct_calls_and_compile_share_it(cache_dir):
    made = []
    with hooks.after_compile(made.append):
        x = numbers()
        scale(x, 3)
        compiled(3)
        forget()
        scale(x, 3)
    assert x.tolist() == [9 * n for n in range(8)]
    assert len(made) == 1


def test_everything_that_an_executor_shows(cache_dir):
    first = cute.compile(double, *floats(), options="--keep-ptx --dump-dir " + str(cache_dir.parent / "one"))
    forget()
    found = cute.compile(double, *floats(), options="--keep-ptx --dump-dir " + str(cache_dir.parent / "two"))
    assert (first.cached, found.cached) == ("", "disk")
    for stage in first.stages:
        assert found.stages[stage] == first.stages[stage], stage
        if stage != "python":
            assert found.kernels["double_kernel"].stages[stage] == first.kernels["double_kernel"].stages[stage]
    assert str(found.report()) == str(first.report())
    assert found.pipeline == first.pipeline
    made = ("python", "cute", "nvvm", "llvm", "ptx")  # the others were made when they were asked for
    assert [found.timings[name] for name in made] == [first.timings[name] for name in made]
    assert str(found.source_map) == str(first.source_map)
    assert found.host_llvm == first.host_llvm
    assert [found.kernels["double_kernel"].stages["python"]] == [first.kernels["double_kernel"].stages["python"]]
    names = [sorted(file.name for file in (cache_dir.parent / folder).iterdir()) for folder in ("one", "two")]
    assert names[0] == names[1] != []
    assert found.artifact.options.dump_dir.endswith("two")


def test_artifacts_are_equal(cache_dir):
    first = compiled(3)
    forget()
    assert to_bytes(compiled(3).artifact) == to_bytes(first.artifact)


def test_options_that_change_code_and_others(cache_dir):
    assert compiled(3).cached == ""
    assert compiled(3, options="--opt-level 1").cached == ""
    assert compiled(3, options="--keep-ptx --dump-dir " + str(cache_dir.parent)).cached == "memory"
    assert compiled(3, arch="sm_80").cached == ""
    assert compiled(3, checks=False).cached == "memory"


@pytest.mark.parametrize("name", ["llvm", "mlir", "ptxas", "nvJitLink", "libdevice.10.bc"])
def test_other_tools(cache_dir, monkeypatch, name):
    """Of another version: its file has another size or time."""
    compiled(3)
    kept = toolkit._version
    # Past `setattr`, which would turn the cache off: see base/patched.py.
    monkeypatch.setitem(vars(toolkit), "_version", lambda path: "another" if name in str(path) else kept(path))
    assert compiled(3).cached == ""


def test_another_compiler(cache_dir, monkeypatch):
    compiled(3)
    monkeypatch.setitem(toolkit._digests, toolkit.ROOT, "other sources")
    assert compiled(3).cached == ""


def test_threads(cache_dir):
    made = []
    with hooks.after_compile(lambda executor: made.append(executor)):
        found = []
        threads = [threading.Thread(target=lambda: found.append(in_thread())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == ["", "memory", "memory", "memory"] and len(made) == 1


def in_thread() -> str:
    with settings.scope(target="emu", arch="sm_90a"):
        return compiled(5).cached


def test_tensors_beyond_32_bits_have_a_form_of_their_own(cache_dir):
    for cached in ("", "memory"):
        made = cute.compile(double, *floats())
        assert made.cached == cached
        assert made.wide_form.get().cached == cached


def test_results_of_direct_calls_come_back(cache_dir):
    @cute.jit
    def answer(x: cute.Tensor, n: cutlass.Constexpr):
        return (n + 1, "text", None, (2.5, True))

    for _ in range(3):
        assert answer(numbers(), 4) == (5, "text", None, (2.5, True))
        forget()
    x, out = floats()
    double(x, out)
    np.testing.assert_array_equal(out, 2 * x)
