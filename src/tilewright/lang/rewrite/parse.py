"""`ast.parse` for several threads.

CPython before 3.13 counts the depth of the tree under construction in one place for all threads
(python/cpython#106905). A finalizer that runs in the middle lets another thread in, the counts of both are off, and
correct source raises SystemError.
"""

from __future__ import annotations

import ast
import threading

_ATTEMPTS = 20  # code outside this module can parse at the same time
_lock = threading.RLock()  # re-entrant: a finalizer may parse too


def parse(text: str, file: str = "<unknown>") -> ast.Module:
    """The tree of `text`; raises SyntaxError as `ast.parse` does."""
    with _lock:
        for _ in range(_ATTEMPTS):
            try:
                return ast.parse(text, file)
            except SystemError as error:
                if "recursion depth mismatch" not in str(error):
                    raise
        return ast.parse(text, file)
