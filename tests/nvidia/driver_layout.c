/* Sizes, offsets and numbers of the CUDA driver API, printed from its header for the tests. */
#include <stddef.h>
#include <stdio.h>
#include "cuda.h"

#define SHOW(name, value) printf("%s %zu\n", name, (size_t)(value))

int main(void) {
    SHOW("config", sizeof(CUlaunchConfig));
    SHOW("config.grid", offsetof(CUlaunchConfig, gridDimX));
    SHOW("config.block", offsetof(CUlaunchConfig, blockDimX));
    SHOW("config.shared_bytes", offsetof(CUlaunchConfig, sharedMemBytes));
    SHOW("config.stream", offsetof(CUlaunchConfig, hStream));
    SHOW("config.attributes", offsetof(CUlaunchConfig, attrs));
    SHOW("config.attribute_count", offsetof(CUlaunchConfig, numAttrs));
    SHOW("attribute", sizeof(CUlaunchAttribute));
    SHOW("attribute.id", offsetof(CUlaunchAttribute, id));
    SHOW("attribute.value", offsetof(CUlaunchAttribute, value));
    SHOW("value.cluster.y", offsetof(CUlaunchAttributeValue, clusterDim.y));
    SHOW("value.cooperative", offsetof(CUlaunchAttributeValue, cooperative));
    SHOW("CLUSTER_DIMENSION", CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    SHOW("COOPERATIVE", CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    SHOW("PROGRAMMATIC_STREAM_SERIALIZATION", CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    SHOW("FUNC_MAX_DYNAMIC_SHARED", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    SHOW("FUNC_NON_PORTABLE_CLUSTER", CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    SHOW("func.max_threads_per_block", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    SHOW("func.shared_bytes", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    SHOW("func.constant_bytes", CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    SHOW("func.local_bytes", CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    SHOW("func.registers", CU_FUNC_ATTRIBUTE_NUM_REGS);
    SHOW("func.binary_version", CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    SHOW("func.max_dynamic_shared_bytes", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    SHOW("device.max_threads_per_block", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    SHOW("device.shared_per_block", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    SHOW("device.warp_size", CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    SHOW("device.registers_per_block", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    SHOW("device.clock_khz", CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    SHOW("device.multiprocessors", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    SHOW("device.l2_bytes", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    SHOW("device.threads_per_sm", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    SHOW("device.capability_major", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    SHOW("device.capability_minor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    SHOW("device.shared_per_sm", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    SHOW("device.registers_per_sm", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    SHOW("device.cooperative_launch", CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
    SHOW("device.shared_optin", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    SHOW("device.blocks_per_sm", CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    SHOW("device.shared_reserved", CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    SHOW("device.cluster_launch", CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
    SHOW("device.multicast", CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
    return 0;
}
