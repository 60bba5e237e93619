"""The debugger as editors use it: the sequences of requests that VS Code, nvim-dap and dap-mode send."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tools.dap_client import Client
from tests.tools.test_debug_adapter import ARGUMENTS, FILE, children, frames, scope
from tests.tools.test_debug_terminal import READ, WRITTEN, line_of

SCALED = line_of("*= 2.0")
EXTENSION = Path(__file__).resolve().parents[2] / "editors" / "vscode"
CAPABILITIES = {
    "clientID": "vscode", "clientName": "Visual Studio Code", "adapterID": "tilewright", "pathFormat": "path",
    "linesStartAt1": True, "columnsStartAt1": True, "supportsVariableType": True, "supportsVariablePaging": True,
    "supportsRunInTerminalRequest": True, "locale": "en", "supportsProgressReporting": True,
    "supportsInvalidatedEvent": True, "supportsMemoryReferences": True, "supportsArgsCanBeInterpretedByShell": True,
}  # fmt: skip
"""What VS Code says of itself."""


@pytest.fixture
def client(tmp_path):
    made = Client(tmp_path)
    yield made
    made.close()


def begun(client, function, breakpoints=(), **options):
    """What VS Code sends up to the first stop; the answer to its breakpoints."""
    client.request("initialize", **CAPABILITIES)
    settings = {"type": "tilewright", "request": "launch", "name": "Debug a kernel", "__sessionId": "1", **options}
    client.request("launch", program=FILE, function=function, args=ARGUMENTS, **settings)
    client.event("initialized")
    source = {"name": "debugged.py", "path": FILE}
    lines = [item["line"] for item in breakpoints]
    found = client.request(
        "setBreakpoints", source=source, lines=lines, breakpoints=list(breakpoints), sourceModified=False
    )
    client.request("setFunctionBreakpoints", breakpoints=[])
    client.request("setExceptionBreakpoints", filters=[])
    client.request("configurationDone")
    return found["breakpoints"]


def test_a_session_of_vs_code(client):
    (point,) = begun(client, "transpose", [{"line": WRITTEN, "condition": "thread == 37"}])
    assert point["verified"]
    stop = client.event("stopped")
    assert stop["hitBreakpointIds"] == [point["id"]] and stop["allThreadsStopped"]
    client.request("threads")
    first = client.request("stackTrace", threadId=stop["threadId"], startFrame=0, levels=1)
    assert len(first["stackFrames"]) == 1 and first["totalFrames"] == 2
    rest = client.request("stackTrace", threadId=stop["threadId"], startFrame=1, levels=19)
    assert [frame["name"].split(":")[0] for frame in rest["stackFrames"]] == ["PTX"]
    (frame,) = first["stackFrames"]
    found = scope(client, frame, "Variables")
    assert found["row"][0] == "1" and found["column"][0] == "5"

    # Hovers: numbers, tensors with their elements behind them, and words that are no variables.
    asked = {"frameId": frame["id"], "context": "hover"}
    assert client.request("evaluate", expression="row", **asked)["result"] == "1"
    tile = client.request("evaluate", expression="tile", **asked)
    assert tile["result"].startswith("f32 smem S<5,0,5>") and tile["indexedVariables"] == 32 * 32
    assert children(client, tile["variablesReference"])["[5, 1]"][0] == "161"
    refused = client.answer("evaluate", expression="cutlass", **asked)
    assert not refused["success"] and refused["body"]["error"]["showUser"] is False
    console = client.request("evaluate", expression="tile", frameId=frame["id"], context="repl")["result"]
    assert console.startswith("f32 smem S<5,0,5>") and len(console.splitlines()) == 2 + 32 + 1
    assert client.request("evaluate", expression="tile[5, 1]", frameId=frame["id"], context="watch")["result"] == "161"
    assert not client.answer("evaluate", expression="row +", frameId=frame["id"], context="watch")["success"]

    # Elements of a large tensor come in pages.
    reference = tile["variablesReference"]
    page = client.request("variables", variablesReference=reference, filter="indexed", start=500, count=3)["variables"]
    # Elements are numbered down the rows: number 500 is (500 % 32, 500 // 32), which holds 32 * 20 + 15 of the source.
    assert [(row["name"], row["value"]) for row in page] == [
        ("[20, 15]", "655"), ("[21, 15]", "687"), ("[22, 15]", "719"),
    ]  # fmt: skip
    assert page[0]["evaluateName"] == "tile[20, 15]"
    assert client.request("variables", variablesReference=reference, filter="named")["variables"] == []

    lines = client.request("breakpointLocations", source={"path": FILE}, line=READ - 1, endLine=WRITTEN)["breakpoints"]
    assert {"line": READ} in lines and {"line": WRITTEN} in lines
    client.request("stepIn", threadId=stop["threadId"])
    client.event("stopped")
    client.request("stepOut", threadId=stop["threadId"])
    client.event("stopped")
    client.request("stepBack", threadId=stop["threadId"])
    client.event("stopped")
    client.request("reverseContinue", threadId=stop["threadId"])
    assert client.event("stopped")["hitBreakpointIds"] == [point["id"]]
    client.request("setBreakpoints", source={"path": FILE}, breakpoints=[])
    client.request("continue", threadId=stop["threadId"])
    client.event("terminated")


def test_breakpoints_before_the_launch(client):
    client.request("initialize", adapterID="other", linesStartAt1=False)
    asked = client.request("setBreakpoints", source={"path": FILE}, breakpoints=[{"line": WRITTEN - 1}])["breakpoints"]
    assert asked == [{"id": 1, "verified": False, "message": "the program has not been launched yet"}]
    assert client.request("breakpointLocations", source={"path": FILE}, line=1)["breakpoints"] == []
    client.request("launch", program=f"{FILE}:transpose", args=ARGUMENTS)
    client.event("initialized")
    told = client.event("breakpoint")
    assert told == {"reason": "changed", "breakpoint": {"id": 1, "verified": True, "line": WRITTEN - 1}}
    client.request("configurationDone")
    stop = client.event("stopped")
    assert stop["hitBreakpointIds"] == [1]
    assert frames(client, stop["threadId"])[0]["line"] == WRITTEN - 1  # this client counts from 0


def test_a_breakpoint_in_the_second_kernel(client):
    (point,) = begun(client, "two_launches", [{"line": SCALED}])
    assert point["verified"] and point["line"] == SCALED
    stop = client.event("stopped")
    assert frames(client, stop["threadId"])[0]["name"] == "scale_kernel"
    # Back into the first kernel, and forth again.
    client.request("setBreakpoints", source={"path": FILE}, breakpoints=[{"line": WRITTEN}])
    client.request("reverseContinue", threadId=stop["threadId"])
    stop = client.event("stopped")
    assert frames(client, stop["threadId"])[0]["name"] == "transpose_kernel"


def test_hit_counts(client):
    begun(client, "transpose", [{"line": WRITTEN, "condition": "thread == 0", "hitCondition": ">= 3"}])
    stop = client.event("stopped")
    assert client.request("evaluate", expression="step", context="watch")["result"] == "2"
    client.request("continue", threadId=stop["threadId"])
    client.event("stopped")
    assert client.request("evaluate", expression="step", context="watch")["result"] == "3"
    # Going back takes the counts back.
    client.request("reverseContinue", threadId=stop["threadId"])
    client.event("stopped")
    assert client.request("evaluate", expression="step", context="watch")["result"] == "2"
    client.request("continue", threadId=stop["threadId"])
    client.event("stopped")
    assert client.request("evaluate", expression="step", context="watch")["result"] == "3"
    wrong = [{"line": WRITTEN, "hitCondition": "often"}]
    (refused,) = client.request("setBreakpoints", source={"path": FILE}, breakpoints=wrong)["breakpoints"]
    assert not refused["verified"] and refused["message"] == "'often' is no hit count"


def test_log_points(client):
    text = "step {step}: {column} + {row} = {column + row}, {nothing}"
    log = {"line": WRITTEN, "condition": "thread == 5 and block == 0", "logMessage": text}
    begun(client, "transpose", [log, {"line": WRITTEN, "condition": "thread == 5 and block == 0 and step == 2"}])
    stop = client.event("stopped")
    said = [client.event("output")["output"] for _ in range(3)]
    assert [line.partition(", ")[0] for line in said] == [
        "step 0: 5 + 0 = 5", "step 1: 5 + 4 = 9", "step 2: 5 + 8 = 13",
    ]  # fmt: skip
    assert all(", <the thread has no variable nothing>" in line for line in said)
    client.request("stepBack", threadId=stop["threadId"])
    client.event("stopped")
    assert not [message for message in client.kept if message.get("event") == "output"]


def test_restart_and_terminate(client):
    begun(client, "transpose", [{"line": WRITTEN}])
    for _ in range(2):
        stop = client.event("stopped")
        assert stop["reason"] == "breakpoint" and stop["hitBreakpointIds"] == [1]
        client.request("restart")
        assert client.event("breakpoint")["breakpoint"]["verified"]
    client.event("stopped")
    client.request("terminate")
    client.event("terminated")
    assert not client.answer("continue", threadId=1)["success"]


def test_a_program_that_runs_can_be_ended(client):
    begun(client, "spinning", checks=False)
    refused = client.answer("evaluate", expression="turns", context="watch")
    assert not refused["success"] and "the program runs" in refused["message"]
    client.request("terminate")
    client.event("terminated")


def test_run_without_debugging(client):
    assert begun(client, "transpose", [{"line": WRITTEN}], noDebug=True) == []
    assert client.event("exited")["exitCode"] == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"args": ARGUMENTS}, "the launch configuration names no function"),
        ({"program": FILE, "args": ARGUMENTS}, "the launch configuration names no function"),
        ({"program": FILE, "function": "transpose", "args": "f32[4]"}, '"args" of the launch configuration is a list'),
        ({"program": FILE, "function": "transpose", "args": ["f33[4]", "3"]}, "f33"),
        ({"program": FILE, "function": "transpose", "args": ARGUMENTS, "cwd": "/none"}, '"cwd" of the launch config'),
        ({"program": FILE, "function": "transpose", "args": ARGUMENTS, "seed": "x"}, "invalid literal for int"),
    ],
)
def test_wrong_launch_configurations(client, settings, said):
    client.request("initialize", **CAPABILITIES)
    answer = client.answer("launch", **settings)
    assert not answer["success"] and said in answer["message"]
    assert answer["body"]["error"]["showUser"]


def test_relative_paths_begin_in_cwd(client, tmp_path):
    (tmp_path / "inner").mkdir()
    shutil.copy(FILE, tmp_path / "inner" / "kernels.py")
    client.request("initialize", **CAPABILITIES)
    client.request(
        "launch", program="kernels.py:transpose", args=ARGUMENTS, cwd=str(tmp_path / "inner"), stopOnEntry=True
    )
    client.request("configurationDone")
    assert client.event("stopped")["reason"] == "entry"


# The extension for VS Code.


@pytest.fixture
def manifest():
    return json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))


def test_the_extension_declares_what_the_adapter_takes(manifest):
    (debugger,) = manifest["contributes"]["debuggers"]
    properties = debugger["configurationAttributes"]["launch"]["properties"]
    text = (EXTENSION.parents[1] / "docs" / "debugging.md").read_text(encoding="utf-8")
    source = (EXTENSION.parents[1] / "src/tilewright/tools/debugger/dap.py").read_text(encoding="utf-8")
    read = set(re.findall(r'given(?:\.get\(|\[)"(\w+)"', source))
    assert set(properties) <= read and all(f"`{name}`" in text for name in properties)
    assert debugger["configurationAttributes"]["launch"]["required"] == ["program"]
    (snippet,) = debugger["configurationSnippets"]
    assert set(snippet["body"]) - {"type", "request", "name"} <= set(properties)
    assert snippet["body"]["type"] == debugger["type"]


def test_the_extension_has_what_vs_code_asks_of_a_manifest(manifest):
    # https://code.visualstudio.com/api/references/extension-manifest: required fields and known contribution points.
    assert {"name", "version", "publisher", "engines"} <= set(manifest)
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", manifest["name"]) and re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
    assert re.fullmatch(r"\^1\.\d+\.0", manifest["engines"]["vscode"])
    assert (EXTENSION / manifest["main"]).is_file() and (EXTENSION / "README.md").is_file()
    assert set(manifest["contributes"]) == {"breakpoints", "debuggers", "configuration"}
    assert manifest["contributes"]["breakpoints"] == [{"language": "python"}]


PROBE = """
const Module = require("module");
const settings = JSON.parse(process.argv[2]);
const made = {};
const vscode = {
  DebugAdapterExecutable: class {
    constructor(command, args, options) { Object.assign(this, { command, args, options }); }
  },
  debug: { registerDebugAdapterDescriptorFactory: (type, factory) => Object.assign(made, { type, factory }) },
  workspace: { getConfiguration: (name) => ({ get: (key) => settings[`${name}.${key}`] }) },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
const context = { subscriptions: [] };
require(process.argv[1]).activate(context);
const found = made.factory.createDebugAdapterDescriptor({ workspaceFolder: { uri: { fsPath: "/home" } } });
console.log(JSON.stringify({ type: made.type, kept: context.subscriptions.length, ...found }));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(
    ("settings", "command"),
    [({}, ["tilewright", "debug", "--dap"]),
     ({"tilewright.python": "/venv/bin/python"}, ["/venv/bin/python", "-m", "tilewright", "debug", "--dap"])],
)  # fmt: skip
def test_the_extension_starts_the_adapter(settings, command):
    words = ["node", "-e", PROBE, str(EXTENSION / "extension.js"), json.dumps(settings)]
    found = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert (found["type"], found["kept"]) == ("tilewright", 1)
    assert [found["command"], *found["args"]] == command
    assert found["options"] == {"cwd": "/home"}
