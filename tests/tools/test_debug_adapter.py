"""The debugger by the Debug Adapter Protocol, with a scripted client: the sessions of `test_debug_terminal`."""

from pathlib import Path

import pytest

from tests.tools.dap_client import Client
from tests.tools.test_debug_terminal import PROGRAMS, READ, STORED, WRITTEN

FILE = str(PROGRAMS / "debugged.py")
ARGUMENTS = ["f32[64,32]=arange", "zeros:f32[32,64]"]


@pytest.fixture
def client():
    """A client that is initialised."""
    made = Client(Path.cwd())
    assert made.request("initialize", adapterID="test")["supportsStepBack"]
    yield made
    made.close()


def launch(client, function, **options):
    client.request("launch", program=f"{FILE}:{function}", args=ARGUMENTS, **options)
    client.event("initialized")


def run_to(client, line, condition=None):
    """Stop at a line; the body of the event."""
    points = [{"line": line, **({"condition": condition} if condition else {})}]
    (point,) = client.request("setBreakpoints", source={"path": FILE}, breakpoints=points)["breakpoints"]
    assert point["verified"] and point["line"] == line
    client.request("configurationDone")
    return client.event("stopped")


def frames(client, thread):
    return client.request("stackTrace", threadId=thread)["stackFrames"]


def scope(client, frame, name):
    """The variables of a scope: name to (value, reference)."""
    scopes = client.request("scopes", frameId=frame["id"])["scopes"]
    (reference,) = [item["variablesReference"] for item in scopes if item["name"] == name]
    return children(client, reference)


def children(client, reference):
    rows = client.request("variables", variablesReference=reference)["variables"]
    return {row["name"]: (row["value"], row["variablesReference"]) for row in rows}


def test_a_session(client):
    launch(client, "transpose")
    stop = run_to(client, WRITTEN, "thread == 100")
    assert stop["reason"] == "breakpoint" and stop["hitBreakpointIds"] == [1] and stop["threadId"] == 101
    names = [item["name"] for item in client.request("threads")["threads"]]
    assert names[:2] == ["block 0 warp 3 lane 4", "block 0 warp 0 lane 0"] and "block 1 warp 0 lane 0" in names

    frame, ptx = frames(client, stop["threadId"])
    assert (frame["name"], frame["line"], frame["source"]["path"]) == ("transpose_kernel", WRITTEN, FILE)
    text = client.request("source", sourceReference=ptx["source"]["sourceReference"])["content"]
    assert ptx["name"].split()[1] in text.splitlines()[ptx["line"] - 1]

    found = scope(client, frame, "Variables")
    assert {name: found[name][0] for name in ("thread", "row", "column", "taken", "fault")} == {
        "thread": "100", "row": "3", "column": "4", "taken": "131", "fault": "''",
    }  # fmt: skip
    assert found["tile"][0] == "f32 smem S<5,0,5> o 0 o (32,32):(32,1) at 0x0"
    assert children(client, found["tile"][1])["[4, 3]"][0] == "131"
    assert scope(client, frame, "Registers")["tid"][0] == "(100, 0, 0)"
    assert client.request("evaluate", expression="tile[4, 3] ", context="hover")["result"] == "131"
    assert client.request("evaluate", expression="row + 1", frameId=frame["id"], context="watch")["result"] == "4"
    drawn = client.request("evaluate", expression="layout tile", context="repl")["result"]
    assert drawn.splitlines()[3].split()[:3] == ["1", "33", "32"]

    client.request("setBreakpoints", source={"path": FILE}, breakpoints=[])
    client.request("stepBack", threadId=stop["threadId"])
    assert client.event("stopped")["reason"] == "step"
    assert frames(client, stop["threadId"])[0]["line"] == READ
    client.request("next", threadId=stop["threadId"])
    client.event("stopped")
    assert frames(client, stop["threadId"])[0]["line"] == WRITTEN
    before = frames(client, stop["threadId"])[-1]["line"]
    client.request("stepIn", threadId=stop["threadId"], granularity="instruction")
    client.event("stopped")
    assert frames(client, stop["threadId"])[-1]["line"] > before

    info = client.request("dataBreakpointInfo", name="target[1, 5]")
    client.request("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"], "accessType": "write"}])
    client.request("continue", threadId=1)
    stop = client.event("stopped")
    assert stop["reason"] == "data breakpoint" and stop["threadId"] == 38 and "0 -> 161" in stop["text"]
    assert client.request("dataBreakpointInfo", name="row")["dataId"] is None

    client.request("setDataBreakpoints", breakpoints=[])
    client.request("continue", threadId=1)
    assert client.event("exited")["exitCode"] == 0
    client.event("terminated")


def test_finds_a_race(client):
    launch(client, "racing", stopAtEnd=True)
    found = client.request("setFunctionBreakpoints", breakpoints=[{"name": "transpose_kernel"}])["breakpoints"]
    assert found[0]["verified"]
    client.request("configurationDone")
    assert client.event("stopped")["hitBreakpointIds"] == [found[0]["id"]]
    client.request("continue", threadId=1)
    stop = client.event("stopped")
    assert stop["reason"] == "exception" and stop["description"] == "Error: Race condition in shared memory access"
    assert f"debugged.py:{STORED}" in client.request("exceptionInfo", threadId=1)["description"]
    assert frames(client, stop["threadId"])[0]["line"] == READ
    client.request("setBreakpoints", source={"path": FILE}, breakpoints=[{"line": STORED, "condition": "thread == 32"}])
    client.request("reverseContinue", threadId=stop["threadId"])
    stop = client.event("stopped")
    assert stop["reason"] == "breakpoint" and stop["threadId"] == 33
    assert client.request("evaluate", expression="row", context="watch")["result"] == "29"


def test_finds_a_wrong_index(client):
    launch(client, "misplaced")
    lines = [{"line": 3000}, {"line": READ, "condition": "thread =="}]
    found = client.request("setBreakpoints", source={"path": FILE}, breakpoints=lines)["breakpoints"]
    assert [item["verified"] for item in found] == [False, False]
    assert "has no code of this kernel" in found[0]["message"] and "is no condition" in found[1]["message"]
    stop = run_to(client, WRITTEN, "taken != (32 * block + column) * 32 + row")
    assert stop["threadId"] == 97
    assert client.request("evaluate", expression="taken - row", context="watch")["result"] == "1"


def test_a_running_program_can_be_paused(client):
    launch(client, "spinning", checks=False)
    client.request("configurationDone")
    assert client.request("threads")["threads"] == [{"id": 1, "name": "the program"}]
    answer = client.answer("next", threadId=1)
    assert not answer["success"] and "the program runs" in answer["message"]
    client.request("pause", threadId=1)
    assert client.event("stopped")["reason"] == "pause"


def test_mistakes_are_answered(client):
    answer = client.answer("stackTrace", threadId=1)
    assert not answer["success"] and "nothing has been launched" in answer["message"]
    answer = client.answer("launch", program=f"{FILE}:nothing", args=[])
    assert not answer["success"] and "has no 'nothing'" in answer["message"]
    answer = client.answer("fly")
    assert not answer["success"] and answer["message"] == "the debugger has no request fly"
