// Uses `scale`, exported by export.py: links against the object alone, checks arguments on every machine, and runs
// the kernel where a GPU is. The CUDA driver is opened here for memory only; a program that links CUDA uses its own.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "scale.h"

namespace {

std::string last_error;

void remember(const char *kind, const char *message) {
  last_error = std::string(kind) + ": " + message;
}

bool refused(const char *what, int32_t status, const std::string &part) {
  const bool right = status != 0 && last_error.find(part) != std::string::npos;
  std::printf("%s: %s\n", what, right ? "refused, as it should be" : "NOT REFUSED");
  if (!right) std::printf("%s\n", last_error.c_str());
  last_error.clear();
  return right;
}

struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*context)(void **, int) = nullptr;
  int (*use)(void *) = nullptr;
  int (*allocate)(uint64_t *, size_t) = nullptr;
  int (*upload)(uint64_t, const void *, size_t) = nullptr;
  int (*download)(void *, uint64_t, size_t) = nullptr;

  bool open() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return false;
    find(library, "cuInit", init);
    find(library, "cuDevicePrimaryCtxRetain", context);
    find(library, "cuCtxSetCurrent", use);
    find(library, "cuMemAlloc_v2", allocate);
    find(library, "cuMemcpyHtoD_v2", upload);
    find(library, "cuMemcpyDtoH_v2", download);
    return init && context && use && allocate && upload && download;
  }

  template <typename Function>
  static void find(void *library, const char *name, Function &function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
  }
};

bool checks() {
  alignas(16) float memory[16] = {};
  scale_Kernel_Module_t module = {};
  scale_Tensor_x_t x = {memory, {8}};
  scale_Tensor_y_t y = {memory, {8}};
  bool good = true;
  x.dynamic_shapes[0] = 12;
  good &= refused("two lengths", cute_dsl_scale_wrapper(&module, &x, &y, 2.0f), "extent of mode 0 must equal");
  x.dynamic_shapes[0] = y.dynamic_shapes[0] = 6;
  good &= refused("a length of 6", cute_dsl_scale_wrapper(&module, &x, &y, 2.0f), "not a multiple of 4");
  x.dynamic_shapes[0] = y.dynamic_shapes[0] = 8;
  x.data = memory + 1;
  good &= refused("an odd address", cute_dsl_scale_wrapper(&module, &x, &y, 2.0f), "not a multiple of 16");
  return good;
}

int run(Driver &driver) {
  constexpr int kCount = 1000;
  void *context = nullptr;
  uint64_t x_data = 0, y_data = 0;
  std::vector<float> host(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>(i);
  const size_t bytes = kCount * sizeof(float);
  if (driver.init(0) || driver.context(&context, 0) || driver.use(context) || driver.allocate(&x_data, bytes) ||
      driver.allocate(&y_data, bytes) || driver.upload(x_data, host.data(), bytes)) {
    std::printf("no device memory\n");
    return 1;
  }
  scale_Kernel_Module_t module = {};
  scale_Tensor_x_t x = {reinterpret_cast<void *>(x_data), {kCount}};
  scale_Tensor_y_t y = {reinterpret_cast<void *>(y_data), {kCount}};
  if (scale_Kernel_Module_Load(&module) || cute_dsl_scale_wrapper(&module, &x, &y, 2.0f) ||
      driver.download(host.data(), y_data, bytes)) {
    std::printf("%s\n", last_error.c_str());
    return 1;
  }
  scale_Kernel_Module_Unload(&module);
  for (int i = 0; i < kCount; ++i) {
    if (host[i] != 2.0f * static_cast<float>(i)) {
      std::printf("wrong at %d: %g\n", i, host[i]);
      return 1;
    }
  }
  std::printf("ran on the GPU: %d elements are right\n", kCount);
  return 0;
}

}  // namespace

int main() {
  scale_Set_Error_Handler(remember);
  if (!checks()) return 1;
  Driver driver;
  if (driver.open()) return run(driver);
  scale_Kernel_Module_t module = {};
  const bool right = refused("loading without a driver", scale_Kernel_Module_Load(&module), "no NVIDIA driver");
  std::printf("no GPU: only the checks ran\n");
  return right ? 0 : 1;
}
