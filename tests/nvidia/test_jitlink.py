"""nvJitLink in its own process: a crash, a hang, a fork or a signal costs a link, never the process."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from tilewright.base.errors import CompileError
from tilewright.targets.nvidia.toolkit import jitlink, toolchain
from tilewright.targets.nvidia.toolkit.assemble import assemble, prepare

PTX = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry nothing() { ret; }
"""
CRASHES = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int nvJitLinkVersion(unsigned *major, unsigned *minor) { *major = 13; *minor = 0; return 0; }
int nvJitLinkCreate(void **handle, unsigned count, const char **options) { *handle = &nvJitLinkCreate; return 0; }
int nvJitLinkDestroy(void **handle) { return 0; }
int nvJitLinkAddData(void *handle, int kind, const char *data, size_t size, const char *name) {
  puts("noise"), fflush(stdout);
  if (data[0] == 'e') exit(7);
  if (data[0] == 's') sleep(100);
  raise(SIGSEGV);
  return 0;
}
int nvJitLinkComplete(void *handle) { return 0; }
#define GET(name) int name##Size(void *handle, size_t *size) { *size = 0; return 0; } int name(void) { return 0; }
GET(nvJitLinkGetLinkedCubin) GET(nvJitLinkGetErrorLog) GET(nvJitLinkGetInfoLog)
"""


@pytest.fixture(scope="module")
def crashing(tmp_path_factory):
    """A library that crashes, ends its process or sleeps, as its input says."""
    folder = tmp_path_factory.mktemp("jitlink")
    source, library = folder / "crashes.c", folder / "libnvJitLink.so.13"
    source.write_text(CRASHES)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", str(source), "-o", str(library)], check=True)
    return library


@pytest.fixture
def linker():
    return toolchain.find("nvJitLink").path


def kernel(data=None):
    data = data or PTX.encode()
    return [jitlink.Input(jitlink.PTX, data, "kernel.ptx")]


@pytest.mark.parametrize(("data", "how"), [(b"crash", "by SIGSEGV"), (b"exit", "with status 7")])
def test_a_crash_is_an_error(crashing, data, how):
    for _ in range(2):
        with pytest.raises(
            CompileError, match=rf"nvJitLink 13\.0 ended {how}, which is a fault of nvJitLink"
        ) as caught:
            jitlink.link(crashing, kernel(data), ["-arch=sm_90a"])
        assert "install a newer nvidia-nvjitlink" in str(caught.value)


def test_a_link_that_hangs_is_ended(crashing, monkeypatch):
    assert jitlink.version(crashing) == (13, 0)
    monkeypatch.setattr(jitlink, "TIME_LIMIT", 0.05)
    with pytest.raises(CompileError, match=r"nvJitLink 13\.0 took more than 0\.05 s"):
        jitlink.link(crashing, kernel(b"sleep"), [])


def test_a_process_that_was_ended_is_replaced(linker):
    assert jitlink.link(linker, kernel(), ["-arch=sm_90a"]).status == 0
    for process in jitlink._idle[linker]:
        os.kill(process._child.pid, signal.SIGKILL)
        while process.alive:
            time.sleep(0.001)
    assert jitlink.link(linker, kernel(), ["-arch=sm_90a"]).status == 0


def test_one_process_serves_one_kernel_after_the_other(linker):
    jitlink.end_idle()
    prepare()
    prepare()
    (process,) = jitlink._idle[linker]
    for _ in range(3):
        assert assemble(PTX, "sm_90a", use_ptxas=False).data[:4] == b"\x7fELF"
    assert jitlink._idle[linker] == [process]


def test_threads_link_side_by_side(linker):
    made = []
    threads = [threading.Thread(target=lambda: made.append(assemble(PTX, "sm_90a").data[:4])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [b"\x7fELF"] * 4


def test_no_more_processes_wait_than_there_are_cores(linker, monkeypatch):
    jitlink.end_idle()
    monkeypatch.setattr(jitlink, "_KEPT", 1)
    with jitlink._borrowed(linker), jitlink._borrowed(linker):
        pass
    assert len(jitlink._idle[linker]) == 1


def test_a_forked_process_links_by_one_of_its_own(linker):
    assemble(PTX, "sm_90a", use_ptxas=False)
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if not jitlink._idle.get(linker) and assemble(PTX, "sm_90a").data else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert assemble(PTX, "sm_90a", use_ptxas=False).data


def test_no_process_is_left_behind():
    script = f"""
from tilewright.targets.nvidia.toolkit import jitlink, toolchain
from tilewright.targets.nvidia.toolkit.assemble import assemble
assemble({PTX!r}, "sm_90a", use_ptxas=False)
print(*[process._child.pid for process in jitlink._idle[toolchain.find("nvJitLink").path]])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not done.stderr
    (number,) = map(int, done.stdout.split())
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_python_that_does_not_start(monkeypatch, linker):
    jitlink.end_idle()
    monkeypatch.setattr(sys, "executable", "/no/python")
    with pytest.raises(CompileError, match="cannot start a process for nvJitLink"):
        jitlink.version(linker)
