"""The driver's Python side on a library that only records: what is asked, opted in to, freed, and raised."""

import ctypes
import gc
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.nvidia.fake_cuda import HOPPER, FakeCuda
from tilewright.base.errors import CudaDriverDependencyError, LaunchError
from tilewright.targets.nvidia.devices import driver as driver_module
from tilewright.targets.nvidia.devices import driver_api, driver_errors
from tilewright.targets.nvidia.devices.driver import Driver, launch_config, launch_error

CUBIN = b"\x7fELF cubin"


def loaded(fake: FakeCuda):
    return Driver(fake).load_library(CUBIN).kernel("k")


def headers() -> Path | None:
    spec = importlib.util.find_spec("nvidia")
    for base in spec.submodule_search_locations if spec is not None else ():
        for header in Path(base).glob("*/include/cuda.h"):
            return header.parent
    return None


def test_structures_and_numbers_are_those_of_the_header(tmp_path):
    compiler, folder = shutil.which("cc"), headers()
    if compiler is None or folder is None:
        pytest.skip("needs a C compiler and cuda.h (nvidia-cuda-runtime)")
    program = tmp_path / "layout"
    source = Path(__file__).with_name("driver_layout.c")
    subprocess.run([compiler, f"-I{folder}", str(source), "-o", str(program)], check=True)
    text = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    said = {name: int(value) for name, value in (line.split() for line in text.splitlines())}
    config, attribute = driver_api.LaunchConfig, driver_api.LaunchAttribute
    assert (ctypes.sizeof(config), ctypes.sizeof(attribute)) == (said.pop("config"), said.pop("attribute"))
    assert (said.pop("value.cluster.y"), said.pop("value.cooperative")) == (4, 0)
    for name, value in said.items():
        kind, _, field = name.partition(".")
        mine = {
            "config": lambda: getattr(config, field).offset,  # noqa: B023
            "attribute": lambda: getattr(attribute, field).offset,  # noqa: B023
            "func": lambda: driver_api.FUNC_ATTRIBUTES[field],  # noqa: B023
            "device": lambda: driver_api.DEVICE_ATTRIBUTES[field],  # noqa: B023
        }.get(kind, lambda: getattr(driver_api, name))()  # noqa: B023
        assert mine == value, name
    assert {name.partition(".")[2] for name in said if name.startswith("device.")} == set(driver_api.DEVICE_ATTRIBUTES)


def test_error_codes_and_signatures_are_those_of_the_header():
    folder = headers()
    if folder is None:
        pytest.skip("needs cuda.h (nvidia-cuda-runtime)")
    text = (folder / "cuda.h").read_text(errors="replace")
    codes = {int(code): name for name, code in re.findall(r"^\s*(CUDA_ERROR_\w+)\s*=\s*(\d+)", text, re.MULTILINE)}
    assert {code: error.name for code, error in driver_errors.ERRORS.items()}.items() <= codes.items()
    plain = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for name, arguments in driver_api.SIGNATURES.items():
        declared = name.removesuffix("_v2").removesuffix("WithFlags")  # the header's macros give the rest
        found = re.search(rf"CUDAAPI\s+{declared}\s*\(([^)]*)\)", plain)
        assert found, name
        parameters = [part for part in found[1].split(",") if part.strip() not in ("", "void")]
        assert len(parameters) == len(arguments), name


def test_what_is_said_of_a_device():
    device = Driver(FakeCuda()).device(0)
    assert (device.name, device.capability, device.arch) == ("NVIDIA H100", (9, 0), "sm_90a")
    assert device.attributes["multiprocessors"] == 132
    assert device.memory_bytes == 80 * 2**30
    assert Driver(FakeCuda()).version() == (13, 0)


def test_a_launch_carries_everything():
    fake = FakeCuda()
    kernel = loaded(fake)
    kernel.library.driver.launch(
        kernel, (5, 6, 7), (32, 2, 1), [ctypes.c_uint32(11), ctypes.c_uint32(22)], cluster=(2, 1, 1), shared_bytes=100,
        stream=0x77, cooperative=True,
    )  # fmt: skip
    (seen,) = fake.launched
    assert (seen["grid"], seen["block"], seen["shared"], seen["stream"]) == ((5, 6, 7), (32, 2, 1), 100, 0x77)
    assert seen["attributes"] == {4: [2, 1, 1], 2: [1, 0, 0]}
    assert seen["arguments"] == [11, 22] and seen["kernel"] == kernel.handle
    assert fake.count("cuKernelSetAttribute") == 0


