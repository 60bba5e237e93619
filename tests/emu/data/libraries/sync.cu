// Synchronisation and atomics of libcu++ and cooperative groups.
// PTX: scripts/build_library_ptx.py
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/annotated_ptr>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>

#define KERNEL extern "C" __global__ void
namespace cg = cooperative_groups;
// Shared memory for an object that one thread constructs.
#define SHARED(TYPE, NAME, ...) \
    __shared__ alignas(TYPE) unsigned char NAME##_bytes[sizeof(TYPE)]; \
    TYPE& NAME = *reinterpret_cast<TYPE*>(NAME##_bytes); \
    if (threadIdx.x == 0) new (&NAME) TYPE(__VA_ARGS__); \
    __syncthreads()
using Barrier = cuda::barrier<cuda::thread_scope_block>;

// Each thread passes a number to its neighbour, through a barrier with arrival and wait apart.
KERNEL barrier_split(int* data, int rounds) {
    __shared__ Barrier barrier;
    __shared__ int row[256];
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    int value = data[threadIdx.x];
    for (int k = 0; k < rounds; k++) {
        row[threadIdx.x] = value;
        auto token = barrier.arrive();
        barrier.wait(cuda::std::move(token));
        value += row[(threadIdx.x + 1) % blockDim.x];
        barrier.arrive_and_wait();
    }
    data[threadIdx.x] = value;
}

// A barrier that half of the threads leave.
KERNEL barrier_drop(int* data) {
    __shared__ Barrier barrier;
    __shared__ int row[256];
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    row[threadIdx.x] = data[threadIdx.x];
    if (threadIdx.x >= blockDim.x / 2) { barrier.arrive_and_drop(); return; }
    barrier.arrive_and_wait();
    int value = row[threadIdx.x] + row[threadIdx.x + blockDim.x / 2];
    barrier.arrive_and_wait();
    row[threadIdx.x] = value;
    barrier.arrive_and_wait();
    data[threadIdx.x] = row[blockDim.x / 2 - 1 - threadIdx.x];
}

// Bytes that a barrier waits for.
KERNEL barrier_copy(const int* in, int* out) {
    __shared__ Barrier barrier;
    __shared__ alignas(16) int row[256];
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    auto group = cg::this_thread_block();
    cuda::memcpy_async(group, row, in + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof(row)), barrier);
    barrier.arrive_and_wait();
    for (int k = threadIdx.x; k < 256; k += blockDim.x) out[blockIdx.x * 256 + k] = row[255 - k];
}

