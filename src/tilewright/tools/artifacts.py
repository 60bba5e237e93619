"""Writes the stages of a compilation to files that never overwrite another compilation's.

A file is called `<function>.<arch>.<ext>`. The folder's record says what `<function>.<arch>` was made from; when that
is something else (a function of the same name in another file, other arguments, other options), a short digest of
what it is made from goes between: `<function>.<arch>.<digest>.<ext>`. Compiling the same thing again overwrites its
own files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

RECORD = "tilewright-files.json"
DIGEST_LENGTH = 8


class ArtifactFolder:
    """A folder of stage files with its record. `extensions` has the file name extension of each stage."""

    def __init__(self, path: Path, extensions: Mapping[str, str]) -> None:
        self.path = path
        self._extensions = extensions
        self._record = self._read_record()

    def write(self, function: str, arch: str, stages: Mapping[str, str | bytes], made_from: str) -> list[Path]:
        """Write `stages` (name to content) and return their paths.

        `made_from` tells apart the compilations of one function for one arch: source, arguments, options.
        """
        stem = self._free_stem(f"{function}.{arch}", stages, made_from)
        self._record[stem] = made_from
        self.path.mkdir(parents=True, exist_ok=True)
        record = json.dumps(self._record, indent=2, sort_keys=True)
        (self.path / RECORD).write_text(record + "\n", encoding="utf-8")
        files = []
        for stage, content in stages.items():
            file = self.path / f"{stem}.{self._extensions[stage]}"
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
            files.append(file)
        return files

    def _free_stem(self, plain: str, stages: Mapping[str, str | bytes], made_from: str) -> str:
        if self._record.get(plain) == made_from:
            return plain
        taken = [stage for stage in stages if (self.path / f"{plain}.{self._extensions[stage]}").exists()]
        if plain not in self._record and not taken:
            return plain
        return f"{plain}.{hashlib.sha256(made_from.encode()).hexdigest()[:DIGEST_LENGTH]}"

    def _read_record(self) -> dict[str, str]:
        """The record; a missing or damaged one counts as empty, so that no file is taken for ours."""
        try:
            record = json.loads((self.path / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {str(stem): str(made) for stem, made in record.items()} if isinstance(record, dict) else {}
