"""The debugger for editors: a server of the Debug Adapter Protocol on stdin and stdout.

Threads of the protocol are threads of the GPU: the one in focus, the first of each warp of its block, and the first of
each group of threads that stand together elsewhere. What a run takes its time for happens in a thread of Python, so
that a client can pause it.
"""

from __future__ import annotations

import io
import os
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from tilewright.base.errors import ArgumentError, TilewrightError
from tilewright.tools.debugger.dap_messages import Channel, Message
from tilewright.tools.debugger.inspector import Named, Thread
from tilewright.tools.debugger.plan import Focus, Kind, Program, SourceLine, Stop
from tilewright.tools.debugger.session import Session
from tilewright.tools.debugger.shell import Shell

CAPABILITIES = {
    "supportsConfigurationDoneRequest": True, "supportsConditionalBreakpoints": True,
    "supportsFunctionBreakpoints": True, "supportsDataBreakpoints": True, "supportsStepBack": True,
    "supportsSteppingGranularity": True, "supportsEvaluateForHovers": True, "supportsExceptionInfoRequest": True,
    "supportsTerminateRequest": True, "supportsLoadedSourcesRequest": False,
}  # fmt: skip
REASONS = {"watch": "data breakpoint", "finding": "exception", "moment": "step", "beginning": "step"}
PER_BLOCK = 1024
MOST_THREADS = 256
PTX = 1
"""The reference of the PTX as a source."""
COMMANDS = frozenset((
    "threads", "thread", "warp", "layout", "barriers", "copies", "ptx", "registers", "variables", "where", "help",
))  # fmt: skip
"""Commands of the shell that the editor's console takes too."""


@dataclass(frozen=True)
class Scope:
    """What a reference of the protocol stands for: a group of names of a thread, or the elements of a tensor."""

    focus: Focus
    kind: str
    name: str = ""