def test_a_plain_launch_has_no_attributes():
    fake = FakeCuda()
    kernel = loaded(fake)
    kernel.library.driver.launch(kernel, (1, 1, 1), (1, 1, 1), [])
    assert fake.launched[0]["attributes"] == {}


def test_a_configuration_keeps_its_attributes_alive():
    configs = [launch_config((1, 1, 1), (n, 1, 1), (n, 2, 1), programmatic=True) for n in range(1, 200)]
    gc.collect()
    for n, config in enumerate(configs, 1):
        assert config.attribute_count == 2
        assert (config.attributes[0].id, list(config.attributes[0].value[:3])) == (4, [n, 2, 1])
        assert (config.attributes[1].id, config.attributes[1].value[0]) == (6, 1)


def test_opting_in_to_shared_memory_and_large_clusters():
    fake = FakeCuda()
    kernel = loaded(fake)
    opted = lambda: [(a[0], a[1]) for name, a in fake.calls if name == "cuKernelSetAttribute"]  # noqa: E731
    kernel.allow(0, shared_bytes=48 * 1024, cluster_blocks=8)
    assert opted() == []
    kernel.allow(0, shared_bytes=48 * 1024 + 1)
    kernel.allow(0, shared_bytes=1000)
    kernel.allow(0, shared_bytes=48 * 1024 + 1)
    assert opted() == [(8, 48 * 1024 + 1)]
    kernel.allow(0, cluster_blocks=16)
    kernel.allow(0, cluster_blocks=16)
    assert opted()[1:] == [(14, 1)]
    kernel.allow(1, cluster_blocks=16)
    assert opted()[2:] == [(14, 1)]


def test_static_shared_memory_counts_towards_the_limit():
    fake = FakeCuda()
    fake.static_shared = 40 * 1024
    kernel = loaded(fake)
    kernel.allow(0, shared_bytes=9 * 1024)
    assert fake.count("cuKernelSetAttribute") == 1


def test_a_refused_opt_in_is_an_error_and_is_tried_again():
    fake = FakeCuda(cuKernelSetAttribute=1)
    kernel = loaded(fake)
    for _ in range(2):
        with pytest.raises(LaunchError, match="CUDA_ERROR_INVALID_VALUE in cuKernelSetAttribute"):
            kernel.allow(0, shared_bytes=300_000)


def test_things_are_released_with_their_owner():
    fake = FakeCuda()
    opened = Driver(fake)
    kernel = opened.load_library(CUBIN).kernel("k")
    gc.collect()
    assert fake.count("cuLibraryUnload") == 0  # the kernel keeps its library
    buffer, stream = opened.allocate(100), opened.new_stream()
    address = buffer.address
    del kernel, buffer, stream
    gc.collect()
    assert (fake.count("cuLibraryUnload"), fake.count("cuStreamDestroy_v2")) == (1, 1)
    assert [a for name, a in fake.calls if name == "cuMemFree_v2"] == [(address,)]


def test_releasing_twice_frees_once():
    fake = FakeCuda()
    buffer = Driver(fake).allocate(0)
    assert [a[1] for name, a in fake.calls if name == "cuMemAlloc_v2"] == [1]
    buffer.free()
    buffer.free()
    assert fake.count("cuMemFree_v2") == 1


def test_the_primary_context_is_retained_once_and_a_foreign_one_is_kept():
    fake = FakeCuda()
    opened = Driver(fake)
    opened.current_device()
    fake.context = 0
    opened.current_device()
    assert (fake.count("cuDevicePrimaryCtxRetain"), fake.count("cuCtxSetCurrent")) == (1, 2)
    fake.context = 0xABC
    opened.current_device()
    assert fake.context == 0xABC


def test_copies_and_waits_name_their_stream():
    fake = FakeCuda()
    opened = Driver(fake)
    opened.copy_to_device(0x10, 0x20, 8, stream=5)
    opened.copy_to_host(0x20, 0x10, 8, stream=5)
    opened.synchronize(5)
    opened.synchronize()
    assert fake.calls == [
        ("cuMemcpyHtoDAsync_v2", (0x10, 0x20, 8, 5)),
        ("cuMemcpyDtoHAsync_v2", (0x20, 0x10, 8, 5)),
        ("cuStreamSynchronize", (5,)),
        ("cuCtxSynchronize", ()),
    ]


def test_occupancy_is_the_drivers_answer():
    assert loaded(FakeCuda()).blocks_per_sm(128, 64 * 1024) == 3


