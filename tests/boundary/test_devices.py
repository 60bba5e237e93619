"""Launches on a driver with two devices that is none: contexts, attributes, events, threads."""

import re

import numpy as np
import pytest

import tilewright.cute as cute
from tests.boundary.support import CUevent, CUstream, add_kernel, fake_driver, needs_c, run_python, vector, with_events
from tilewright.base.errors import CompileError
from tilewright.targets.host import abi
from tilewright.targets.host.function import LaunchConfig

pytestmark = needs_c

PROGRAM = """
import threading
import numpy as np
import tilewright.cute as cute
from tests.boundary.support import CUevent, CUstream, add, vector, with_events
from tilewright.targets.nvidia.devices.cuda import _DeviceView
from tilewright.arguments.dlpack import HostView
memory = np.zeros(64, np.float32)
def on(device):
    return _DeviceView(HostView(memory.ctypes.data, 2, device, "f32", (16,), (1,), True, memory))
def run(compiled, *values):
    compiled.device.run(values)
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    return fake_driver(tmp_path_factory.mktemp("driver"))


def test_hardware_info_asks_the_driver_for_clusters_of_whole_multiprocessors(driver):
    script = (
        PROGRAM
        + """
import tilewright.utils
info = tilewright.utils.HardwareInfo(1)
print(info.get_max_active_clusters(1), info.get_max_active_clusters(cluster_size=4))
try:
    info.get_max_active_clusters(0)
except ValueError as error:
    print(error)
"""
    )
    text = "\n".join(run_python(script, driver=driver))
    assert "blocks: smem 232448\n" in text and "clusters of 4: smem 232448\n" in text
    assert "132 33\na cluster has a positive number of blocks" in text


def test_a_launch_uses_the_device_of_its_tensors_and_leaves_the_context_as_it_was(driver):
    script = (
        PROGRAM
        + """
compiled = cute.compile(add, vector(), vector(), target="cuda")
for device in (0, 1, 1, 0):
    print("call", device)
    run(compiled, on(device), on(device), 1.0)
print("thread")
thread = threading.Thread(target=lambda: run(compiled, on(1), on(1), 1.0))
thread.start(); thread.join()
"""
    )
    text = "\n".join(run_python(script, driver=driver))
    loaded, *calls = re.split(r"call \d\n", text)
    assert loaded.count("load cubin") == 1
    assert [line for line in loaded.splitlines() if "attribute 8" in line] == [
        "attribute 8 = 231424 on 0",
        "attribute 8 = 231424 on 1",
    ]
    last, thread = calls[3].split("thread\n")
    launched = "launch 0x200000 on {}: grid 1 block 32 smem 0 stream (nil)\n  plain\n"
    assert calls[0] == last == launched.format(0)
    assert calls[1] == "retain 1\ncontext 1\n" + launched.format(1) + "context 0\n"
    assert calls[2] == "context 1\n" + launched.format(1) + "context 0\n"
    assert thread == "context 1\n" + launched.format(1).removesuffix("\n")


CHIPS = """
import ctypes
import tilewright.cute as cute
from tests.boundary.support import add
open_ = ctypes.pythonapi.PyCapsule_GetPointer
open_.restype, open_.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
class On:
    def __init__(self, device):
        self.device, self.memory = device, np.zeros(16, np.float32)
    def __dlpack_device__(self):
        return 2, self.device
    def __dlpack__(self, **_):
        capsule = self.memory.__dlpack__()
        (ctypes.c_int32 * 2).from_address(open_(capsule, b"dltensor") + 8)[:] = 2, self.device
        return capsule
x, y = On(0), On(1)
"""


def test_devices_of_different_chips(driver):
    """What a call is compiled for is the chip that its tensors lie on, and that is where it runs."""
    script = (
        PROGRAM
        + CHIPS
        + """
for one in (x, y, x, y):
    print("call")
    add(one, one, 1.0)
    print(add.last_executor.arch)
print("compiled")
print(cute.compile(add, y, y, 1.0).arch, cute.compile(add, vector(), vector(), 1.0).arch)
"""
    )
    text = "\n".join(run_python(script, driver=driver, FAKE_CUDA_CHIPS="98"))
    called, compiled = text.split("compiled\n")
    _, *calls = called.split("call\n")
    for number, (call, chip) in enumerate(zip(calls, ("sm_90a", "sm_80") * 2, strict=True)):
        launches = re.findall(r"launch 0x200000 on (\d)", call)
        assert launches == [str(number % 2)] and chip in call.splitlines()
        assert call.count("load cubin") == (number < 2)
    assert calls[1].count("context 0") == 1, "the thread's context is as it was"
    assert compiled.splitlines()[-1] == "sm_80 sm_90a"


def test_arrays_of_the_host_run_where_the_code_can(driver):
    script = (
        PROGRAM
        + """
