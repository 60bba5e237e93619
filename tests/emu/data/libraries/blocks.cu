// Block- and warp-wide algorithms of CUB.
// PTX: scripts/build_library_ptx.py
#include <cub/cub.cuh>
#include <cub/block/block_shuffle.cuh>

#define KERNEL extern "C" __global__ void
constexpr int THREADS = 128, ITEMS = 4, TILE = THREADS * ITEMS;

// The sum of `n` numbers of each block's part; what lies beyond the end is left out by the guarded load.
template <cub::BlockReduceAlgorithm ALGORITHM> __device__ void block_sum(const int* in, int* out, int n) {
    using Load = cub::BlockLoad<int, THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE>;
    using Reduce = cub::BlockReduce<int, THREADS, ALGORITHM>;
    __shared__ union { typename Load::TempStorage load; typename Reduce::TempStorage reduce; } temp;
    int items[ITEMS], start = blockIdx.x * TILE;
    Load(temp.load).Load(in + start, items, min(TILE, n - start), 0);
    __syncthreads();
    int sum = Reduce(temp.reduce).Sum(items);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
KERNEL reduce_warps(const int* in, int* out, int n) { block_sum<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(in, out, n); }
KERNEL reduce_raking(const int* in, int* out, int n) { block_sum<cub::BLOCK_REDUCE_RAKING>(in, out, n); }
KERNEL reduce_commutative(const int* in, int* out, int n) { block_sum<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(in, out, n); }

// The largest of the first `n` threads' numbers, with a position.
KERNEL reduce_argmax(const float* in, int* out, int n) {
    using Pair = cub::KeyValuePair<int, float>;
    using Reduce = cub::BlockReduce<Pair, THREADS>;
    __shared__ typename Reduce::TempStorage temp;
    Pair mine;
    if (int(threadIdx.x) < n) mine = Pair(threadIdx.x, in[threadIdx.x]);  // the others' pairs stay unwritten
    Pair best = Reduce(temp).Reduce(mine, cub::ArgMax(), n);
    if (threadIdx.x == 0) out[0] = best.key;
}

template <cub::BlockScanAlgorithm ALGORITHM> __device__ void block_scan(const unsigned* in, unsigned* out) {
    using Load = cub::BlockLoad<unsigned, THREADS, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<unsigned, THREADS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    using Scan = cub::BlockScan<unsigned, THREADS, ALGORITHM>;
    __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; typename Scan::TempStorage scan; } temp;
    unsigned items[ITEMS], total;
    Load(temp.load).Load(in, items);
    __syncthreads();
    Scan(temp.scan).ExclusiveSum(items, items, total);
    __syncthreads();
    Store(temp.store).Store(out, items);
    if (threadIdx.x == 0) out[TILE] = total;
}
KERNEL scan_raking(const unsigned* in, unsigned* out) { block_scan<cub::BLOCK_SCAN_RAKING>(in, out); }
KERNEL scan_memoize(const unsigned* in, unsigned* out) { block_scan<cub::BLOCK_SCAN_RAKING_MEMOIZE>(in, out); }
KERNEL scan_warps(const unsigned* in, unsigned* out) { block_scan<cub::BLOCK_SCAN_WARP_SCANS>(in, out); }

// A sort of keys with values by four bits a pass.
KERNEL radix_sort(const int* keys, const int* values, int* sorted, int* moved) {
    using Sort = cub::BlockRadixSort<int, THREADS, ITEMS, int>;
    __shared__ typename Sort::TempStorage temp;
    int key[ITEMS], value[ITEMS];
    cub::LoadDirectBlocked(threadIdx.x, keys, key);
    cub::LoadDirectBlocked(threadIdx.x, values, value);
    Sort(temp).Sort(key, value);
    cub::StoreDirectBlocked(threadIdx.x, sorted, key);
    cub::StoreDirectBlocked(threadIdx.x, moved, value);
}

struct Less { __device__ bool operator()(int a, int b) const { return a < b; } };

// A stable sort of the first `n` keys by merging; what lies beyond counts as greatest.
KERNEL merge_sort(const int* keys, int* sorted, int n) {
    using Sort = cub::BlockMergeSort<int, THREADS, ITEMS>;
    __shared__ typename Sort::TempStorage temp;
    int key[ITEMS];
    cub::LoadDirectBlocked(threadIdx.x, keys, key, n, 0x7fffffff);
    Sort(temp).Sort(key, Less(), n, 0x7fffffff);
    cub::StoreDirectBlocked(threadIdx.x, sorted, key, n);
}