// Two stages of copies by all threads of a block.
KERNEL pipeline_block(const int* in, int* out, int tiles) {
    constexpr int STAGES = 2;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    __shared__ alignas(16) int rows[STAGES][128];
    auto group = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(group, &state);
    int sum = 0;
    for (int next = 0, tile = 0; tile < tiles; tile++) {
        for (; next < tiles && next < tile + STAGES; next++) {
            pipe.producer_acquire();
            cuda::memcpy_async(group, rows[next % STAGES], in + next * 128, cuda::aligned_size_t<16>(512), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += rows[tile % STAGES][127 - threadIdx.x];
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}

// One warp copies, the others compute.
KERNEL pipeline_roles(const int* in, int* out, int tiles) {
    constexpr int STAGES = 3;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    __shared__ alignas(16) int rows[STAGES][96];
    auto group = cg::this_thread_block();
    auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(group, &state, role);
    if (role == cuda::pipeline_role::producer) {
        for (int tile = 0; tile < tiles; tile++) {
            pipe.producer_acquire();
            for (int k = threadIdx.x; k < 96; k += 32)
                cuda::memcpy_async(&rows[tile % STAGES][k], &in[tile * 96 + k], sizeof(int), pipe);
            pipe.producer_commit();
        }
    } else {
        int sum = 0;
        for (int tile = 0; tile < tiles; tile++) {
            pipe.consumer_wait();
            sum = 3 * sum + rows[tile % STAGES][127 - threadIdx.x];
            pipe.consumer_release();
        }
        out[threadIdx.x - 32] = sum;
    }
}

// Copies of one thread for itself.
KERNEL pipeline_thread(const int* in, int* out, int tiles) {
    __shared__ int rows[4][128];
    cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
    int sum = 0;
    for (int next = 0, tile = 0; tile < tiles; tile++) {
        for (; next < tiles && next < tile + 4; next++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&rows[next % 4][threadIdx.x], &in[next * blockDim.x + threadIdx.x], sizeof(int), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum ^= rows[tile % 4][threadIdx.x] + tile;
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}

template <cuda::std::memory_order ORDER> __device__ void pass_on(int* flag, int* value, int* out) {
    cuda::atomic_ref<int, cuda::thread_scope_device> turn(*flag);
    if (threadIdx.x % 32) return;
    int place = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    constexpr auto READ = ORDER == cuda::std::memory_order_seq_cst ? ORDER : cuda::std::memory_order_acquire;
    constexpr auto WRITE = ORDER == cuda::std::memory_order_seq_cst ? ORDER : cuda::std::memory_order_release;
    while (turn.load(READ) != place) {}
    out[place] = *value;
    *value = 3 * *value + place;
    turn.store(place + 1, WRITE);
}
// Threads of several blocks write a word in turn.
KERNEL turns_release(int* flag, int* value, int* out) { pass_on<cuda::std::memory_order_release>(flag, value, out); }
KERNEL turns_sequential(int* flag, int* value, int* out) { pass_on<cuda::std::memory_order_seq_cst>(flag, value, out); }

// All operations of an atomic, in all orders that they take.
KERNEL atomics(int* words, double* least, unsigned long long* pair) {
    cuda::atomic_ref<int, cuda::thread_scope_device> a(words[0]), b(words[1]), c(words[2]), d(words[3]), e(words[4]);
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    a.fetch_add(t, cuda::std::memory_order_relaxed);
    a.fetch_sub(1, cuda::std::memory_order_acq_rel);
    b.fetch_max(t, cuda::std::memory_order_release);
    c.fetch_or(1 << t % 31, cuda::std::memory_order_acquire);
    d.fetch_xor(t, cuda::std::memory_order_seq_cst);
    int seen = e.load(cuda::std::memory_order_relaxed);
    while (!e.compare_exchange_weak(seen, seen + 2, cuda::std::memory_order_acq_rel, cuda::std::memory_order_relaxed)) {}
    cuda::atomic_ref<double, cuda::thread_scope_device> f(*least);
    f.fetch_min(1.0 - t);
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_system> g(*pair);
    g.fetch_add((1ull << 32) + t, cuda::std::memory_order_seq_cst);
}

// A fence on each side of relaxed accesses; the last block adds up what all have written.
KERNEL last_block(const int* in, int* parts, unsigned* count, int* out) {
    __shared__ bool last;
    parts[blockIdx.x * blockDim.x + threadIdx.x] = 2 * in[blockIdx.x * blockDim.x + threadIdx.x];
    cuda::atomic_thread_fence(cuda::std::memory_order_seq_cst, cuda::thread_scope_device);
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> done(*count);
        last = done.fetch_add(1, cuda::std::memory_order_relaxed) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    int sum = 0;
    for (int block = 0; block < gridDim.x; block++) sum += parts[block * blockDim.x + blockDim.x - 1 - threadIdx.x];
    out[threadIdx.x] = sum;
}

// Threads wait until all others have written.
KERNEL latch(int* data) {
    SHARED(cuda::latch<cuda::thread_scope_block>, all, blockDim.x);
    __shared__ int row[128];
    row[threadIdx.x] = data[threadIdx.x];
    all.arrive_and_wait();
    data[threadIdx.x] = row[threadIdx.x ^ 37];
}

// A few threads at a time.
KERNEL semaphore(int* inside, int* most, int* count) {
    using Semaphore = cuda::counting_semaphore<cuda::thread_scope_block, 3>;
    SHARED(Semaphore, room, 3);
    if (threadIdx.x % 32) return;
    cuda::atomic_ref<int, cuda::thread_scope_device> here(*inside), top(*most), all(*count);
    room.acquire();
    top.fetch_max(here.fetch_add(1) + 1);
    all.fetch_add(1, cuda::std::memory_order_relaxed);
    here.fetch_sub(1);
    room.release();
}

// One thread at a time, through a binary semaphore, with plain accesses inside.
KERNEL mutual_exclusion(int* value) {
    SHARED(cuda::binary_semaphore<cuda::thread_scope_block>, lock, 1);
    if (threadIdx.x % 32) return;
    lock.acquire();
    *value = *value + 1;
    lock.release();
}

// Annotated pointers.
KERNEL annotated(const int* in, int* out, int n) {
    cuda::annotated_ptr<const int, cuda::access_property::streaming> from(in);
    cuda::annotated_ptr<int, cuda::access_property::persisting> to(out);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = 5 * from[i];
}

// Tiles and partitions of a warp, and a reduction and a scan over them.
KERNEL groups(const int* in, int* sums, int* scans, int* counts) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<16>(block);
    int value = in[block.thread_rank()];
    sums[block.thread_rank()] = cg::reduce(tile, value, cg::plus<int>());
    scans[block.thread_rank()] = cg::exclusive_scan(tile, value, cg::plus<int>());
    if (value % 3 == 0) {
        auto some = cg::coalesced_threads();
        counts[block.thread_rank()] = some.size() * 100 + some.thread_rank();
    }
    auto same = cg::labeled_partition(tile, value % 2);
    counts[block.size() + block.thread_rank()] = cg::reduce(same, value, cg::greater<int>());
}

// A copy by a group, and a block that waits for it.
KERNEL group_copy(const int* in, int* out, int n) {
    extern __shared__ int row[];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, row, in, sizeof(int) * n);
    cg::wait(block);
    for (int k = block.thread_rank(); k < n; k += block.size()) out[k] = row[n - 1 - k];
}