compiled = cute.compile(add, vector(), vector(), target="cuda", arch="sm_80")
z = np.ones(16, np.float32)
compiled(z, z, 1.0)
print("then", compiled.device._driver.current_device())
"""
    )
    lines = run_python(script, driver=driver, FAKE_CUDA_CHIPS="98")
    assert "launch 0x200000 on 1: grid 1 block 32 smem 0 stream (nil)" in lines
    assert lines[-1] == "then 0"


def test_where_there_is_one_device_no_call_asks_for_it(driver):
    script = PROGRAM + "compiled = cute.compile(add, vector(), vector(), target='cuda')\n"
    script += "print('calls')\nrun(compiled, on(0), on(0), 1.0)\nrun(compiled, on(0), on(0), 1.0)\n"
    lines = run_python(script, driver=driver, FAKE_CUDA_DEVICES="1")
    after = lines[lines.index("calls") + 1 :]
    assert after == ["launch 0x200000 on 0: grid 1 block 32 smem 0 stream (nil)", "  plain"] * 2


def test_a_thread_without_a_context_launches(driver):
    script = (
        PROGRAM
        + """
compiled = cute.compile(add, vector(), vector(), target="cuda")
thread = threading.Thread(target=lambda: run(compiled, on(0), on(0), 1.0))
thread.start(); thread.join()
"""
    )
    lines = run_python(script, driver=driver, FAKE_CUDA_DEVICES="1")
    assert lines[-3:] == ["context 0", "launch 0x200000 on 0: grid 1 block 32 smem 0 stream (nil)", "  plain"]


def test_numpy_arguments_are_copied_to_the_current_device(driver):
    script = PROGRAM + "compiled = cute.compile(add, vector(), vector(), target='cuda')\n"
    script += "x = np.ones(16, np.float32)\ncompiled(x, x, 1.0)\nprint(x.sum())\n"
    lines = run_python(script, driver=driver)
    assert lines[-1] == "16.0"
    assert lines[-3].startswith("launch 0x200000 on 0")


def test_a_refused_launch_gives_the_driver_s_number(driver):
    script = (
        PROGRAM
        + """
from tilewright.base.errors import LaunchError
compiled = cute.compile(add, vector(), vector(), target="cuda")
for call in (lambda: run(compiled, on(0), on(0), 1.0), lambda: compiled(memory[:16], memory[:16], 1.0)):
    try:
        call()
    except LaunchError as error:
        print(error.error_code, error.values["error"].split(":")[1].split(",")[0], error.values["block"])
"""
    )
    lines = run_python(script, driver=driver, FAKE_CUDA_DEVICES="1", FAKE_CUDA_LAUNCH="720")
    assert [line.split()[0] for line in lines[-2:]] == ["720", "720"]
    assert all("COOPERATIVE_LAUNCH_TOO_LARGE" in line and "(32, 1, 1)" in line for line in lines[-2:])


def test_events_and_flags_reach_the_driver(driver):
    script = (
        PROGRAM
        + """
compiled = cute.compile(with_events, vector(), vector(), CUstream(1), CUevent(1), 1, True, target="cuda")
run(compiled, on(0), on(0), 0x70, 0xabcde)
"""
    )
    lines = run_python(script, driver=driver, FAKE_CUDA_DEVICES="1")
    start = next(number for number, line in enumerate(lines) if line.startswith("launch"))
    assert lines[start].endswith("stream 0x70")
    assert "  plain" not in lines[start:]
    found = {line.split()[1]: line.split()[2:] for line in lines[start + 1 :]}
    assert found.keys() == {"2:", "6:", "7:", "12:"}
    assert found["2:"][0] == found["6:"][0] == "1"
    assert found["12:"][:3] == [str(0xABCDE), "0", "2"]  # the event, then its flags
    assert found["7:"] == [str(0xABCDE), "0", "0", "1"]  # the event, its flags, trigger at block start


def test_events_on_the_emulator(monkeypatch):
    seen = []
    read = LaunchConfig.read.__func__
    monkeypatch.setattr(LaunchConfig, "read", classmethod(lambda cls, raw: seen.append(read(cls, raw)) or seen[-1]))
    compiled = cute.compile(with_events, vector(), vector(), CUstream(), CUevent(5), 0, False, target="emu")
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    compiled(x, y, CUstream(9), CUevent(5))
    assert (y == x + 1).all()
    assert [(config.stream, config.cooperative, config.pdl, config.events) for config in seen] == [
        (9, True, False, (abi.ATTRIBUTE_PROGRAMMATIC_EVENT, abi.ATTRIBUTE_COMPLETION_EVENT))
    ]


def test_an_event_that_is_none():
    @cute.jit
    def wrong(x: cute.Tensor, y: cute.Tensor):
        add_kernel(x, y, 1.0).launch(grid=1, block=32, launch_completion_event=3)

    with pytest.raises(CompileError, match="launch_completion_event is int") as caught:
        cute.compile(wrong, vector(), vector(), target="emu")
    assert "CUevent argument" in caught.value.hint
    assert caught.value.location is not None
