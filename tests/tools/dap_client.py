"""A client of the Debug Adapter Protocol for tests: it sends requests and waits for answers and events."""

import json
import queue
import subprocess
import sys
import threading

TIMEOUT = 300


class Client:
    """Talks to `tilewright debug --dap` in a process of its own."""

    def __init__(self, folder, env=None):
        main = "from tilewright.tools.cli import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", main, "debug", "--dap"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder,
            env=env,
        )  # fmt: skip
        self.messages = queue.Queue()
        self.kept = []
        self.sent = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        stream = self.process.stdout
        while line := stream.readline():
            length = int(line.split(b":")[1])
            assert stream.readline() == b"\r\n"
            self.messages.put(json.loads(stream.read(length)))
        self.messages.put(None)

    def write(self, message):
        data = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        self.process.stdin.flush()

    def request(self, command, **arguments):
        """The body of the answer; a refusal is an AssertionError."""
        answer = self.answer(command, **arguments)
        assert answer["success"], answer
        return answer["body"]

    def answer(self, command, **arguments):
        self.sent += 1
        self.write({"seq": self.sent, "type": "request", "command": command, "arguments": arguments})
        return self._wait(lambda m: m["type"] == "response" and m["request_seq"] == self.sent)

    def event(self, name):
        """The body of the next event of this name."""
        return self._wait(lambda m: m["type"] == "event" and m["event"] == name)["body"]

    def _wait(self, wanted):
        for place, message in enumerate(self.kept):
            if wanted(message):
                return self.kept.pop(place)
        while True:
            message = self.messages.get(timeout=TIMEOUT)
            assert message is not None, self.kept
            if wanted(message):
                return message
            self.kept.append(message)

    def close(self):
        self.request("disconnect", restart=False, terminateDebuggee=True)
        assert self.process.wait(TIMEOUT) == 0
