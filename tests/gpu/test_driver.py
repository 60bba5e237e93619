"""The CUDA driver on a real device, against NumPy and against the driver's own figures."""

import ctypes
import gc

import numpy as np
import pytest

from tests.nvidia import ptx_kernels
from tilewright.base.errors import LaunchError
from tilewright.hw.chips import chip
from tilewright.hw.features import ptx_version
from tilewright.hw.occupancy import occupancy
from tilewright.targets.nvidia.binary.cubin import read_cubin
from tilewright.targets.nvidia.devices.driver import check_device, driver
from tilewright.targets.nvidia.toolkit.assemble import assemble

CLUSTER_RANK = """.visible .entry rank(.param .u64 p)
{
 .reg .b64 q, o; .reg .b32 r, b;
 ld.param.u64 q, [p]; mov.u32 r, %cluster_ctarank; mov.u32 b, %ctaid.x;
 mul.wide.u32 o, b, 4; add.u64 q, q, o; st.global.u32 [q], r;
 ret;
}
"""


@pytest.fixture(scope="module")
def cuda():
    opened = driver()
    opened.make_current(0)
    return opened


@pytest.fixture(scope="module")
def device(cuda):
    return cuda.device(0)


def kernel_of(cuda, device, maker, name):
    return cuda.load_library(assemble(maker(device.arch), device.arch).data).kernel(name)


def upload(cuda, array):
    buffer = cuda.allocate(array.nbytes)
    cuda.copy_to_device(buffer.address, array.ctypes.data, array.nbytes)
    return buffer


def download(cuda, buffer, shape, dtype):
    array = np.empty(shape, dtype)
    cuda.copy_to_host(array.ctypes.data, buffer.address, array.nbytes)
    cuda.synchronize(0)
    return array


def test_the_table_of_chips_is_what_the_device_says(device):
    facts = chip(device.arch)
    said = device.attributes
    assert facts.capability == device.capability
    assert (facts.threads_per_sm, facts.blocks_per_sm) == (said["threads_per_sm"], said["blocks_per_sm"])
    assert (facts.registers_per_sm, facts.registers_per_block) == (
        said["registers_per_sm"],
        said["registers_per_block"],
    )
    assert (facts.shared_per_sm, facts.shared_static) == (said["shared_per_sm"], said["shared_per_block"])
    assert (facts.shared_optin, facts.shared_reserved) == (said["shared_optin"], said["shared_reserved"])
    assert facts.threads_per_block == said["max_threads_per_block"]
    assert bool(said["cluster_launch"]) == (facts.cluster_max > 1)


