/* Answers from NVIDIA's own occupancy calculator, as an independent value for the tests.
 *
 * Reads lines of: major minor threads_per_sm shared_static shared_per_sm shared_optin shared_reserved
 * registers static_shared dynamic_shared block barriers. Writes: blocks, limiting factors, and the limits by warps,
 * registers, shared memory, blocks, barriers, or -1 where the calculator refuses.
 */
#include <stdio.h>
#include "cuda_occupancy.h"

int main(void) {
    cudaOccDeviceProp device = {0};
    cudaOccFuncAttributes function = {0};
    cudaOccDeviceState state = {0};
    int block;
    size_t dynamic;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
    device.maxThreadsPerBlock = 1024;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.numSms = 1;
    function.maxThreadsPerBlock = 1024;
    function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    while (scanf("%d %d %d %zu %zu %zu %zu %d %zu %zu %d %d", &device.computeMajor, &device.computeMinor,
                 &device.maxThreadsPerMultiprocessor, &device.sharedMemPerBlock, &device.sharedMemPerMultiprocessor,
                 &device.sharedMemPerBlockOptin, &device.reservedSharedMemPerBlock, &function.numRegs,
                 &function.sharedSizeBytes, &dynamic, &block, &function.numBlockBarriers) == 12) {
        cudaOccResult result = {0};
        function.maxDynamicSharedSizeBytes = dynamic;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, block, dynamic)) {
            printf("-1\n");
            continue;
        }
        printf("%d %u %d %d %d %d %d\n", result.activeBlocksPerMultiprocessor, result.limitingFactors,
               result.blockLimitWarps, result.blockLimitRegs, result.blockLimitSharedMem, result.blockLimitBlocks,
               result.blockLimitBarriers);
    }
    return 0;
}
