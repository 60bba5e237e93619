/* Loading exported functions in C and C++: object files and shared libraries that export_to_c made.
 *
 * Functions take the addresses of their arguments, laid out as the header beside the object declares, and after them
 * perhaps that of an int32_t for the status. Errors are also printed to stderr.
 */
#ifndef CUTE_DSL_RUNTIME_H
#define CUTE_DSL_RUNTIME_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  CuteDSLRT_Error_Success = 0,
  CuteDSLRT_Error_InvalidArgument = 1, /* a null pointer, or more libraries than there may be */
  CuteDSLRT_Error_NotFound = 2,        /* no such file, or no function of that name */
  CuteDSLRT_Error_InvalidObject = 3,   /* damaged, for another processor, or made by another version */
  CuteDSLRT_Error_Unresolved = 4,      /* the object needs a symbol that the process does not have */
  CuteDSLRT_Error_OutOfMemory = 5,
  CuteDSLRT_Error_Cuda = 6,            /* the kernels cannot be loaded */
  CuteDSLRT_Error_Launch = 7           /* the function refused its arguments, or the launch was refused */
} CuteDSLRT_Error_t;

typedef struct CuteDSLRT_Module CuteDSLRT_Module_t;
typedef struct CuteDSLRT_Function CuteDSLRT_Function_t;

/* A module of an object file's bytes, of shared libraries, or of both; bytes may be null. The bytes are copied. */
CuteDSLRT_Error_t CuteDSLRT_Module_Create_From_Bytes(CuteDSLRT_Module_t **module, const unsigned char *bytes,
                                                     size_t size, const char *const *shared_libraries, size_t count);

/* A module of one file: an object (.o) or a shared library (.so). */
CuteDSLRT_Error_t CuteDSLRT_Module_Load(CuteDSLRT_Module_t **module, const char *path);

/* The function exported with prefix `name`; its kernels are loaded. It lives as long as the module. */
CuteDSLRT_Error_t CuteDSLRT_Module_Get_Function(CuteDSLRT_Function_t **function, CuteDSLRT_Module_t *module,
                                                const char *name);

/* Check the arguments and launch on the thread's current device. Any number of threads may run a function. */
CuteDSLRT_Error_t CuteDSLRT_Function_Run(CuteDSLRT_Function_t *function, void **args, size_t count);

/* Unload the kernels and the code. No call may be under way. */
CuteDSLRT_Error_t CuteDSLRT_Module_Destroy(CuteDSLRT_Module_t *module);

#ifdef __cplusplus
}
#endif

#endif