@pytest.mark.parametrize("own_stream", [False, True])
def test_scaling_an_array(cuda, device, own_stream):
    stream = cuda.new_stream() if own_stream else None
    handle = stream.handle if stream else 0
    x = np.random.default_rng(7).standard_normal(10_001).astype(np.float32)
    source, target = upload(cuda, x), upload(cuda, np.full_like(x, np.nan))
    cuda.synchronize(0)
    kernel = kernel_of(cuda, device, ptx_kernels.scale, "scale")
    arguments = [
        ctypes.c_uint64(target.address), ctypes.c_uint64(source.address), ctypes.c_float(2.5), ctypes.c_uint32(x.size),
    ]  # fmt: skip
    cuda.launch(kernel, (-(-x.size // 256), 1, 1), (256, 1, 1), arguments, stream=handle)
    cuda.synchronize(handle)
    np.testing.assert_array_equal(download(cuda, target, x.shape, x.dtype), x * np.float32(2.5))


def test_metadata_is_what_the_driver_says(cuda, device):
    for maker, name in (
        (ptx_kernels.shared, "shared"),
        (ptx_kernels.spilling, "spilling"),
        (ptx_kernels.scale, "scale"),
    ):
        cubin = assemble(maker(device.arch), device.arch).data
        info, kernel = read_cubin(cubin).kernels[name], cuda.load_library(cubin).kernel(name)
        assert info.registers == kernel.attribute("registers", 0)
        assert info.shared_bytes == kernel.attribute("shared_bytes", 0)
        assert info.local_bytes <= kernel.attribute("local_bytes", 0)
        assert (info.max_block_threads or 1024) >= kernel.attribute("max_threads_per_block", 0)


@pytest.mark.parametrize("registers", [None, 32, 64])
def test_occupancy_is_what_the_driver_says(cuda, device, registers):
    cubin = assemble(ptx_kernels.spilling(device.arch), device.arch, max_registers=registers).data
    kernel, info = cuda.load_library(cubin).kernel("spilling"), read_cubin(cubin).kernels["spilling"]
    optin = chip(device.arch).shared_optin
    for shared in (0, 1, 1000, 20_000, 65_536, optin):
        kernel.allow(0, shared_bytes=shared)
        for block in (1, 32, 96, 128, 192, 256, 384, 512, 768, 1024):
            mine = occupancy(device.arch, info.registers, shared, block, barriers=info.barriers)
            assert mine.blocks_per_sm == kernel.blocks_per_sm(block, shared), (shared, block)


def test_the_worked_example_on_the_device(cuda, device):
    """128 threads, at most 32 registers, 64 KB: 3 blocks on an H100."""
    if device.arch != "sm_90a":
        pytest.skip(f"the example is for an H100, this is {device.name}")
    kernel = kernel_of(cuda, device, ptx_kernels.store, "store")
    kernel.allow(0, shared_bytes=64 * 1024)
    assert kernel.blocks_per_sm(128, 64 * 1024) == 3


def test_all_of_the_shared_memory_opts_in_by_itself(cuda, device):
    kernel = kernel_of(cuda, device, ptx_kernels.dynamic_shared, "dynamic_shared")
    target = upload(cuda, np.zeros(1, np.int32))
    for shared in (16, 48 * 1024 + 16, chip(device.arch).shared_optin):
        cuda.launch(kernel, (1, 1, 1), (64, 1, 1), [ctypes.c_uint64(target.address)], shared_bytes=shared)
        cuda.synchronize(0)
    with pytest.raises(LaunchError, match="CUDA_ERROR_INVALID_VALUE"):
        too_much = chip(device.arch).shared_optin + 16
        cuda.launch(kernel, (1, 1, 1), (64, 1, 1), [ctypes.c_uint64(target.address)], shared_bytes=too_much)


@pytest.mark.parametrize("cluster", [(2, 1, 1), (8, 1, 1), (16, 1, 1)])
def test_clusters_up_to_the_largest(cuda, device, cluster):
    facts = chip(device.arch)
    if cluster[0] > facts.cluster_max:
        pytest.skip(f"{device.name} has clusters of at most {facts.cluster_max}")
    text = ptx_kernels.module(device.arch, CLUSTER_RANK, ptx_version(device.arch, ["cluster"]))
    kernel = cuda.load_library(assemble(text, device.arch).data).kernel("rank")
    target = upload(cuda, np.full(32, -1, np.int32))
    cuda.launch(kernel, (32, 1, 1), (32, 1, 1), [ctypes.c_uint64(target.address)], cluster=cluster)
    np.testing.assert_array_equal(download(cuda, target, (32,), np.int32), np.arange(32) % cluster[0])


def test_launches_that_the_driver_refuses(cuda, device):
    kernel = kernel_of(cuda, device, ptx_kernels.store, "store")
    target = upload(cuda, np.zeros(1, np.int32))
    arguments = [ctypes.c_uint64(target.address)]
    with pytest.raises(LaunchError, match="CUDA_ERROR_INVALID_VALUE") as error:
        cuda.launch(kernel, (1, 1, 1), (2048, 1, 1), arguments)
    assert "(2048, 1, 1)" in str(error.value)
    with pytest.raises(LaunchError, match="CUDA_ERROR_INVALID_VALUE"):
        cuda.launch(kernel, (0, 1, 1), (32, 1, 1), arguments)
    with pytest.raises(LaunchError, match="CUDA_ERROR_NOT_FOUND"):
        kernel.library.kernel("no_such_kernel")
    cuda.launch(kernel, (1, 1, 1), (1, 1, 1), arguments)
    assert download(cuda, target, (1,), np.int32)[0] == 7


def test_code_for_another_chip_is_refused(cuda, device):
    other = "sm_80" if device.arch != "sm_80" else "sm_90"
    with pytest.raises(LaunchError, match="another architecture"):
        check_device(other)
    with pytest.raises(LaunchError, match=r"CUDA_ERROR_(NO_BINARY_FOR_GPU|INVALID_IMAGE)"):
        cuda.load_library(assemble(ptx_kernels.store("sm_120"), "sm_120").data).kernel("store").attribute(
            "registers", 0
        )


@pytest.mark.parametrize("name", ["cuLaunchKernelEx", "cuLaunchKernel"])
def test_the_launch_functions_are_in_the_driver(cuda, name):
    assert cuda.address(name) > 0


def test_memory_comes_back(cuda):
    size = 1 << 28
    for _ in range(800):
        cuda.allocate(size)
    gc.collect()
    assert cuda.allocate(size).address > 0
