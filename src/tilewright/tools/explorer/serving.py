"""`tilewright explore --serve`: the page at a local address, compiled anew when a source file changes.

Each compilation is a process of its own, so that a changed module is read from its file and whatever a kernel does ends
no server.
"""

from __future__ import annotations

import functools
import http.server
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from tilewright.base.errors import ArgumentError
from tilewright.tools.console import console as make_console
from tilewright.tools.explorer.page import data_of

ADDRESS: Final = "127.0.0.1"
PERIOD: Final = 0.3
"""Seconds between two looks at the source files."""
WATCH: Final = "/state"
_PROGRAM: Final = "from tilewright.tools.cli import main; main()"
_EMPTY: Final = (
    "<!doctype html><meta charset='utf-8'><title>Tilewright explorer</title>"
    "<pre id='problem' style='white-space:pre-wrap;margin:2em'>compiling ...</pre>"
    "<script>setInterval(async () => { const state = await (await fetch('/state')).json();"
    "if (state.version) location.reload(); else if (state.problem)"
    "document.getElementById('problem').textContent = state.problem; }, 400);</script>"
)
"""What is shown before the first page is there."""


class Workshop:
    """Makes the page of a function, again whenever a file changes that it was made of."""

    def __init__(self, place: str, options: Sequence[str]) -> None:
        self.text = ""
        self.version = 0
        self.problem = ""
        self._place = place
        self._options = options
        self._files: list[Path] = [Path(place.rpartition(":")[0])]
        self._seen: dict[Path, int] = {}

    def look(self) -> bool:
        """Make the page where a file changed; whether one did."""
        seen = _times(self._files)
        if seen == self._seen:
            return False
        self._make()
        self._seen = {**_times(self._files), **{file: time for file, time in seen.items() if file in self._files}}
        return True

    def state(self) -> dict[str, Any]:
        """What the page asks for: its version, and why there is no newer one."""
        return {"version": self.version, "problem": self.problem}

    def _make(self) -> None:
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            file = Path(folder, "page.html")
            command = [sys.executable, "-c", _PROGRAM, "explore", self._place, *self._options, "-o", str(file)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                self.problem = done.stderr.strip() or f"the compilation ended with status {done.returncode}"
                return
            text = file.read_text(encoding="utf-8")
        own = {Path(item["path"]) for item in data_of(text)["files"]} | {self._files[0]}
        self._files = [self._files[0], *sorted(own - {self._files[0]})]
        self.problem, self.version = "", self.version + 1
        self.text = text.replace('data-watch=""', f'data-watch="{WATCH}"', 1)


def _times(files: Iterable[Path]) -> dict[Path, int]:
    """When each file was last changed; 0 for one that is gone."""
    found = {}
    for file in files:
        try:
            found[file] = file.stat().st_mtime_ns
        except OSError:
            found[file] = 0
    return found


class Handler(http.server.BaseHTTPRequestHandler):
    """Gives the page and its state to browsers on this machine."""

    def __init__(self, workshop: Workshop, *args: Any) -> None:
        self._workshop = workshop
        super().__init__(*args)

    def do_GET(self) -> None:
        """The page, or its state. Other names of this machine are refused, so that no other site reads sources."""
        host = (self.headers.get("Host") or "").partition(":")[0]
        if host not in (ADDRESS, "localhost"):
            self._send(403, "text/plain", "this server is for local browsers")
        elif self.path == WATCH:
            self._send(200, "application/json", json.dumps(self._workshop.state()))
        elif self.path == "/":
            self._send(200, "text/html", self._workshop.text or _EMPTY)
        else:
            self._send(404, "text/plain", "there is one page, at /")

    def _send(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""


def serve(place: str, options: Sequence[str], port: int) -> None:
    """Serve the page of `FILE:FUNCTION` until Ctrl-C.

    Raises:
        ArgumentError: the port is taken.
    """
    workshop = Workshop(place, options)
    try:
        server = http.server.ThreadingHTTPServer((ADDRESS, port), functools.partial(Handler, workshop))
    except OSError as error:
        raise ArgumentError(
            f"port {port} cannot be had: {error.strerror}", hint="--port 0 takes any free one"
        ) from error
    console = make_console()
    console.print(f"http://{ADDRESS}:{server.server_port}/  (Ctrl-C ends it)", highlight=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pause = threading.Event()
    try:
        while True:
            if workshop.look():
                console.print(workshop.problem or f"version {workshop.version}", highlight=False, markup=False)
            pause.wait(PERIOD)
    except KeyboardInterrupt:
        console.print("ended")
    finally:
        server.shutdown()
        server.server_close()
