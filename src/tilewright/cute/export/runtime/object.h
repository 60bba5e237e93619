/* A relocatable ELF64 object placed in this process: code, constants and data on pages of their own. */
#ifndef TILEWRIGHT_OBJECT_H
#define TILEWRIGHT_OBJECT_H

#include <stddef.h>

struct tw_object;

/* 0, or a CuteDSLRT_Error_t with `reason`. `outer` gives the address of a symbol that the object does not define. */
int tw_object_load(struct tw_object **object, const unsigned char *bytes, size_t size,
                   void *(*outer)(void *context, const char *name), void *context, const char **reason);

/* The address of a symbol that the object defines; null where there is none. */
void *tw_object_symbol(const struct tw_object *object, const char *name);

void tw_object_free(struct tw_object *object);

#endif