def test_clusters_are_asked_for_as_they_would_be_launched():
    fake = FakeCuda()
    assert loaded(fake).active_clusters((2, 1, 1), (64, 1, 1), 200 * 1024, 0x77) == 66
    assert (fake.asked, fake.asked_cluster) == (((2, 1, 1), (64, 1, 1), 200 * 1024, 0x77), [2, 1, 1])


def test_clusters_of_one_block_are_blocks():
    assert loaded(FakeCuda()).active_clusters((1, 1, 1), (64, 1, 1), 200 * 1024) == 3 * HOPPER["multiprocessors"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, "check grid, block, cluster and shared memory"),
        (2, "free tensors"),
        (209, "compiled for another architecture"),
        (700, "TILEWRIGHT_TARGET=emu"),
        (701, "--maxrregcount"),
        (912, "smaller cluster"),
        (4711, "CUDA error 4711"),
    ],
)
def test_errors_have_name_meaning_and_hint(code, words):
    error = launch_error(code, "cuLaunchKernelEx", {"grid": (1, 1, 1)})
    assert words in str(error) and "cuLaunchKernelEx" in str(error) and "grid" in str(error)
    assert isinstance(error, RuntimeError)
    assert ("start a new process" in str(error)) == (code == 700)


def test_a_refused_launch_shows_its_configuration():
    fake = FakeCuda(cuLaunchKernelEx=1)
    kernel = loaded(fake)
    with pytest.raises(LaunchError) as error:
        kernel.library.driver.launch(kernel, (1, 1, 1), (2048, 1, 1), [])
    assert "(2048, 1, 1)" in str(error.value) and "CUDA_ERROR_INVALID_VALUE" in str(error.value)


def test_an_unknown_kernel_is_named():
    with pytest.raises(LaunchError, match="CUDA_ERROR_NOT_FOUND in cuLibraryGetKernel") as error:
        loaded(FakeCuda(cuLibraryGetKernel=500))
    assert "k" in error.value.values["kernel"]


def test_the_address_of_a_function():
    prototype = ctypes.CFUNCTYPE(ctypes.c_int)
    function = prototype(lambda: 0)
    fake = type("Library", (), {"cuLaunchKernelEx": function})()
    assert Driver(fake).address("cuLaunchKernelEx") == ctypes.cast(function, ctypes.c_void_p).value


@pytest.fixture
def fresh():
    driver_module._open.cache_clear()
    yield
    driver_module._open.cache_clear()


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (OSError("not found"), "no NVIDIA driver: libcuda.so.1 was not found"),
        (AttributeError("cuLibraryLoadData"), "too old"),
        (FakeCuda(cuInit=100), "CUDA_ERROR_NO_DEVICE, no CUDA device was found"),
    ],
)
def test_why_there_is_no_driver(load, reason, fresh, monkeypatch):
    def give(name=driver_api.LIBRARY):
        if isinstance(load, Exception):
            raise load
        return load

    monkeypatch.setattr(driver_api, "load", give)
    assert not driver_module.available()
    assert reason in driver_module.unavailable_reason()
    with pytest.raises(CudaDriverDependencyError, match=reason) as error:
        driver_module.driver()
    assert "TILEWRIGHT_TARGET=emu" in error.value.hint


def test_a_device_is_found_and_code_for_another_is_refused(fresh, monkeypatch):
    monkeypatch.setattr(driver_api, "load", lambda: FakeCuda())
    assert driver_module.available() and driver_module.unavailable_reason() == ""
    for arch in ("sm_90", "sm_90a"):
        driver_module.check_device(arch)
    for arch in ("sm_80", "sm_100a", "sm_120"):
        with pytest.raises(LaunchError, match="another architecture than the device's") as error:
            driver_module.check_device(arch)
        assert "sm_90a" in error.value.hint


def test_peer_access_is_asked_for_once_and_the_context_stays():
    fake = FakeCuda()
    driver = Driver(fake)
    driver.make_current(0)
    before = fake.context
    driver.enable_peer_access(0, 1)
    (peer, flags) = next(arguments for name, arguments in fake.calls if name == "cuCtxEnablePeerAccess")
    assert (peer.value, flags) == (driver._contexts[1], 0)
    assert fake.context == before
    Driver(FakeCuda(cuCtxEnablePeerAccess=704)).enable_peer_access(0, 1)  # it was enabled already
    with pytest.raises(LaunchError, match="cuCtxEnablePeerAccess") as raised:
        Driver(FakeCuda(cuCtxEnablePeerAccess=101)).enable_peer_access(0, 1)
    assert "peer" in str(raised.value)
