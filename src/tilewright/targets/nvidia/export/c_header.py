"""The C header of an exported function: its types, and inline functions over the object's symbols."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.base.signature import Param, Signature, TensorParam, TupleParam
from tilewright.targets.artifact import Artifact
from tilewright.targets.artifact_bytes import FORMAT
from tilewright.targets.host import abi
from tilewright.targets.host.exported import LOAD, RUN, TABLE, UNLOAD
from tilewright.targets.host.exported_c import Struct, identifier, layout, passed
from tilewright.targets.host.wrapper import describe

_TEMPLATE = """\
/* {name}: exported by Tilewright for {arch}; interface version {version}. */
#ifndef TILEWRIGHT_EXPORT_{guard}_H
#define TILEWRIGHT_EXPORT_{guard}_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {{
#endif

{types}/* The kernels, loaded. All modules of this function share them. */
typedef struct {{
  int32_t loaded;
}} {prefix}_Kernel_Module_t;

int32_t {load}(void);
void {unload}(void);
int32_t {run}(void **args, int32_t count);
extern void *{table}[];

/* Load the kernels for all devices. 0, or another number after the error was reported. */
static inline int32_t {prefix}_Kernel_Module_Load({prefix}_Kernel_Module_t *module) {{
  int32_t status = {load}();
  module->loaded = status == 0;
  return status;
}}

/* Unload them; no call may be under way. */
static inline void {prefix}_Kernel_Module_Unload({prefix}_Kernel_Module_t *module) {{
  if (module->loaded) {unload}();
  module->loaded = 0;
}}

/* Where errors are reported: their kind and message. By default they are printed to stderr. */
static inline void {prefix}_Set_Error_Handler(void (*handler)(const char *kind, const char *message)) {{
  memcpy(&{table}[{handler_slot}], &handler, sizeof handler); /* C99 has no cast from functions to data */
}}

/* {signature}
 *
{documented} *
 * Checks the arguments and launches on the thread's current device. 0, or another number after the error was reported.
 */
static inline int32_t cute_dsl_{prefix}_wrapper({parameters}) {{
  void *args[] = {{{addresses}}};
  (void)module; /* kernels that are not loaded yet are loaded by the first call */
  return {run}(args, {count});
}}

#ifdef __cplusplus
}}
#endif

#endif
"""


def header(prefix: str, artifact: Artifact) -> str:
    """The header of `artifact` exported as `prefix`.

    Raises:
        CompileError: a parameter has no C type.
    """
    params = passed(artifact.signature)
    found = [(param, layout(param, prefix)) for param in params]
    names = [identifier(param.name) for param in params]
    declared = [f"{prefix}_Kernel_Module_t *module"]
    addresses = []
    for (_, struct), name in zip(found, names, strict=True):
        declared.append(f"{struct.type} *{name}" if struct.members else _declare(struct.type, name))
        addresses.append(f"(void *){name}" if struct.members else f"(void *)&{name}")
    return _TEMPLATE.format(
        name=artifact.name, arch=artifact.arch, version=FORMAT, guard=prefix.upper(), prefix=prefix,
        types="".join(_definitions(found)), load=f"{LOAD}{prefix}", unload=f"{UNLOAD}{prefix}", run=f"{RUN}{prefix}",
        table=f"{TABLE}{prefix}", handler_slot=abi.SLOT_SET_ERROR, signature=_shown(artifact.signature),
        documented="".join(_documented(params)), parameters=", ".join(declared),
        addresses=", ".join(addresses) or "0", count=len(params),
    )  # fmt: skip


def _declare(type_: str, name: str) -> str:
    return f"{type_}{name}" if type_.endswith("*") else f"{type_} {name}"


def _definitions(found: list[tuple[Param, Struct]]) -> Iterator[str]:
    """The structs, inner ones first."""
    seen: set[str] = set()
    for param, struct in found:
        yield from _definition(param, struct, seen)


def _definition(param: Param, struct: Struct, seen: set[str]) -> Iterator[str]:
    if not struct.members or struct.type in seen:
        return
    if isinstance(param, TupleParam):
        for item, inner in zip(param.items, struct.inner, strict=True):
            yield from _definition(item, inner, seen)
    seen.add(struct.type)
    body = "".join(f"  {member.declaration};\n" for member in struct.members)
    yield f"typedef struct {{\n{body}}} {struct.type};\n\n"


def _shown(signature: Signature) -> str:
    return f"{signature.name}({', '.join(param.name for param in passed(signature))})"


def _documented(params: list[Param]) -> Iterator[str]:
    for param in params:
        if isinstance(param, TensorParam):
            yield f" * {param.name}: {describe(param)}, aligned to {param.align} bytes; the dynamic ones in order\n"
        else:
            yield f" * {param.name}: {type(param).__name__.removesuffix('Param').lower()}\n"
