"""libNVVM in a process of its own, for text that the user wrote: an abort of the library is then an error.

The child reads a pickled `(ir_text, arch, opt_level, libraries, toolkit)` from standard input and writes a pickled
`(ptx, refusal)`; one of the two is None. A refusal is the message and the fields of a `CompileError`.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.targets.nvidia.toolkit.libnvvm import compile_ir

TIME_LIMIT: Final = 120.0
"""Seconds that the child may take."""

_CHILD: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tilewright.targets.nvidia.toolkit import libnvvm_child; libnvvm_child.main()"
)


def compile_ir_in_child(ir_text: str, arch: str, *, opt_level: int = 3, libraries: Sequence[bytes] = ()) -> str:
    """`libnvvm.compile_ir` in a child process.

    Raises:
        CompileError: as `compile_ir` does, or the child died.
    """
    command = [sys.executable, "-I", "-c", _CHILD, json.dumps(sys.path)]
    request = pickle.dumps((ir_text, arch, opt_level, list(libraries), settings.get("toolkit")))
    try:
        child = subprocess.run(command, input=request, capture_output=True, timeout=TIME_LIMIT, check=False)
    except subprocess.TimeoutExpired as error:
        raise CompileError(f"libNVVM took more than {TIME_LIMIT:g} s for the given text") from error
    if child.returncode:
        words = child.stderr.decode(errors="replace").strip()
        last = words.splitlines()[-1] if words else "without a word"
        raise CompileError(
            f"libNVVM ended its process: {last}", values={"exit status": child.returncode}, nvvm_error=words
        )
    ptx, refusal = pickle.loads(child.stdout)
    if refusal is not None:
        message, details = refusal
        raise CompileError(message, **details)
    return str(ptx)


def main() -> None:
    """Serve one request."""
    ir_text, arch, opt_level, libraries, toolkit = pickle.load(sys.stdin.buffer)
    answer: tuple[str | None, Any]
    try:
        with settings.scope(toolkit=toolkit):
            answer = compile_ir(ir_text, arch, opt_level=opt_level, libraries=libraries), None
    except CompileError as error:
        fields = ("values", "hint", "nvvm_error", "ir_context")
        answer = None, (error.message, {name: getattr(error, name) for name in fields})
    sys.stdout.buffer.write(pickle.dumps(answer))
    sys.stdout.buffer.flush()
