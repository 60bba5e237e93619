"""A compilation's way through the cache.

There are two keys. The *record* is found by what is known before tracing: everything that the function can reach. It
names a traced *program*, and under that lies the compiled function. Where no record can be made, because the function
reaches what no digest covers, or where there is none yet, the function is traced and its program looked up. So an edit
that changes no code, a comment or another helper, costs the tracing alone.

    with Turn(made) as turn:
        found = turn.before_tracing()
        ...trace...
        found = turn.after_tracing(job, program)
        ...compile...
        turn.keep(job, artifact)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Literal

from tilewright.base import notices, patched
from tilewright.compiler.cache import keys, toolkit
from tilewright.compiler.cache.effects import EffectsError, apply, effects
from tilewright.compiler.cache.entry import DamagedError, Entry, entry_bytes, sealed, unsealed
from tilewright.compiler.cache.locks import lock
from tilewright.compiler.cache.reach import Reach
from tilewright.compiler.cache.store import Kind, Store, current_store
from tilewright.compiler.cache.unprovable import UnprovableError
from tilewright.compiler.memory_cache import MemoryCache
from tilewright.compiler.plan import Plan
from tilewright.targets.artifact import Artifact
from tilewright.targets.job import Job

_PLAIN: Final = (type(None), bool, int, float, str)
_memory: Final[MemoryCache[bytes]] = MemoryCache(limit=512)


@dataclass(frozen=True)
class Hit:
    """A compiled function that was found. `result` is what the traced function returned; `program` is its key."""

    entry: Entry
    result: Any
    program: str
    where: Literal["memory", "disk"]


class Turn:
    """One compilation, from the first look into the cache until it is kept. Others with its key wait meanwhile."""

    def __init__(self, made: Plan, enabled: bool = True) -> None:
        self._made = made
        self.enabled = enabled
        self._locks = ExitStack()
        self._store: Store | None = None
        self._compiler = ""
        self._tools = ""
        self._record = ""
        self._program = ""
        self._reach: Reach | None = None
        self._effects = ""
        self._still_valid: Callable[[], bool] | None = None
        self._passes_valid: Callable[[], bool] | None = None
        self._notices = notices.given()
        self.reason = ""
        """Why no record can be made, "" where one can."""

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, *error: object) -> None:
        self._locks.close()

    @property
    def program(self) -> str:
        """The key of the traced program; "" where it is not known, or there can be none."""
        return self._program

    @property
    def still_valid(self) -> Callable[[], bool] | None:
        """Whether tracing would give the same program again; None where only tracing can tell."""
        return self._still_valid

    def before_tracing(self) -> Hit | None:
        """The function as it was compiled before, if nothing that it reaches has changed."""
        if not self.enabled:
            return None
        self._open()
        try:
            reach = keys.plan_reach(self._made, self._compiler)
            self._record = reach.digest().hex()
        except UnprovableError as error:
            self.reason = str(error)
            return None
        self._reach = reach
        self._still_valid = reach.watch.still_valid()
        found = self._recorded()
        if found is None and self._store is not None:
            self._lock(self._record)
            found = self._recorded()  # another process may have compiled it while this one waited
        return found

    def after_tracing(self, job: Job, program: bytes) -> Hit | None:
        """The traced program as it was compiled before; `program` is its bytecode, with its source lines."""
        if not self.enabled:
            return None
        self._check_record(job)
        try:
            reach = keys.program_reach(self._made, self._compiler, program)
            self._program = reach.digest().hex()
        except UnprovableError as error:
            self.reason = self.reason or str(error)
            return None
        self._passes_valid = reach.watch.still_valid()
        found = self._entry(self._program, None)
        if found is None and self._store is not None:
            self._lock(self._program)
            found = self._entry(self._program, None)
        if found is not None:
            self._write_record(job.result)
        return found

    def keep(self, job: Job, artifact: Artifact) -> None:
        """Keep what was compiled, unless it depends on more than its keys say."""
        if not self._program or self._passes_valid is None or not self._passes_valid():
            return
        if self._notices != notices.given() or patched.STATE["changes"] != self._changes:
            return  # whoever compiles the same is to be warned as well
        if self._store is not None and self._compiler != toolkit.digest(self._store.folder):
            self._store = None  # our sources change under this process
        data = entry_bytes(self._program, artifact, job)
        self._write("entries", self._program, data)
        self._write_record(job.result)

    def _open(self) -> None:
        """Find out which compiler this is, and where its cache lies."""
        self._changes = patched.STATE["changes"]
        self._store = current_store()
        digest = toolkit.digest(self._store.folder) if self._store is not None else None
        if digest is None:  # what this process runs is known to itself alone
            self._store, digest = None, f"this process, {self._changes}"
        self._compiler = digest
        self._tools = keys.tools_key(self._made)

    def _check_record(self, job: Job) -> None:
        """Make no record where tracing changed what it reads, warned, or returned what cannot be written down."""
        if not self._record:
            return
        if self._notices != notices.given():
            self.reason = "warnings were given while it was traced"
        elif job.returns_runtime or not _is_plain(job.result):
            self.reason = "it returns an object"
        elif self._still_valid is not None and not self._still_valid():
            self.reason = self._difference()
            if self.reason and self._only_effects():
                self.reason, self._still_valid = "", None
        if self.reason:
            self._record, self._still_valid = "", None

    def _difference(self) -> str:
        """Why tracing gives another digest than before; "" where it does not."""
        try:
            reach = keys.plan_reach(self._made, self._compiler)
            same = reach.digest().hex() == self._record
        except UnprovableError as error:
            return str(error)
        self._still_valid = reach.watch.still_valid()
        return "" if same else "tracing changes what it reads"

    def _only_effects(self) -> bool:
        """Whether tracing changed attributes only, such as a hit can set again."""
        assert self._reach is not None
        if not self._reach.watch.still_valid(objects=False)():
            return False
        try:
            self._effects = effects(self._reach.watch, self._reach.met)
        except EffectsError as error:
            self.reason = str(error)
            return False
        return True

    def _lock(self, key: str) -> None:
        assert self._store is not None
        self._locks.enter_context(lock(self._store.folder / "locks" / key))

    def _file(self, key: str) -> str:
        return f"{key}.{self._tools}"

    def _recorded(self) -> Hit | None:
        for _, name, data in self._candidates("records", self._record):
            try:
                record = json.loads(unsealed(data))
                if record["key"] != self._record:
                    raise DamagedError("it is the record of another key")
                program, result = str(record["program"]), _plain(record["result"])
                left = str(record["effects"])
            except (DamagedError, ValueError, KeyError, TypeError) as error:
                self._drop("records", name, error)
                continue
            found = self._entry(program, result)
            if found is not None and self._applied(left):
                _memory.put(("records", self._file(self._record)), data)
                return found
        return None

    def _applied(self, left: str) -> bool:
        """Do what tracing did; False where this process cannot."""
        assert self._reach is not None
        try:
            if left and apply(left, self._reach.met):
                self._still_valid = None
        except EffectsError:
            return False
        return True

    def _entry(self, program: str, result: Any) -> Hit | None:
        for where, name, data in self._candidates("entries", program):
            try:
                entry = Entry.read(data, program)
            except DamagedError as error:
                self._drop("entries", name, error)
                continue
            _memory.put(("entries", self._file(program)), data)
            return Hit(entry, result, program, where)
        return None

    def _candidates(self, kind: Kind, key: str) -> Any:
        """What is kept under a key: of this process, of these tools; where tools are missing, of any."""
        kept = _memory.get((kind, self._file(key)))
        if kept is not None:
            yield "memory", self._file(key), kept
        if self._store is None:
            return
        names = [self._file(key)] if self._tools else self._store.keys(kind, f"{key}.")
        for name in names:
            data = self._store.read(kind, name)
            if data is not None:
                yield "disk", name, data

    def _drop(self, kind: Kind, name: str, error: Exception) -> None:
        _memory.remove((kind, name))
        if self._store is not None:
            self._store.warn(self._store.path(kind, name), str(error))
            self._store.remove(kind, name)

    def _write_record(self, result: Any) -> None:
        if not self._record or not self._program:
            return
        record = {"key": self._record, "program": self._program, "result": _written(result), "effects": self._effects}
        self._write("records", self._record, sealed(json.dumps(record).encode()))

    def _write(self, kind: Kind, key: str, data: bytes) -> None:
        _memory.replace((kind, self._file(key)), data)
        if self._store is not None:
            self._store.write(kind, self._file(key), data)


def forget() -> None:
    """Empty the cache in memory."""
    _memory.clear()


def in_memory() -> dict[Any, bytes]:
    """What the cache in memory holds, by kind and key."""
    return _memory.items()


def remember(found: Mapping[Any, bytes]) -> None:
    """Take what the cache in memory of another process held."""
    for key, data in found.items():
        _memory.put(key, data)


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return type(value) in _PLAIN


def _written(value: Any) -> Any:
    """A plain value as JSON, which has no tuples."""
    return {"tuple": [_written(item) for item in value]} if isinstance(value, tuple) else value


def _plain(value: Any) -> Any:
    return tuple(_plain(item) for item in value["tuple"]) if isinstance(value, dict) else value
