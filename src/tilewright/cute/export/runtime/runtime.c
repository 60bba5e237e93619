/* CuteDSLRuntime.h: modules of shared libraries and of object files, which are placed in memory here (object.c). */
#define _GNU_SOURCE
#include "CuteDSLRuntime.h"
#include "object.h"

#include <dlfcn.h>
#include <string.h>

enum { MOST_LIBRARIES = 64 };

struct CuteDSLRT_Function {
  int32_t (*run)(void **, int32_t);
  void (*unload)(void);
  struct CuteDSLRT_Function *next;
};

struct CuteDSLRT_Module {
  struct tw_object *object;
  void *libraries[MOST_LIBRARIES];
  size_t count;
  CuteDSLRT_Function_t *functions;
};

static CuteDSLRT_Error_t fail(CuteDSLRT_Error_t error, const char *what, const char *which) {
  fprintf(stderr, "CuteDSLRuntime: %s%s%s\n", what, which ? ": " : "", which ? which : "");
  return error;
}

static CuteDSLRT_Error_t open_libraries(CuteDSLRT_Module_t *module, const char *const *paths, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    void *library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return fail(CuteDSLRT_Error_NotFound, "cannot open a shared library", dlerror());
    module->libraries[module->count++] = library;
  }
  return CuteDSLRT_Error_Success;
}

/* A symbol of the module's libraries, else of the process; null where there is none. */
static void *outer_symbol(void *context, const char *name) {
  CuteDSLRT_Module_t *module = context;
  for (size_t i = 0; i < module->count; ++i) {
    void *found = dlsym(module->libraries[i], name);
    if (found) return found;
  }
  return dlsym(RTLD_DEFAULT, name);
}

static void *symbol(CuteDSLRT_Module_t *module, const char *prefix, const char *name) {
  char full[512];
  if (snprintf(full, sizeof full, "%s%s", prefix, name) >= (int)sizeof full) return NULL;
  void *found = module->object ? tw_object_symbol(module->object, full) : NULL;
  for (size_t i = 0; !found && i < module->count; ++i) found = dlsym(module->libraries[i], full);
  return found;
}

CuteDSLRT_Error_t CuteDSLRT_Module_Create_From_Bytes(CuteDSLRT_Module_t **module, const unsigned char *bytes,
                                                     size_t size, const char *const *shared_libraries, size_t count) {
  if (!module || (count && !shared_libraries) || count > MOST_LIBRARIES || (!bytes && !count))
    return fail(CuteDSLRT_Error_InvalidArgument, "no object and no library to load", NULL);
  *module = NULL;
  CuteDSLRT_Module_t *made = calloc(1, sizeof *made);
  if (!made) return fail(CuteDSLRT_Error_OutOfMemory, "out of memory", NULL);
  CuteDSLRT_Error_t error = open_libraries(made, shared_libraries, count);
  if (!error && bytes) {
    const char *reason = "";
    error = (CuteDSLRT_Error_t)tw_object_load(&made->object, bytes, size, outer_symbol, made, &reason);
    if (error) fail(error, "cannot load the object", reason);
  }
  if (error) {
    CuteDSLRT_Module_Destroy(made);
    return error;
  }
  *module = made;
  return CuteDSLRT_Error_Success;
}

static int is_object(const unsigned char *bytes, size_t size) {
  if (size < 64 || memcmp(bytes, "\x7f" "ELF", 4)) return 0;
  return bytes[16] == 1 /* e_type ET_REL */ || !memcmp(bytes + size - 24, "TWSEAL1\n", 8);
}

CuteDSLRT_Error_t CuteDSLRT_Module_Load(CuteDSLRT_Module_t **module, const char *path) {
  if (!module || !path) return fail(CuteDSLRT_Error_InvalidArgument, "no path", NULL);
  *module = NULL;
  FILE *file = fopen(path, "rb");
  if (!file) return fail(CuteDSLRT_Error_NotFound, "no such file", path);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  unsigned char *bytes = size > 0 ? malloc((size_t)size) : NULL;
  size_t read = bytes ? fread(bytes, 1, (size_t)size, file) : 0;
  fclose(file);
  CuteDSLRT_Error_t error;
  if (is_object(bytes, read))
    error = CuteDSLRT_Module_Create_From_Bytes(module, bytes, read, NULL, 0);
  else
    error = CuteDSLRT_Module_Create_From_Bytes(module, NULL, 0, &path, 1);
  free(bytes);
  return error;
}

/* What an exported function says of itself, as JSON: its interface must be the one that this file knows. */
static int is_of_this_version(const char *facts) {
  char wanted[64];
  snprintf(wanted, sizeof wanted, "\"tilewright\":%d,", TW_FORMAT);
  return facts && strstr(facts, wanted);
}

CuteDSLRT_Error_t CuteDSLRT_Module_Get_Function(CuteDSLRT_Function_t **function, CuteDSLRT_Module_t *module,
                                                const char *name) {
  if (!function || !module || !name) return fail(CuteDSLRT_Error_InvalidArgument, "no module or no name", NULL);
  *function = NULL;
  int32_t (*run)(void **, int32_t) = (int32_t(*)(void **, int32_t))symbol(module, "__tw_run_", name);
  int32_t (*load)(void) = (int32_t(*)(void))symbol(module, "__tw_load_", name);
  void (*unload)(void) = (void (*)(void))symbol(module, "__tw_unload_", name);
  if (!run || !load || !unload) return fail(CuteDSLRT_Error_NotFound, "no function of that name is exported", name);
  if (!is_of_this_version(symbol(module, "__tw_meta_", name)))
    return fail(CuteDSLRT_Error_InvalidObject, "exported by another version: export it again", name);
  if (load()) return CuteDSLRT_Error_Cuda;
  CuteDSLRT_Function_t *made = calloc(1, sizeof *made);
  if (!made) return fail(CuteDSLRT_Error_OutOfMemory, "out of memory", NULL);
  *made = (CuteDSLRT_Function_t){run, unload, module->functions};
  *function = module->functions = made;
  return CuteDSLRT_Error_Success;
}

CuteDSLRT_Error_t CuteDSLRT_Function_Run(CuteDSLRT_Function_t *function, void **args, size_t count) {
  if (!function || (count && !args) || count > INT32_MAX)
    return fail(CuteDSLRT_Error_InvalidArgument, "no function or no arguments", NULL);
  return function->run(args, (int32_t)count) ? CuteDSLRT_Error_Launch : CuteDSLRT_Error_Success;
}

CuteDSLRT_Error_t CuteDSLRT_Module_Destroy(CuteDSLRT_Module_t *module) {
  if (!module) return CuteDSLRT_Error_Success;
  while (module->functions) {
    CuteDSLRT_Function_t *next = module->functions->next;
    module->functions->unload(); /* nothing where another handle of the function did so already */
    free(module->functions);
    module->functions = next;
  }
  tw_object_free(module->object);
  while (module->count) dlclose(module->libraries[--module->count]);
  free(module);
  return CuteDSLRT_Error_Success;
}
