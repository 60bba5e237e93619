// Loads what its first argument says, by every way there is, and prints what each call gives.
#include "CuteDSLRuntime.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

typedef struct {
  void *data;
  int32_t dynamic_shapes[1];
} Tensor;

static void call(CuteDSLRT_Module_t *module, const char *name, int32_t extent) {
  CuteDSLRT_Function_t *function = nullptr;
  CuteDSLRT_Error_t error = CuteDSLRT_Module_Get_Function(&function, module, name);
  printf("function %d\n", error);
  if (error) return;
  static float memory[64] __attribute__((aligned(64)));
  Tensor x = {memory, {extent}}, y = x;
  float shift = 2;
  int32_t status = 77;
  void *args[] = {&x, &y, &shift, &status};
  error = CuteDSLRT_Function_Run(function, args, 4);
  printf("run %d status %s\n", error, status == 0 ? "0" : status == 77 ? "unset" : "set");
}

int main(int, char **argv) {
  CuteDSLRT_Module_t *module = nullptr;
  CuteDSLRT_Error_t error;
  const char *path = argv[2];
  if (!strcmp(argv[1], "bytes")) {
    std::ifstream file(path, std::ios::binary);
    std::vector<unsigned char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    error = CuteDSLRT_Module_Create_From_Bytes(&module, bytes.data(), bytes.size(), nullptr, 0);
  } else if (!strcmp(argv[1], "library")) {
    error = CuteDSLRT_Module_Create_From_Bytes(&module, nullptr, 0, &path, 1);
  } else {
    error = CuteDSLRT_Module_Load(&module, path);
  }
  printf("load %d\n", error);
  fflush(stdout);
  if (error) return 0;
  call(module, argv[3], 8);
  call(module, argv[3], 7);
  printf("destroy %d\n", CuteDSLRT_Module_Destroy(module));
}
