"""How the processes of the debugger find each other: a socket in a folder of the front end's own."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

EVERY = 0.05
"""Seconds between two looks whether a process that should connect still lives."""
Link = Connection[Any, Any] if hasattr(Connection, "__class_getitem__") else Connection


class Meeting:
    """The front end's end: processes connect to `address`."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="tilewright-debug-")
        self.address = str(Path(self._folder) / "meeting")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self.address)
        self._socket.listen(64)
        self._socket.settimeout(EVERY)

    def accept(self, alive: Callable[[], bool]) -> Any:
        """The next process that connects.

        Raises:
            EOFError: none has, and `alive` says that none will.
        """
        while True:
            living = alive()
            try:
                found, _ = self._socket.accept()
            except TimeoutError:
                if not living:
                    raise EOFError("the process has ended before it connected") from None
                continue
            found.setblocking(True)
            return Connection(found.detach())

    def fileno(self) -> int:
        """For `multiprocessing.connection.wait`: ready when a process wants to connect."""
        return self._socket.fileno()

    def close(self) -> None:
        """Nobody connects any more."""
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def connect(address: str) -> Any:
    """The other end."""
    made = socket.socket(socket.AF_UNIX)
    made.connect(address)
    return Connection(made.detach())