template <cub::BlockHistogramAlgorithm ALGORITHM> __device__ void block_histogram(const unsigned char* in, unsigned* out) {
    using Histogram = cub::BlockHistogram<unsigned char, THREADS, ITEMS, 64, ALGORITHM>;
    __shared__ typename Histogram::TempStorage temp;
    __shared__ unsigned bins[64];
    unsigned char items[ITEMS];
    cub::LoadDirectStriped<THREADS>(threadIdx.x, in, items);
    Histogram(temp).Histogram(items, bins);
    __syncthreads();
    if (threadIdx.x < 64) out[threadIdx.x] = bins[threadIdx.x];
}
KERNEL histogram_sort(const unsigned char* in, unsigned* out) { block_histogram<cub::BLOCK_HISTO_SORT>(in, out); }
KERNEL histogram_atomic(const unsigned char* in, unsigned* out) { block_histogram<cub::BLOCK_HISTO_ATOMIC>(in, out); }

// Where neighbours differ, and how far apart they are.
KERNEL discontinuity(const int* in, int* heads, int* differences) {
    using Heads = cub::BlockDiscontinuity<int, THREADS>;
    using Differences = cub::BlockAdjacentDifference<int, THREADS>;
    __shared__ union { typename Heads::TempStorage heads; typename Differences::TempStorage differences; } temp;
    int items[ITEMS], flags[ITEMS], apart[ITEMS];
    cub::LoadDirectBlocked(threadIdx.x, in, items);
    Heads(temp.heads).FlagHeads(flags, items, cuda::std::not_equal_to<>{});
    __syncthreads();
    Differences(temp.differences).SubtractLeft(items, apart, cuda::std::minus<>{});
    cub::StoreDirectBlocked(threadIdx.x, heads, flags);
    cub::StoreDirectBlocked(threadIdx.x, differences, apart);
}

// From blocked to striped order and, by ranks, back to front.
KERNEL exchange(const short* in, short* striped, short* reversed) {
    using Exchange = cub::BlockExchange<short, THREADS, ITEMS>;
    __shared__ typename Exchange::TempStorage temp;
    short items[ITEMS];
    int ranks[ITEMS];
    cub::LoadDirectBlocked(threadIdx.x, in, items);
    Exchange(temp).BlockedToStriped(items, items);
    cub::StoreDirectStriped<THREADS>(threadIdx.x, striped, items);
    for (int k = 0; k < ITEMS; k++) ranks[k] = TILE - 1 - (threadIdx.x + k * THREADS);
    __syncthreads();
    Exchange(temp).ScatterToBlocked(items, ranks);
    cub::StoreDirectBlocked(threadIdx.x, reversed, items);
}

// Runs of given lengths written out.
KERNEL run_lengths(const int* values, const int* lengths, int* out, int* total) {
    using Decode = cub::BlockRunLengthDecode<int, THREADS, 1, ITEMS>;
    __shared__ typename Decode::TempStorage temp;
    int value[1] = {values[threadIdx.x]}, length[1] = {lengths[threadIdx.x]}, size = 0;
    Decode decode(temp, value, length, size);
    for (int start = 0; start < size; start += TILE) {
        int items[ITEMS];
        decode.RunLengthDecode(items, start);
        for (int k = 0; k < ITEMS; k++) {
            int place = start + threadIdx.x * ITEMS + k;
            if (place < size) out[place] = items[k];
        }
    }
    if (threadIdx.x == 0) *total = size;
}

// Within warps, and within 8 threads of them.
KERNEL warps(const int* in, int* sums, int* scans, int* small, int* sorted) {
    using Reduce = cub::WarpReduce<int>;
    using Scan = cub::WarpScan<int>;
    using Eight = cub::WarpReduce<int, 8>;
    using Six = cub::WarpReduce<int, 6>;
    using Sort = cub::WarpMergeSort<int, 2>;
    __shared__ union {
        typename Reduce::TempStorage reduce; typename Scan::TempStorage scan; typename Sort::TempStorage sort;
    } temp[THREADS / 32];
    __shared__ typename Eight::TempStorage eight[THREADS / 8];
    int warp = threadIdx.x / 32, value = in[threadIdx.x];
    int sum = Reduce(temp[warp].reduce).Sum(value);
    if (threadIdx.x % 32 == 0) sums[warp] = sum;
    __syncwarp();
    int before;
    Scan(temp[warp].scan).ExclusiveSum(value, before);
    scans[threadIdx.x] = before;
    int most = Eight(eight[threadIdx.x / 8]).Reduce(value, cuda::maximum<int>{});
    if (threadIdx.x % 8 == 0) small[threadIdx.x / 8] = most;
    __syncwarp();
    int keys[2] = {value, -value};
    Sort(temp[warp].sort).Sort(keys, Less());
    sorted[2 * threadIdx.x] = keys[0];
    sorted[2 * threadIdx.x + 1] = keys[1];
}

// Top values of a block, shuffled within it, and a reduction by key.
KERNEL shuffle(const int* in, int* up, int* rotated) {
    using Shuffle = cub::BlockShuffle<int, THREADS>;
    __shared__ typename Shuffle::TempStorage temp;
    int value = in[threadIdx.x], other = -1;
    Shuffle(temp).Offset(value, other, -3);
    up[threadIdx.x] = threadIdx.x < 3 ? -1 : other;
    __syncthreads();
    Shuffle(temp).Rotate(value, other, 5);
    rotated[threadIdx.x] = other;
}
