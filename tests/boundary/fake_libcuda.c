// A CUDA driver with two devices and no GPU, for tests: it prints what it is asked, and keeps a context per thread.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread uintptr_t current; // 0: none; else device + 1

struct attribute { uint32_t id, pad, value[16]; };
struct config { uint32_t grid[3], block[3], smem; void *stream; struct attribute *attributes; uint32_t count; };

#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

// Like the driver, it does not work in a process that was forked after it began to.
static pid_t owner;
#define OWNED do { if (owner != getpid()) return 3; } while (0)

int cuInit(unsigned flags) {
  (void)flags;
  const char *fail = getenv("FAKE_CUDA_FAIL");
  if (!owner) owner = getpid();
  OWNED;
  return fail ? atoi(fail) : 0;
}
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { const char *some = getenv("FAKE_CUDA_DEVICES"); *count = some ? atoi(some) : 2; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "Fake H100 %d", device); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = 1ull << 36; return 0; }
int cuDeviceGetAttribute(int *value, int id, int device) {
  const char *chips = getenv("FAKE_CUDA_CHIPS"); // one letter a device: its major number
  *value = id == 75 ? (chips ? chips[device] - '0' : 9) : id == 76 ? 0 : id == 97 ? 232448 : id == 16 ? 132 : 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { SAY("retain %d\n", device); *context = (void *)(uintptr_t)(device + 1); return 0; }
int cuCtxGetCurrent(void **context) { OWNED; *context = (void *)current; return 0; }
int cuCtxSetCurrent(void *context) { current = (uintptr_t)context; SAY("context %d\n", (int)current - 1); return 0; }
int cuCtxGetDevice(int *device) { OWNED; if (!current) return 201; *device = (int)current - 1; return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuCtxEnablePeerAccess(void *peer, unsigned flags) {
  (void)flags;
  SAY("peer access of %d to %d\n", (int)current - 1, (int)(uintptr_t)peer - 1);
  return 0;
}
int cuLibraryLoadData(void **library, const char *image, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  OWNED;
  SAY("load %s\n", memcmp(image, "\x7f" "ELF", 4) ? "garbage" : "cubin");
  *library = (void *)0x100000;
  return 0;
}
int cuLibraryUnload(void *library) { (void)library; SAY("unload\n"); return 0; }
int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  (void)library;
  SAY("kernel %s\n", name);
  *kernel = (void *)0x200000;
  return 0;
}
int cuLibraryGetGlobal(uint64_t *address, size_t *size, void *library, const char *name) {
  (void)address, (void)size, (void)library, (void)name;
  return 500; // no such variable
}
int cuKernelGetFunction(void **function, void *kernel) { *function = kernel; return 0; }
int cuKernelGetAttribute(int *value, int id, void *kernel, int device) { (void)kernel, (void)device; *value = id == 1 ? 1024 : 0; return 0; }
int cuKernelSetAttribute(int id, int value, void *kernel, int device) {
  (void)kernel;
  SAY("attribute %d = %d on %d\n", id, value, device);
  return 0;
}
int cuLaunchKernelEx(const struct config *c, void *kernel, void **params, void **extra) {
  (void)params, (void)extra;
  OWNED;
  if (!current) return 201;
  if (getenv("FAKE_CUDA_LAUNCH")) return atoi(getenv("FAKE_CUDA_LAUNCH"));
  SAY("launch %p on %d: grid %u block %u smem %u stream %p\n", kernel, (int)current - 1, c->grid[0], c->block[0], c->smem, c->stream);
  for (uint32_t i = 0; i < c->count; ++i)
    SAY("  attribute %u: %u %u %u %u\n", c->attributes[i].id, c->attributes[i].value[0], c->attributes[i].value[1],
        c->attributes[i].value[2], c->attributes[i].value[3]);
  return 0;
}
int cuLaunchKernel(void *kernel, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
                   uint32_t smem, void *stream, void **params, void **extra) {
  struct config c = {{gx, gy, gz}, {bx, by, bz}, smem, stream, 0, 0};
  int status = cuLaunchKernelEx(&c, kernel, params, extra);
  if (!status) SAY("  plain\n");
  return status;
}
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const uint64_t *extents,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,
                           int promotion, int fill) {
  (void)address, (void)strides, (void)steps, (void)interleave, (void)promotion, (void)fill;
  SAY("tensor map of type %d: rank %u extent %u box %u swizzle %d\n", type, rank, (unsigned)extents[0], box[0], swizzle);
  memset(map, 0, 128);
  return 0;
}
int cuMemAlloc_v2(uint64_t *address, size_t size) { *address = (uintptr_t)aligned_alloc(256, (size + 255) / 256 * 256); return 0; }
int cuMemFree_v2(uint64_t address) { free((void *)(uintptr_t)address); return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) { (void)stream; memcpy((void *)(uintptr_t)to, from, size); return 0; }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) { (void)stream; memcpy(to, (void *)(uintptr_t)from, size); return 0; }
int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = (void *)0x300000; return 0; }
int cuStreamSynchronize(void *stream) { (void)stream; return 0; }
int cuStreamDestroy_v2(void *stream) { (void)stream; return 0; }
static size_t function_smem = 48 * 1024;
int cuFuncSetAttribute(void *f, int id, int value) { (void)f, (void)id; function_smem = value; return 0; }
int cuOccupancyMaxActiveClusters(int *count, void *f, const struct config *c) {
  (void)f;
  SAY("clusters of %u: smem %u\n", c->grid[0], c->smem);
  *count = c->smem > function_smem ? 0 : 132 / c->grid[0];
  return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, void *f, int block, size_t smem) {
  (void)f, (void)block;
  SAY("blocks: smem %zu\n", smem);
  *count = smem <= function_smem;
  return 0;
}

// What it cannot do: CUDA_ERROR_NOT_SUPPORTED.
#define NOT_SUPPORTED(name) int name(void) { return 801; }
NOT_SUPPORTED(cuEventCreate)
NOT_SUPPORTED(cuEventDestroy_v2)
NOT_SUPPORTED(cuEventRecord)
NOT_SUPPORTED(cuEventSynchronize)
NOT_SUPPORTED(cuEventElapsedTime)
NOT_SUPPORTED(cuStreamBeginCapture_v2)
NOT_SUPPORTED(cuStreamEndCapture)
NOT_SUPPORTED(cuGraphGetNodes)
NOT_SUPPORTED(cuGraphInstantiateWithFlags)
NOT_SUPPORTED(cuGraphLaunch)
NOT_SUPPORTED(cuGraphExecDestroy)
NOT_SUPPORTED(cuGraphDestroy)
