"""The examples of the tutorial on communication, as they stand where they are right, and mended where they are not."""

import numpy as np
import pytest

import tilewright.cute as cute
from tests.comm import cases
from tilewright import CompileError, CutlassDSL, EmulationError, dsl_user_op
from tilewright.cute.arch import (
    fence_acq_rel_cluster,
    fence_acq_rel_cta,
    lane_id,
    shuffle_sync_op,
    sync_threads,
    thread_idx,
    warp_id,
    warp_sync_op,
)

# Communication primitives


@dsl_user_op
def warp_allreduce(value, *, loc=None, ip=None):
    """All-reduce within a warp."""
    warp_sync_op(loc=loc, ip=ip)

    result = value
    for offset in [16, 8, 4, 2, 1]:
        other = shuffle_sync_op(result, offset, loc=loc, ip=ip)
        result = result + other

    return result


@dsl_user_op
def mended_warp_allreduce(value, *, loc=None, ip=None):
    """The same by the butterfly."""
    warp_sync_op(loc=loc, ip=ip)

    result = value
    for offset in [16, 8, 4, 2, 1]:
        other = shuffle_sync_op(result, offset, kind="bfly", loc=loc, ip=ip)
        result = result + other

    return result


def test_warp_allreduce_reads_the_lanes_that_it_names():
    """As it stands it reads lanes 16, 8, 4, 2 and 1, the kind of a shuffle being idx; by the butterfly it sums."""
    x = np.arange(64, dtype=np.float32)
    found, _ = cases.rows(lambda v, _: [warp_allreduce(v), mended_warp_allreduce(v)], x, 2, block=(64, 1, 1))
    for first in (0, 32):
        lanes = x[first : first + 32].copy()
        for offset in (16, 8, 4, 2, 1):
            lanes = lanes + lanes[offset]
        np.testing.assert_array_equal(found[0, first : first + 32], lanes)
        assert (found[1, first : first + 32] == x[first : first + 32].sum()).all()


@dsl_user_op
def block_allreduce(value, shared_mem, *, loc=None, ip=None):
    """All-reduce within a thread block."""
    # Reduce within warps first
    warp_result = mended_warp_allreduce(value, loc=loc, ip=ip)

    # Store warp results in shared memory
    warp_id_val = warp_id(loc=loc, ip=ip)
    lane_id_val = lane_id(loc=loc, ip=ip)

    if lane_id_val == 0:
        shared_mem[warp_id_val] = warp_result

    # Block synchronization
    fence_acq_rel_cta(loc=loc, ip=ip)

    # Reduce across warps
    if warp_id_val == 0:
        warp_data = shared_mem[lane_id_val] if lane_id_val < 32 else 0
        final_result = mended_warp_allreduce(warp_data, loc=loc, ip=ip)
        if lane_id_val == 0:
            shared_mem[0] = final_result

    fence_acq_rel_cta(loc=loc, ip=ip)
    return shared_mem[0]


@dsl_user_op
def mended_block_allreduce(value, shared_mem, warps, *, loc=None, ip=None):
    """The same with barriers, and a guard by the number of warps."""
    warp_result = mended_warp_allreduce(value, loc=loc, ip=ip)

    warp_id_val = warp_id(loc=loc, ip=ip)
    lane_id_val = lane_id(loc=loc, ip=ip)

    if lane_id_val == 0:
        shared_mem[warp_id_val] = warp_result

    sync_threads(loc=loc, ip=ip)

    if warp_id_val == 0:
        warp_data = shared_mem[lane_id_val] if lane_id_val < warps else 0.0
        final_result = mended_warp_allreduce(warp_data, loc=loc, ip=ip)
        if lane_id_val == 0:
            shared_mem[0] = final_result

    sync_threads(loc=loc, ip=ip)
    return shared_mem[0]


def shared(count):
    return cute.make_tensor(cute.arch.alloc_smem(cute.Float32, count), cute.make_layout(count))


def test_block_allreduce_needs_barriers_where_it_has_fences():
    x = np.arange(128, dtype=np.float32)
    with pytest.raises(EmulationError, match=r"[Rr]ace|never written"):
        cases.rows(lambda v, _: [block_allreduce(v, shared(32))], x, 1, block=(128, 1, 1))
    found, _ = cases.rows(lambda v, _: [mended_block_allreduce(v, shared(32), 4)], x, 1, block=(128, 1, 1))
    assert (found == x.sum()).all()


