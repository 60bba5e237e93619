"""Messages of the Debug Adapter Protocol: JSON behind a header that gives its length.

https://microsoft.github.io/debug-adapter-protocol, "Base Protocol".
"""

from __future__ import annotations

import json
import threading
from typing import Any, BinaryIO

from tilewright.base.errors import ArgumentError

Message = dict[str, Any]


class Channel:
    """A pair of byte streams that carry messages."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source, self._target = source, target
        self._lock = threading.Lock()
        self._sequence = 0

    def read(self) -> Message | None:
        """The next message; None at the end of the stream.

        Raises:
            ArgumentError: what comes is no message.
        """
        length = -1
        while line := self._source.readline():
            name, _, value = line.decode("ascii", "replace").partition(":")
            if name.strip().lower() == "content-length" and value.strip().isdigit():
                length = int(value)
            elif not line.strip():
                break
        if not line:
            return None
        if length < 0:
            raise ArgumentError("a message of the Debug Adapter Protocol begins with Content-Length")
        body = self._source.read(length)
        if len(body) < length:
            return None
        try:
            message = json.loads(body)
        except ValueError as error:
            raise ArgumentError(f"a message of the Debug Adapter Protocol is JSON: {error}") from error
        if not isinstance(message, dict):
            raise ArgumentError("a message of the Debug Adapter Protocol is a JSON object")
        return message

    def respond(self, request: Message, body: Message | None = None) -> None:
        """Answer a request."""
        self._send({"type": "response", **_answered(request), "success": True, "body": body or {}})

    def refuse(self, request: Message, text: str, shown: bool = True) -> None:
        """Say what is wrong with a request; `shown` asks the client to show it to the user."""
        error = {"id": 1, "format": text.replace("{", "{{").replace("}", "}}"), "showUser": shown}
        self._send(
            {"type": "response", **_answered(request), "success": False, "message": text, "body": {"error": error}}
        )

    def event(self, name: str, body: Message | None = None) -> None:
        """Tell the client of something."""
        self._send({"type": "event", "event": name, "body": body or {}})

    def _send(self, message: Message) -> None:
        with self._lock:
            self._sequence += 1
            data = json.dumps({"seq": self._sequence, **message}).encode()
            self._target.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
            self._target.flush()


def _answered(request: Message) -> Message:
    return {"request_seq": request.get("seq", 0), "command": request.get("command", "")}
