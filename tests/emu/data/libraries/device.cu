// Device-wide algorithms built from CUB's blocks.
// PTX: scripts/build_library_ptx.py
#include <cub/cub.cuh>
#include <cuda/atomic>

#define KERNEL extern "C" __global__ void
constexpr int THREADS = 128, ITEMS = 4, TILE = THREADS * ITEMS;
using State = cub::ScanTileState<int>;

KERNEL look_back_init(int* storage, int tiles) {
    State state;
    size_t size = 0;
    State::AllocationSize(tiles, size);
    state.Init(tiles, storage, size);
    state.InitializeStatus(tiles);
}

// An inclusive scan in one pass: each block looks back at those before it.
KERNEL look_back(int* storage, const int* in, int* out, int tiles) {
    using Prefix = cub::TilePrefixCallbackOp<int, cuda::std::plus<>, State>;
    using Scan = cub::BlockScan<int, THREADS>;
    __shared__ typename Scan::TempStorage scan;
    __shared__ typename Prefix::TempStorage prefix;
    State state;
    size_t size = 0;
    State::AllocationSize(tiles, size);
    state.Init(tiles, storage, size);
    int items[ITEMS], tile = blockIdx.x;
    cub::LoadDirectBlocked(threadIdx.x, in + tile * TILE, items);
    if (tile == 0) {
        int total;
        Scan(scan).InclusiveSum(items, items, total);
        if (threadIdx.x == 0) state.SetInclusive(0, total);
    } else {
        Prefix before(state, prefix, cuda::std::plus<>{}, tile);
        Scan(scan).InclusiveSum(items, items, before);
    }
    cub::StoreDirectBlocked(threadIdx.x, out + tile * TILE, items);
}
