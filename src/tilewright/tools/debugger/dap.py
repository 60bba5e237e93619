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
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from tilewright.base.errors import ArgumentError, TilewrightError
from tilewright.tools.debugger.dap_breakpoints import FUNCTIONS, Breakpoints
from tilewright.tools.debugger.dap_messages import Channel, Message
from tilewright.tools.debugger.inspector import Named, Thread
from tilewright.tools.debugger.plan import Focus, Kind, Program, SourceLine, Stop
from tilewright.tools.debugger.session import Session
from tilewright.tools.debugger.shell import Shell
from tilewright.tools.debugger.tensors import MOST_LISTED

CAPABILITIES = {
    "supportsConfigurationDoneRequest": True, "supportsConditionalBreakpoints": True,
    "supportsFunctionBreakpoints": True, "supportsDataBreakpoints": True, "supportsStepBack": True,
    "supportsSteppingGranularity": True, "supportsEvaluateForHovers": True, "supportsExceptionInfoRequest": True,
    "supportsTerminateRequest": True, "supportTerminateDebuggee": True, "supportsRestartRequest": True,
    "supportsHitConditionalBreakpoints": True, "supportsLogPoints": True, "supportsBreakpointLocationsRequest": True,
    "supportsDelayedStackTraceLoading": True,
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
        self._breakpoints = Breakpoints()
        self._first_line = 1
        self._given: Message = {}
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
                if message.get("command") in ("disconnect", "terminate", "restart"):
                    self._interrupt()
                if message.get("command") == "disconnect":
                    break
        except ArgumentError as error:
            self._channel.event("output", {"category": "stderr", "output": f"{error}\n"})
        self._interrupt()
        self._work.put(None)

    def _pause(self, request: Message) -> None:
        self._interrupt()
        self._channel.respond(request)

    def _interrupt(self) -> None:
        """Stop a program that runs."""
        if self._session is not None and self._running:
            self._session.pause()

    def _handle(self, request: Message) -> None:
        method = getattr(self, f"_on_{request.get('command')}", None)
        try:
            if method is None:
                raise ArgumentError(f"the debugger has no request {request.get('command')}")
            method(request, request.get("arguments") or {})
        except TilewrightError as error:
            # Editors ask for whatever the mouse is over: that it is no variable is no matter for a message box.
            self._channel.refuse(request, str(error), shown=request.get("command") != "evaluate")
        except Exception:  # noqa: BLE001  a fault of the debugger must not end the session
            self._channel.refuse(request, f"the debugger failed:\n{traceback.format_exc()}")

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
        self._first_line = 1 if given.get("linesStartAt1", True) else 0
        self._channel.respond(request, CAPABILITIES)

    def _on_launch(self, request: Message, given: Message) -> None:
        """`program` is FILE:FUNCTION, or FILE with `function`; `args` as `--arg`; docs/debugging.md has the rest."""
        self._given = given
        self._start(given)
        self._channel.respond(request)
        self._channel.event("initialized")
        self._bind()

    def _on_attach(self, request: Message, given: Message) -> None:
        raise ArgumentError("there is no process to attach to", hint='"request": "launch" starts one on the emulator')

    def _start(self, given: Message) -> None:
        """Begin a session."""
        program = program_of(given)
        reading, writing = os.pipe()
        session = Session(program, output=writing, folder=folder_of(given))
        os.close(writing)
        threading.Thread(target=self._forward, args=(reading,), daemon=True).start()
        session.told = lambda text: self._channel.event("output", {"category": "console", "output": f"{text}\n"})
        self._stop_on_entry, self._stop_at_end = bool(given.get("stopOnEntry")), bool(given.get("stopAtEnd"))
        self._printed = ""
        try:
            session.start()
        except TilewrightError:
            session.close()
            raise
        self._session = session

    def _bind(self) -> None:
        """Set the breakpoints that were asked for before."""
        for told in self._breakpoints.bind(self.session):
            self._channel.event("breakpoint", {"reason": "changed", "breakpoint": self._at_client(told)})

    def _on_restart(self, request: Message, given: Message) -> None:
        """The same program once more, compiled anew from its file, with the breakpoints as they are."""
        if self._session is not None:
            self._session.close()
        self._session, self._running = None, False
        self._given = given.get("arguments") or self._given
        self._start(self._given)
        self._channel.respond(request)
        self._bind()
        self._begin()

    def _forward(self, reading: int) -> None:
        """What the program writes goes to the client."""
        with os.fdopen(reading, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                self._channel.event("output", {"category": "stdout", "output": line})

    def _on_configurationDone(self, request: Message, given: Message) -> None:
        self._channel.respond(request)
        self._begin()

    def _begin(self) -> None:
        """Run a program that stands at its beginning."""
        if self._stop_on_entry:
            self._tell(self.session.stop)
        else:
            self._run(partial(self.session.go, "run"))

    def _on_disconnect(self, request: Message, given: Message) -> None:
        self._channel.respond(request)

    def _on_terminate(self, request: Message, given: Message) -> None:
        """End the program; the client disconnects then."""
        if self._session is not None:
            self._session.close()
        self._session, self._running = None, False
        self._channel.respond(request)
        self._channel.event("terminated")

    # Breakpoints.

    def _on_setBreakpoints(self, request: Message, given: Message) -> None:
        file = file_of(given)
        items = list(given.get("breakpoints") or ({"line": line} for line in given.get("lines") or ()))
        self._set(request, file, [f"{file}:{self._line(item)}" for item in items], items)

    def _on_setFunctionBreakpoints(self, request: Message, given: Message) -> None:
        items = list(given.get("breakpoints") or ())
        self._set(request, FUNCTIONS, [str(item["name"]) for item in items], items)

    def _set(self, request: Message, source: str, places: list[str], items: list[Message]) -> None:
        if self._given.get("noDebug"):
            items, places = [], []
        made = self._breakpoints.replace(source, places, items, self._session)
        self._channel.respond(request, {"breakpoints": [self._at_client(told) for told in made]})

    def _line(self, item: Message, name: str = "line") -> int:
        """The line of a message, from 1."""
        return int(item[name]) + 1 - self._first_line

    def _at_client(self, told: Message) -> Message:
        """A message with its line as the client counts."""
        return {**told, "line": told["line"] - 1 + self._first_line} if "line" in told else told

    def _on_setExceptionBreakpoints(self, request: Message, given: Message) -> None:
        self._channel.respond(request, {"breakpoints": []})

    def _on_breakpointLocations(self, request: Message, given: Message) -> None:
        first = self._line(given)
        last = self._line(given, "endLine") if "endLine" in given else first
        file = file_of(given)
        ended = self._session is None or self._running or self._session.stop.ended
        lines = [] if ended else self.session.ask("lines_with_code", "" if file == "ptx" else file, first, last)
        self._channel.respond(request, {"breakpoints": [self._at_client({"line": line}) for line in lines]})

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
                reads = item.get("accessType") in ("read", "readWrite")
                watch = self.session.add_watch(str(item["dataId"]), reads, self._breakpoints.next_number())
                made.append({"id": watch.number, "verified": True})
            except TilewrightError as error:
                made.append({"verified": False, "message": error.message})
        self._channel.respond(request, {"breakpoints": made})

    # Running.

    def _run(self, move: Callable[[], Stop]) -> None:
        """Go on in a thread of Python; the stop comes back as work, unless the session is over by then."""
        session = self.session

        def run() -> None:
            try:
                then = partial(self._tell, move())
            except TilewrightError as error:
                then = partial(self._stuck, error)
            self._work.put(lambda: then() if self._session is session else None)

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
        frames = [self._at_client(self._frame(number, line)) for number, line in enumerate(thread.stack)]
        frames.append(self._at_client({
            "id": self._frame_id(len(frames)), "name": f"PTX: {thread.instruction}", "line": thread.ptx_line,
            "column": 1, "source": {"name": f"{self.session.stop.kernel}.ptx", "sourceReference": PTX},
            "presentationHint": "subtle",
        }))  # fmt: skip
        start, levels = int(given.get("startFrame") or 0), int(given.get("levels") or len(frames))
        self._channel.respond(request, {"stackFrames": frames[start : start + levels], "totalFrames": len(frames)})

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
        scope, start = self._scopes[number - 1], int(given.get("start") or 0)
        count = int(given.get("count") or MOST_LISTED)
        if given.get("filter") == ("named" if scope.kind == "tensor" else "indexed"):
            rows: list[Named] = []
        elif scope.kind == "tensor":
            rows = self.session.ask("elements", scope.focus, scope.name, start, count)
        else:
            rows = self._rows(scope)[start : start + count if given.get("count") else None]
        self._channel.respond(request, {"variables": [self._variable(scope, row) for row in rows]})

    def _rows(self, scope: Scope) -> list[Named]:
        ask = self.session.ask
        if scope.kind == "registers":
            return [*ask("special", scope.focus), *ask("registers", scope.focus)]
        if scope.kind == "barriers":
            lines = ask("barriers", scope.focus) + ask("copies", scope.focus)
            return [Named(line.partition(",")[0].partition(":")[0], "", line) for line in lines]
        found: list[Named] = ask("variables", scope.focus)
        return found

    def _variable(self, scope: Scope, row: Named) -> Message:
        name = f"{scope.name}{row.name}" if scope.kind == "tensor" else row.name
        shown = {"name": row.name, "value": row.text, "type": row.kind, "evaluateName": name}
        return {**shown, **self._parts(scope.focus, row)}

    def _parts(self, focus: Focus, row: Named) -> Message:
        """Where the elements of a tensor can be had."""
        if not row.parts:
            return {"variablesReference": 0}
        return {"variablesReference": self._reference(Scope(focus, "tensor", row.name)), "indexedVariables": row.parts}

    def _on_evaluate(self, request: Message, given: Message) -> None:
        text = str(given.get("expression", "")).strip()
        focus, console = self._of_frame(given), given.get("context") == "repl"
        if self._running:
            raise ArgumentError("the program runs", hint="pause it first")
        if console and text.split(" ")[0] in COMMANDS:
            self._channel.respond(request, {"result": self._command(text), "variablesReference": 0})
            return
        result = self.session.ask("evaluate", focus, text)
        if "\n" not in result or console:
            self._channel.respond(request, {"result": result, "variablesReference": 0})
            return
        found: Named = self.session.ask("tensor", focus, text)
        self._channel.respond(request, {"result": found.text, "type": found.kind, **self._parts(focus, found)})

    def _command(self, text: str) -> str:
        """What a command of the shell prints."""
        output = io.StringIO()
        Shell(self.session, stdout=output).onecmd(text)
        if text.split(" ")[0] in ("thread", "warp"):
            self._channel.event("invalidated", {"areas": ["threads", "stacks", "variables"]})
        return output.getvalue().rstrip("\n")


def program_of(given: Message) -> Program:
    """What `launch` asks for.

    Raises:
        ArgumentError: a setting is missing, or is of another kind.
    """
    place = str(given.get("program") or "")
    if given.get("function"):
        place = f"{place}:{given['function']}"
    if not place.rpartition(":")[0]:
        raise ArgumentError(
            "the launch configuration names no function",
            values={"program": given.get("program", "nothing")},
            hint='"program": "${file}", "function": "transpose", or "program": "kernels.py:transpose"',
        )
    words = given.get("args") or []
    if isinstance(words, str) or not isinstance(words, list | tuple):
        raise ArgumentError(
            '"args" of the launch configuration is a list', values={"given": words}, hint='"args": ["f32[32,32]", "3"]'
        )
    release, options = bool(given.get("release")), str(given.get("options") or "")
    return Program(
        place, tuple(map(str, words)), options if release else f"--opt-level 0 {options}", given.get("arch") or None,
        int(given.get("seed") or 0), bool(given.get("checks", True)), not release,
    )  # fmt: skip


def folder_of(given: Message) -> str | None:
    """The folder that the program runs in.

    Raises:
        ArgumentError: there is none of that name.
    """
    folder = given.get("cwd")
    if folder and not os.path.isdir(str(folder)):
        raise ArgumentError(f'"cwd" of the launch configuration is no folder: {folder}')
    return str(folder) if folder else None


def file_of(given: Message) -> str:
    """The path of the source that a request names; `ptx` for the PTX."""
    source = given.get("source") or {}
    return "ptx" if source.get("sourceReference") == PTX else str(source.get("path") or "")


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