class Server:
    """Serves one client."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._work: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._session: Session | None = None
        self._running = False
        self._scopes: list[Scope] = []
        self._frames: list[Focus] = []
        self._printed = ""
        self._stop_on_entry = self._stop_at_end = False

    def serve(self) -> None:
        """Answer requests until the client disconnects."""
        threading.Thread(target=self._read, daemon=True).start()
        try:
            while (work := self._work.get()) is not None:
                work()
        finally:
            if self._session is not None:
                self._session.close()

    def _read(self) -> None:
        try:
            while (message := self._channel.read()) is not None:
                if message.get("command") == "pause":
                    self._pause(message)
                else:
                    self._work.put(partial(self._handle, message))
                if message.get("command") in ("disconnect", "terminate"):
                    break
        except ArgumentError as error:
            self._channel.event("output", {"category": "stderr", "output": f"{error}\n"})
        if self._running and self._session is not None:
            self._session.pause()
        self._work.put(None)

    def _pause(self, request: Message) -> None:
        if self._session is not None and self._running:
            self._session.pause()
        self._channel.respond(request)

    def _handle(self, request: Message) -> None:
        method = getattr(self, f"_on_{request.get('command')}", None)
        try:
            if method is None:
                raise ArgumentError(f"the debugger has no request {request.get('command')}")
            method(request, request.get("arguments") or {})
        except TilewrightError as error:
            self._channel.refuse(request, str(error))

    @property
    def session(self) -> Session:
        """The session that runs.

        Raises:
            ArgumentError: nothing has been launched.
        """
        if self._session is None:
            raise ArgumentError("nothing has been launched", hint="the request launch comes first")
        return self._session

    # Beginning and end.

    def _on_initialize(self, request: Message, given: Message) -> None:
        self._channel.respond(request, CAPABILITIES)

    def _on_launch(self, request: Message, given: Message) -> None:
        """`program` is FILE:FUNCTION, `args` as `--arg`; `options arch seed checks release stopOnEntry stopAtEnd`."""
        release = bool(given.get("release"))
        options = str(given.get("options", ""))
        program = Program(
            str(given.get("program", "")), tuple(map(str, given.get("args", ()))),
            options if release else f"--opt-level 0 {options}", given.get("arch"), int(given.get("seed", 0)),
            bool(given.get("checks", True)), not release,
        )  # fmt: skip
        reading, writing = os.pipe()
        self._session = Session(program, output=writing)
        os.close(writing)
        threading.Thread(target=self._forward, args=(reading,), daemon=True).start()
        self._stop_on_entry, self._stop_at_end = bool(given.get("stopOnEntry")), bool(given.get("stopAtEnd"))
        self._session.start()
        self._channel.respond(request)
        self._channel.event("initialized")

    def _forward(self, reading: int) -> None:
        """What the program writes goes to the client."""
        with os.fdopen(reading, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                self._channel.event("output", {"category": "stdout", "output": line})

    def _on_configurationDone(self, request: Message, given: Message) -> None:
        self._channel.respond(request)
        if self._stop_on_entry:
            self._tell(self.session.stop)
        else:
            self._run(partial(self.session.go, "run"))

    def _on_disconnect(self, request: Message, given: Message) -> None:
        self._channel.respond(request)

    _on_terminate = _on_disconnect

    # Breakpoints.

    def _on_setBreakpoints(self, request: Message, given: Message) -> None:
        source = given.get("source", {})
        file = "ptx" if source.get("sourceReference") == PTX else str(source.get("path", ""))
        points = self.session.breakpoints
        for number in [n for n, point in points.items() if (point.file or "ptx") == file]:
            del points[number]
        made = [self._breakpoint(f"{file}:{item['line']}", item) for item in given.get("breakpoints", ())]
        self._channel.respond(request, {"breakpoints": made})

    def _on_setFunctionBreakpoints(self, request: Message, given: Message) -> None:
        made = [self._breakpoint(str(item["name"]), item) for item in given.get("breakpoints", ())]
        self._channel.respond(request, {"breakpoints": made})

    def _on_setExceptionBreakpoints(self, request: Message, given: Message) -> None:
        self._channel.respond(request)

    def _breakpoint(self, place: str, item: Message) -> Message:
        try:
            made = self.session.add_breakpoint(place, str(item.get("condition") or ""))
        except TilewrightError as error:
            return {"verified": False, "message": error.message}
        return {"id": made.number, "verified": True, "line": made.line}

    def _on_dataBreakpointInfo(self, request: Message, given: Message) -> None:
        name = str(given.get("name", ""))
        reference = given.get("variablesReference")
        if reference:
            scope = self._scopes[reference - 1]
            name = f"{scope.name}{name}" if scope.kind == "tensor" else name
        try:
            self.session.ask("watch", self.session.focus, name)
        except TilewrightError as error:
            self._channel.respond(request, {"dataId": None, "description": error.message})
            return
        self._channel.respond(
            request, {"dataId": name, "description": name, "accessTypes": ["write", "readWrite"], "canPersist": False}
        )

    def _on_setDataBreakpoints(self, request: Message, given: Message) -> None:
        self.session.watches.clear()
        made: list[Message] = []
        for item in given.get("breakpoints", ()):
            try:
                watch = self.session.add_watch(str(item["dataId"]), item.get("accessType") in ("read", "readWrite"))
                made.append({"id": watch.number, "verified": True})
            except TilewrightError as error:
                made.append({"verified": False, "message": error.message})
        self._channel.respond(request, {"breakpoints": made})

    # Running.

    def _run(self, move: Callable[[], Stop]) -> None:
        """Go on in a thread of Python; the stop comes back as work."""

        def run() -> None:
            try:
                stop = move()
            except TilewrightError as error:
                self._work.put(partial(self._stuck, error))
            else:
                self._work.put(partial(self._tell, stop))

        self._running = True
        self._scopes.clear()
        self._frames.clear()
        threading.Thread(target=run, daemon=True).start()

    def _stuck(self, error: TilewrightError) -> None:
        """The program could not go on: it stands where it stood."""
        self._channel.event("output", {"category": "console", "output": f"{error}\n"})
        self._tell(self.session.stop)

    def _move(self, request: Message, given: Message, kind: Kind, back: bool = False) -> None:
        if self._running:
            raise ArgumentError("the program runs", hint="pause it first")
        session = self.session
        if "threadId" in given and not session.stop.ended:
            session.focus = focus_of(int(given["threadId"]))
        chosen: Kind = "instruction" if given.get("granularity") == "instruction" else kind
        self._channel.respond(request, {"allThreadsContinued": True} if kind == "run" else {})
        self._run(partial(session.back if back else session.go, chosen))

    def _on_continue(self, request: Message, given: Message) -> None:
        self._move(request, {}, "run")

    def _on_next(self, request: Message, given: Message) -> None:
        self._move(request, given, "over")

    def _on_stepIn(self, request: Message, given: Message) -> None:
        self._move(request, given, "line")

    def _on_stepOut(self, request: Message, given: Message) -> None:
        self._move(request, given, "out")

    def _on_stepBack(self, request: Message, given: Message) -> None:
        self._move(request, given, "line", back=True)

    def _on_reverseContinue(self, request: Message, given: Message) -> None:
        self._move(request, {}, "run", back=True)

    def _tell(self, stop: Stop) -> None:
        """Tell the client of a stop, or of the end."""
        self._running = False
        if len(stop.printed) > len(self._printed):
            self._channel.event("output", {"category": "stdout", "output": stop.printed[len(self._printed) :]})
            self._printed = stop.printed
        if stop.ended:
            self._channel.event("output", {"category": "console", "output": f"{stop.message}\n"})
            if not self._stop_at_end:
                self._channel.event("exited", {"exitCode": int(stop.reason != "ended")})
                self._channel.event("terminated")
                return
        body = {
            "reason": "pause" if stop.ended else REASONS.get(stop.reason, stop.reason),
            "threadId": 1 if stop.ended else thread_id(self.session.focus), "allThreadsStopped": True,
            "hitBreakpointIds": list(stop.numbers),
        }  # fmt: skip
        if stop.ended or stop.message:
            body["description"] = "the program has ended" if stop.ended else stop.message.partition("\n")[0]
            body["text"] = stop.message
        self._channel.event("stopped", body)

    def _on_exceptionInfo(self, request: Message, given: Message) -> None:
        message = self.session.stop.message
        first = message.partition("\n")[0]
        self._channel.respond(
            request,
            {"exceptionId": first, "description": message, "breakMode": "always", "details": {"message": message}},
        )

    # Looking.

    def _on_threads(self, request: Message, given: Message) -> None:
        if self._running or self._session is None or self._session.stop.ended:
            self._channel.respond(request, {"threads": [{"id": 1, "name": "the program"}]})
            return
        found = list(dict.fromkeys(self._listed()))[:MOST_THREADS]
        self._channel.respond(request, {"threads": [{"id": thread_id(item), "name": named(item)} for item in found]})

    def _listed(self) -> Iterator[Focus]:
        """The threads that are shown."""
        focus = self.session.focus
        yield focus
        rows = self.session.ask("threads")
        for block, first, last, _, _, thread in rows:
            if block == focus.block:
                yield thread.focus
                yield from (Focus(block, 32 * warp) for warp in range(first + 1, last + 1))
        yield from (row[5].focus for row in rows if row[0] != focus.block)

    def _on_stackTrace(self, request: Message, given: Message) -> None:
        if self.session.stop.ended:
            self._channel.respond(request, {"stackFrames": [], "totalFrames": 0})
            return
        focus = focus_of(int(given.get("threadId", thread_id(self.session.focus))))
        thread: Thread = self.session.ask("thread", focus)
        self._frames.append(focus)
        frames = [self._frame(number, line) for number, line in enumerate(thread.stack)]
        frames.append({
            "id": self._frame_id(len(frames)), "name": f"PTX: {thread.instruction}", "line": thread.ptx_line,
            "column": 1, "source": {"name": f"{self.session.stop.kernel}.ptx", "sourceReference": PTX},
        })  # fmt: skip
        self._channel.respond(request, {"stackFrames": frames, "totalFrames": len(frames)})

    def _frame_id(self, depth: int) -> int:
        return len(self._frames) * 256 + depth

    def _frame(self, depth: int, line: SourceLine) -> Message:
        name = line.file.rpartition("/")[2]
        return {
            "id": self._frame_id(depth), "name": line.function or name, "line": line.line, "column": 1,
            "source": {"name": name, "path": line.file},
        }  # fmt: skip

    def _on_source(self, request: Message, given: Message) -> None:
        self._channel.respond(request, {"content": self.session.ask("ptx"), "mimeType": "text/plain"})

    def _of_frame(self, given: Message) -> Focus:
        number = int(given.get("frameId") or 0) // 256
        return self._frames[number - 1] if 0 < number <= len(self._frames) else self.session.focus

    def _on_scopes(self, request: Message, given: Message) -> None:
        focus = self._of_frame(given)
        kinds = {"variables": "Variables", "registers": "Registers", "barriers": "Barriers and copies"}
        scopes = [
            {"name": title, "variablesReference": self._reference(Scope(focus, kind)), "expensive": kind != "variables"}
            for kind, title in kinds.items()
        ]
        self._channel.respond(request, {"scopes": scopes})

    def _reference(self, scope: Scope) -> int:
        self._scopes.append(scope)
        return len(self._scopes)

    def _on_variables(self, request: Message, given: Message) -> None:
        number = int(given.get("variablesReference", 0))
        if not 0 < number <= len(self._scopes):
            raise ArgumentError(f"there is nothing behind reference {number}", hint="the program has run on since")
        scope = self._scopes[number - 1]
        self._channel.respond(request, {"variables": [self._variable(scope.focus, row) for row in self._rows(scope)]})

    def _rows(self, scope: Scope) -> list[Named]:
        ask = self.session.ask
        if scope.kind == "registers":
            return [*ask("special", scope.focus), *ask("registers", scope.focus)]
        if scope.kind == "barriers":
            lines = ask("barriers", scope.focus) + ask("copies", scope.focus)
            return [Named(line.partition(",")[0].partition(":")[0], "", line) for line in lines]
        if scope.kind == "tensor":
            rows: list[Named] = ask("elements", scope.focus, scope.name)
            return rows
        found: list[Named] = ask("variables", scope.focus)
        return found

    def _variable(self, focus: Focus, row: Named) -> Message:
        reference = self._reference(Scope(focus, "tensor", row.name)) if row.parts else 0
        shown: Message = {"name": row.name, "value": row.text, "type": row.kind, "variablesReference": reference}
        return {**shown, "evaluateName": row.name}

    def _on_evaluate(self, request: Message, given: Message) -> None:
        text = str(given.get("expression", "")).strip()
        word = text.split(" ")[0]
        if given.get("context") == "repl" and word in COMMANDS:
            output = io.StringIO()
            Shell(self.session, stdout=output).onecmd(text)
            result = output.getvalue().rstrip("\n")
            if word in ("thread", "warp"):
                self._channel.event("invalidated", {"areas": ["threads", "stacks", "variables"]})
        else:
            result = self.session.ask("evaluate", self._of_frame(given), text)
        self._channel.respond(request, {"result": result, "variablesReference": 0})


def thread_id(focus: Focus) -> int:
    """The number of a thread of the GPU in the protocol."""
    return focus.block * PER_BLOCK + focus.thread + 1


def focus_of(number: int) -> Focus:
    """The thread of the GPU of a number in the protocol."""
    return Focus(*divmod(number - 1, PER_BLOCK))


def named(focus: Focus) -> str:
    """A thread's name for people."""
    return f"block {focus.block} warp {focus.thread // 32} lane {focus.thread % 32}"


def serve(source: Any, target: Any) -> None:
    """Serve a client on two byte streams."""
    Server(Channel(source, target)).serve()