@dsl_user_op
def cluster_broadcast(value, src_block=0, *, loc=None, ip=None):
    """Broadcast across thread block cluster."""
    block_id = cute.block_idx_x()

    # Cluster synchronization
    fence_acq_rel_cluster(loc=loc, ip=ip)

    # Implementation depends on cluster shared memory
    # or other coordination mechanisms
    return value + 0 * block_id


def test_cluster_broadcast_is_a_stub_that_the_library_has():
    def body(v, _):
        return [cluster_broadcast(v), cute.cluster_broadcast(v, 1)]

    x = np.arange(128, dtype=np.int32)
    found, _ = cases.rows(body, x, 2, grid=(2, 1, 1), block=(64, 1, 1), cluster=(2, 1, 1))
    np.testing.assert_array_equal(found[0], x)
    assert (found[1] == 64).all()


# Custom communication kernel


@cute.kernel
def distributed_training_kernel(
    gradients: cute.TensorView, parameters: cute.TensorView, learning_rate: float, world_size: int
):
    """Kernel with built-in gradient all-reduce."""
    tid = thread_idx()[0]

    # Load gradient
    grad = gradients[tid]

    # All-reduce gradients across processes
    reduced_grad = mended_warp_allreduce(grad)

    # Average by world size
    avg_grad = reduced_grad / world_size

    # Update parameters
    param = parameters[tid]
    updated_param = param - learning_rate * avg_grad
    parameters[tid] = updated_param


@cute.jit
def train(gradients: cute.TensorView, parameters: cute.TensorView, learning_rate: float, world_size: int):
    distributed_training_kernel(gradients, parameters, learning_rate, world_size).launch(grid=1, block=32)


def test_the_training_kernel_reduces_within_its_warp():
    random = np.random.default_rng(0)
    gradients, parameters = random.standard_normal((2, 32)).astype(np.float32)
    wanted = parameters - 0.5 * gradients.astype(np.float64).sum() / 32
    train(gradients, parameters, 0.5, 32)
    np.testing.assert_allclose(parameters, wanted, rtol=1e-5, atol=1e-6)


# Custom pipeline for communication


class CommunicationOptimizedDSL(CutlassDSL):
    def __init__(self, comm_type="allreduce", **kwargs):
        super().__init__(**kwargs)
        self.comm_type = comm_type

    def _get_pipeline(self, pipeline):
        if pipeline is None:
            return (
                "builtin.module("
                f"communication-analysis{{type={self.comm_type}}},"
                "communication-optimization,"
                "cute-to-nvvm{cubin-format=bin "
                + self.compile_options.to_str()
                + "})"
            )  # fmt: skip
        return super()._get_pipeline(pipeline)


def optimized(dsl):
    """What `optimized_kernel` of the tutorial means: a kernel, and the function that launches it."""

    @dsl.kernel
    def optimized_kernel(data: cute.Tensor, out: cute.Tensor):
        # Kernel will be optimized for all-reduce operations
        i = thread_idx()[0]
        result = cute.allreduce_sum(data[i])
        out[i] = result + cute.allreduce_sum(1.0) + cute.broadcast(data[0] * 0 + 1)

    @dsl.jit
    def launch(data: cute.Tensor, out: cute.Tensor):
        optimized_kernel(data, out).launch(grid=1, block=128)

    return launch


@pytest.mark.parametrize("comm_type", ("allreduce", "broadcast", "all"))
def test_a_language_whose_pipeline_has_the_passes(comm_type):
    """Only collectives of the type asked for are improved: an all-reduce of 1 is 128."""
    dsl = CommunicationOptimizedDSL(comm_type=comm_type)
    data, out = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    compiled = cute.compile(optimized(dsl), data, out)
    compiled(data, out)
    assert (out == data.sum() + 129).all()
    assert f"communication-analysis{{type={comm_type} " in compiled.pipeline
    folds = sum("all-reduce" in line for kernel in compiled.report().kernels for line in kernel.communication)
    assert folds == (2 if comm_type == "broadcast" else 1)
    optimized(dsl)(data, out)  # called without compiling first


def test_device_code_stands_in_a_kernel():
    dsl = CommunicationOptimizedDSL(comm_type="allreduce")

    @dsl.jit
    def optimized_kernel(data: cute.Tensor):
        # Kernel will be optimized for all-reduce operations
        result = cute.allreduce_sum(data)
        return result

    with pytest.raises(CompileError, match="a collective is device code, and this function is host code") as raised:
        optimized_kernel(np.zeros(128, np.float32))
    assert "@cute.kernel" in str(raised.value)
