"""Files that are damaged, foreign or cannot be written, and processes that are killed: the function is compiled, and
nothing wrong is loaded."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
import warnings

import pytest

from tests.compiler.cache.programs import compiled, forget
from tilewright.compiler.cache import entry
from tilewright.compiler.cache.store import CacheWarning, Store


def files(folder, kind):
    return sorted((folder / "v1" / kind).glob("*/*"))


def store(folder):
    return Store(folder, 1 << 30)


def whole(folder) -> int:
    """The number of files; all of them are as they were written."""
    found = store(folder).files()
    for file in found:
        assert entry.unsealed(file.path.read_bytes())
    return len(found)


def damaged(data: bytes, way: str, dice: random.Random) -> bytes:
    if way == "empty":
        return b""
    if way == "text":
        return b"nothing of ours\n" * 10
    if way == "cut":
        return data[: dice.randrange(1, len(data))]
    if way == "longer":
        return data + b"x"
    place = dice.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << dice.randrange(8))]) + data[place + 1 :]


@pytest.mark.parametrize("kind", ["entries", "records"])
@pytest.mark.parametrize("way", ["empty", "text", "cut", "longer", "flipped"])
def test_damaged_files(cache_dir, kind, way):
    compiled(3)
    dice = random.Random(f"{kind} {way}")
    for _ in range(6):
        (file,) = files(cache_dir, kind)
        file.write_bytes(damaged(file.read_bytes(), way, dice))
        forget()
        with pytest.warns(CacheWarning, match=f"the cache does not use .*{file.name}: it"):
            made = compiled(3)
        assert made.cached == ("" if kind == "entries" else "disk")  # without a record the traced program finds it
        forget()
        assert compiled(3).cached == "disk"


def test_a_file_under_the_name_of_another(cache_dir):
    compiled(3)
    (three,) = files(cache_dir, "entries")
    compiled(4)
    (four,) = set(files(cache_dir, "entries")) - {three}
    four.write_bytes(three.read_bytes())
    forget()
    with pytest.warns(CacheWarning, match="it is the entry of another key"):
        assert compiled(4).cached == ""


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_files_that_others_may_write(cache_dir, mode):
    compiled(3)
    (file,) = files(cache_dir, "entries")
    file.chmod(mode)
    forget()
    with pytest.warns(CacheWarning, match="it is another user's, or others may write to it"):
        assert compiled(3).cached == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_files_of_other_users(cache_dir, what):
    compiled(3)
    (file,) = files(cache_dir, "entries")
    os.chown(file if what == "file" else cache_dir / "v1", 65534, -1)
    forget()
    from tilewright.compiler.cache import store as module

    module._stores.clear()  # as in a new process
    with pytest.warns(CacheWarning, match="it is another user's, or others may write to it"):
        assert compiled(3).cached == ""


def test_links_are_not_followed(cache_dir, tmp_path):
    compiled(3)
    (file,) = files(cache_dir, "entries")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    forget()
    with pytest.warns(CacheWarning, match="Too many levels of symbolic links"):
        assert compiled(3).cached == ""


def test_a_folder_that_is_a_file(cache_dir):
    cache_dir.write_text("no folder\n")
    with pytest.warns(CacheWarning, match="the cache does not use .*v1: Not a directory"):
        assert compiled(3).cached == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert compiled(4).cached == ""


def test_a_folder_that_cannot_be_written(cache_dir):
    (cache_dir / "v1").mkdir(parents=True, mode=0o700)
    for name in ("entries", "locks"):
        (cache_dir / "v1" / name).write_text("in the way\n")
    with pytest.warns(CacheWarning, match="nothing can be written there: Not a directory"):
        assert compiled(3).cached == ""
    assert compiled(3).cached == "memory"


def in_child(work) -> int:
    """The exit status of a forked process that does `work`; 0 where it gives True."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_full_disk(cache_dir):
    """As far as a limit on the size of files is one: a write ends in its midst."""

    def work():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            made = [compiled(factor).cached for factor in (3, 3, 4)]
        said = [str(item.message) for item in given if item.category is CacheWarning]
        return made == ["", "memory", ""] and len(said) == 1 and "File too large" in said[0]

    assert in_child(work) == 0
    assert whole(cache_dir) == 0
    assert compiled(3).cached == ""
    assert not list((cache_dir / "v1").rglob(".*"))


def test_killed_at_any_moment(cache_dir):
    begin = time.perf_counter()
    compiled(2)
    took = time.perf_counter() - begin
    dice = random.Random(50)
    forget()
    for number in range(50):
        child = os.fork()
        if child == 0:
            compiled(100 + number)
            os._exit(0)
        time.sleep(dice.random() * 1.5 * took)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        whole(cache_dir)
    for number in range(0, 50, 10):
        compiled(100 + number)  # no lock is held by the dead
    assert whole(cache_dir) >= 10


def test_eight_processes_compile_once(cache_dir):
    pipes = []
    for _ in range(8):
        out, into = os.pipe()
        if os.fork() == 0:
            os.write(into, (compiled(9).cached or "compiled").encode())
            os._exit(0)
        os.close(into)
        pipes.append(out)
    found = [os.read(pipe, 100).decode() for pipe in pipes]
    for pipe in pipes:
        os.close(pipe)
        os.wait()
    assert sorted(found) == ["compiled", *["disk"] * 7]


def test_the_least_used_goes(cache_dir, monkeypatch):
    compiled(2)
    size = sum(file.size for file in store(cache_dir).files())
    monkeypatch.setenv("TILEWRIGHT_CACHE_SIZE", str(6 * size))
    for factor in range(3, 15):
        compiled(factor)
        forget()
        assert compiled(2).cached == "disk"  # used each time
        time.sleep(0.02)
        assert sum(file.size for file in store(cache_dir).files()) <= 6 * size
    forget()
    assert compiled(14).cached == "disk"
    forget()
    assert compiled(3).cached == ""


@pytest.mark.parametrize("text", ["-1", "many", "1X"])
def test_sizes_that_are_none(cache_dir, monkeypatch, text):
    from tilewright import CompileError

    monkeypatch.setenv("TILEWRIGHT_CACHE_SIZE", text)
    with pytest.raises(CompileError, match=f"TILEWRIGHT_CACHE_SIZE='{text}' is not valid"):
        compiled(3)


def test_files_left_unfinished_go_after_a_day(cache_dir):
    compiled(3)
    (file,) = files(cache_dir, "entries")
    left = [file.with_name(f".{name}.1.1") for name in ("old", "new")]
    for path in left:
        path.write_bytes(b"half")
    os.utime(left[0], (time.time() - 90_000, time.time() - 90_000))
    store(cache_dir).files()
    assert [path.exists() for path in left] == [False, True]
