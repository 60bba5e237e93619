"""What all tests share: hypothesis settings, a clean environment, the `gpu` mark, a check for left-over processes."""

import ctypes
import functools
import importlib
import os
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

# The same examples in every run; more by HYPOTHESIS_PROFILE=deep.
hypothesis_settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
hypothesis_settings.register_profile("deep", deadline=None, max_examples=5000)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

SETTING_PREFIXES = ("TILEWRIGHT_", "CUTE_DSL_", "CUTLASS_")
GPU_FOLDER = Path(__file__).parent / "gpu"
GRACE_SECONDS = 3.0
LEFT_OVER = pytest.StashKey[list[str]]()
# Helpers that live as long as the interpreter; tests/nvidia/test_jitlink.py checks that ours ends with it.
PERMANENT = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "jitlink_child.py")


def pytest_addoption(parser):
    """How long the random programs of tests/gpu may take."""
    parser.addoption(
        "--random-programs-seconds",
        type=float,
        default=150.0,
        help="device tests: stop random programs after this long",
    )


def pytest_configure(config):
    """Tests see no settings of the shell that runs them; the verifier of stage `cute` is on, the cache is off.

    (So that tests test compilation; the fixture `cache_dir` gives a test a cache of its own.)
    """
    config.stash[LEFT_OVER] = []
    for name in [name for name in os.environ if name.startswith(SETTING_PREFIXES)]:
        del os.environ[name]
    os.environ["TILEWRIGHT_VERIFY"] = "1"
    os.environ["TILEWRIGHT_NO_CACHE"] = "1"
    os.environ["TILEWRIGHT_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"tilewright-tests-{os.getpid()}")
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # else torch.compile leaves a pool of processes behind


@pytest.fixture
def cache_dir(tmp_path, monkeypatch):
    """A cache on disk for one test, which begins with nothing in memory."""
    return own_cache(monkeypatch, tmp_path / "cache")


@pytest.fixture(scope="module")
def module_cache(tmp_path_factory):
    """A cache on disk for the tests of a module."""
    with pytest.MonkeyPatch.context() as patch:
        yield own_cache(patch, tmp_path_factory.mktemp("cache"))


def own_cache(patch, folder):
    """Let `folder` be the cache until `patch` is undone."""
    patch.delenv("TILEWRIGHT_NO_CACHE")
    patch.setenv("TILEWRIGHT_CACHE_DIR", str(folder))
    keys = importlib.import_module("tilewright.compiler.cache.keys")
    for module, name in keys.REGISTRIES:  # what earlier tests registered may be beyond a key
        table = getattr(sys.modules.get(module), name, {})
        for key in [key for key, value in table.items() if keys.from_user(value)]:
            patch.delitem(table, key)
    return folder


def pytest_collection_modifyitems(items):
    """Tests in tests/gpu carry the `gpu` mark; where there is no GPU they are skipped with the reason."""
    for item in items:
        if item.path.is_relative_to(GPU_FOLDER):
            item.add_marker("gpu")
    gpu_items = [item for item in items if item.get_closest_marker("gpu")]
    reason = missing_gpu() if gpu_items else ""
    for item in gpu_items:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@functools.cache
def missing_gpu() -> str:
    """Why no CUDA device can be used here; empty when one can. Asks the driver, needs no framework."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1) on this machine"
    status = driver.cuInit(0)
    if status != 0:
        return f"the NVIDIA driver does not start (cuInit gives {status})"
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    return "" if count.value > 0 else "the NVIDIA driver sees no device"


def children() -> dict[int, str]:
    """Living child processes of this one: pid and command line. Empty where there is no /proc."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rsplit(")", 1)[1].split()[:2]
            command = (status.parent / "cmdline").read_text().replace("\0", " ").strip()
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z" and not any(name in command for name in PERMANENT):
            found[int(status.parent.name)] = command
    return found


def is_controller(config) -> bool:
    """Whether this process only hands tests out to xdist workers."""
    return bool(getattr(config.option, "numprocesses", None)) and not hasattr(config, "workerinput")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """A test that leaves a child process behind fails the run, in workers too."""
    config = session.config
    if not is_controller(config):
        deadline = time.monotonic() + GRACE_SECONDS
        while (left := children()) and time.monotonic() < deadline:
            time.sleep(0.05)
        config.stash[LEFT_OVER] += [f"{pid} {command}" for pid, command in left.items()]
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_over"] = config.stash[LEFT_OVER]
    elif config.stash[LEFT_OVER] and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Collect what a worker found."""
    output = getattr(node, "workeroutput", None) or {}
    node.config.stash[LEFT_OVER] += output.get("left_over", [])


def pytest_terminal_summary(terminalreporter, config):
    """Name the processes that tests left behind."""
    if config.stash[LEFT_OVER]:
        terminalreporter.section("processes left behind by tests", red=True)
        for line in config.stash[LEFT_OVER]:
            terminalreporter.write_line(line)
