"""One native function in front of several: it takes the arguments of a call and calls the one that was chosen for such.

A kernel library compiles a function for each combination of element types, lengths and alignments. Looking these up in
Python takes longer than the call itself: `Router` does it in native code (`llvm/route.ll`), and also shows tensors of
any number of modes as the matrices that the functions take, where they are that in memory.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.targets.host import abi
from tilewright.targets.host.function import HostFunction

MATRIX, FREE_MATRIX, COLUMNS, STRIDED, NUMBER, CONSTANT = abi.ROUTE_KINDS
"""Kinds of arguments, in this order: a tensor (..., n) whose elements along n are neighbours, passed as (rows, n); the
same with a number of rows of its own; a tensor (n) of neighbours; a tensor (...) of any strides, passed as (rows); a
number, which does not matter to the choice; an int or bool that is compiled in, and not passed on. None in the place of
a tensor is not passed on either."""

MOST_FUNCTIONS = 64


class Router:
    """Functions that are chosen among by the facts of the arguments: types, extents, strides, alignment.

    A call does nothing, and says so, where no function was added for such arguments: its caller then chooses one and
    adds it. At most `MOST_FUNCTIONS` are added.
    """

    def __init__(self, kinds: Sequence[str]) -> None:
        words = abi.ROUTE_FACTS * len(kinds)
        self._key_type: Any = ctypes.c_int64 * words
        self._entries = (ctypes.c_int64 * (MOST_FUNCTIONS * (1 + words)))()
        head = len(kinds), 0, ctypes.addressof(self._entries)
        self._route = (ctypes.c_int64 * (abi.ROUTE_FIRST_KIND + len(kinds)))(*head, *map(abi.ROUTE_KINDS.index, kinds))
        self._lock = threading.Lock()
        self._held: list[HostFunction] = []
        self.call: Callable[..., Any] = _nothing_added
        """Call it with the arguments. It gives None where it has made the call, and True where it has not: no function
        was added for such arguments, or matrices differ in their rows or are empty. Its errors are tvm-ffi's."""

    def add(self, function: HostFunction, arguments: Sequence[Any]) -> bool:
        """Let calls with arguments like these go to `function`.

        False where that is not possible: the table is full, or a tensor is no matrix in memory.
        """
        with self._lock:
            count = len(self._held)
            key = self._key_type()
            address = ctypes.addressof(self._route)
            tell = function.support_function("__tw_facts")
            if count == MOST_FUNCTIONS or not tell(address, ctypes.addressof(key), *arguments):
                return False
            start = count * (1 + len(key))
            self._entries[start : start + 1 + len(key)] = [function.address, *key]
            self._held.append(function)
            self._route[1] = count + 1  # from now on the entry is seen
            if count == 0:
                self.call = functools.partial(function.support_function("__tw_route"), address)
            return True


def _nothing_added(*_: Any) -> bool:
    return True
