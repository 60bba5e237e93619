"""Exported functions as LLVM IR: one object with the host function, its checks, its kernels and the code to load them.

The object needs only the C library: it opens the driver itself, at the first launch, so that it links, and checks its
arguments, on machines without one. Its pointer table starts with functions that load the kernels and then replace
themselves (`tw_first_launch`, `tw_first_enter`), which costs later calls nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tilewright.base.signature import Signature
from tilewright.ir.llvm import emit_object
from tilewright.targets.host import abi
from tilewright.targets.host.exported_c import packed_ir
from tilewright.targets.host.irtext import Strings, c_string, llvm_file
from tilewright.targets.host.runtime import runtime_ir
from tilewright.targets.host.wrapper import entry_type, export_name, wrapper_ir

CHECKED, TABLE, META, RUN, LOAD, UNLOAD = (
    "__tw_checked_", "__tw_table_", "__tw_meta_", "__tw_run_", "__tw_load_", "__tw_unload_",
)  # fmt: skip
"""Prefixes of the symbols of an exported function."""

_DRIVER: Final = (
    *abi.CONTEXT_FUNCTIONS, "cuInit", "cuDeviceGetCount", "cuDeviceGetAttribute", "cuLibraryLoadData",
    "cuLibraryGetKernel", "cuKernelGetAttribute", "cuKernelSetAttribute", "cuLaunchKernelEx", "cuLaunchKernel",
    "cuLibraryUnload", "cuTensorMapEncodeTiled",
)  # fmt: skip
_SHARED_BYTES, _MAX_DYNAMIC_SHARED, _NON_PORTABLE_CLUSTER, _SHARED_OPTIN = 1, 8, 14, 97
"""CUfunction_attribute and CUdevice_attribute of cuda.h."""

# Messages of the argument checks that Python calls a TypeError; all others are a ValueError.
_TYPE_ERRORS: Final = ("wrong type", "is not a tensor", "wrong dtype", "wrong rank", " takes ")


@dataclass(frozen=True)
class ExportedKernel:
    """A kernel: its symbol in the cubin, and the cubin."""

    name: str
    cubin: bytes


def export_object(
    name: str, host_llvm: str, entry: str, signature: Signature, kernels: Sequence[ExportedKernel], metadata: str,
    *, tvm_ffi: bool, cpu: str, triple: str, features: str = "",
) -> bytes:  # fmt: skip
    """The object of an exported function.

    Args:
        name: the exported name, a C identifier.
        host_llvm: the host function as LLVM IR, see `bundle.compile_program`.
        entry: its symbol.
        signature: what callers pass.
        kernels: what it launches, in the order of their numbers.
        metadata: text to embed.
        tvm_ffi: export `__tvm_ffi_<name>`, which needs tvm-ffi's library; else a C function with packed arguments.
        cpu: the processor to compile for, of the family and system that `triple` names, with `features`.
    """
    signature = replace(signature, name=name)
    checked = f"__tvm_ffi_{name}" if tvm_ffi else f"{CHECKED}{name}"
    frame = (
        _named(wrapper_ir(signature, entry, len(kernels), _table(len(kernels), tvm_ffi)), signature, checked),
        runtime_ir(for_python=False),
        _glue_ir(name, kernels, metadata, tvm_ffi),
        *(() if tvm_ffi else (packed_ir(signature, f"{RUN}{name}", checked, abi.CUDA if kernels else abi.CPU),)),
    )
    keep = [checked, *(f"{prefix}{name}" for prefix in (TABLE, META, LOAD, UNLOAD)), *_runs(name, tvm_ffi)]
    return emit_object(
        host_llvm,
        codegen_level=0 if kernels else 2,
        cpu=cpu,
        triple=triple,
        features=features,
        frame=frame,
        keep=keep,
        defines={entry: entry_type(signature)},
    )


def _runs(name: str, tvm_ffi: bool) -> tuple[str, ...]:
    return () if tvm_ffi else (f"{RUN}{name}",)


def _named(text: str, signature: Signature, checked: str) -> str:
    """The wrapper with the names of an export."""
    text = text.replace(f"@{export_name(signature)}(", f"@{checked}(")
    text = text.replace(f"@{abi.TABLE} ", f"@{TABLE}{signature.name} ")
    for end in (",", ")", "\n"):
        text = text.replace(f"@{abi.TABLE}{end}", f"@{TABLE}{signature.name}{end}")
    return f"{text}\n{llvm_file('exported_table')}"


def _table(kernels: int, tvm_ffi: bool) -> list[str]:
    """What the slots of the table start with."""
    slots = dict.fromkeys(range(abi.FIRST_KERNEL), "ptr null")
    slots[abi.SLOT_LAUNCH] = "ptr @tw_first_launch"
    slots[abi.SLOT_SET_ERROR] = "ptr @tw_set_error" if tvm_ffi else "ptr @tw_print_error"
    slots[abi.SLOT_ENV_STREAM] = "ptr @TVMFFIEnvGetStream" if tvm_ffi else "ptr null"
    slots[abi.SLOT_WRITE] = "ptr @tw_write"
    devices = sum(1 << kind for kind in abi.DEVICES_OF["cuda" if kernels else "emu"])
    slots[abi.SLOT_DEVICES] = f"ptr inttoptr (i64 {devices} to ptr)"
    slots[abi.SLOT_TENSOR_MAP] = "ptr @tw_first_tensor_map"
    slots[abi.SLOT_ENTER] = f"ptr {_first_enter(tvm_ffi)}"
    return [slots[index] for index in range(abi.FIRST_KERNEL)] + [
        f"ptr inttoptr (i64 {number + 1} to ptr)" for number in range(kernels)
    ]


def _first_enter(tvm_ffi: bool) -> str:
    # Tensors of the C interface do not say where they are: the thread's current context is taken.
    return "@tw_first_enter" if tvm_ffi else "null"


def _glue_ir(name: str, kernels: Sequence[ExportedKernel], metadata: str, tvm_ffi: bool) -> str:
    strings = Strings("ex")
    text = llvm_file(
        "exported",
        driver_count=len(_DRIVER),
        driver_names=", ".join(f"ptr {strings(function)}" for function in _DRIVER),
        kernel_count=len(kernels),
        images=", ".join(f"ptr @tw_cubin_{index}" for index in range(len(kernels))),
        kernel_names=", ".join(f"ptr {strings(kernel.name)}" for kernel in kernels),
        write_format=strings("%.*s"), error_format=strings("%s: %s\n"),
        set_error=_tvm_errors(strings) if tvm_ffi else "",
        load=f"{LOAD}{name}", unload=f"{UNLOAD}{name}", table=f"{TABLE}{name}",
        driver_library=strings("libcuda.so.1"), driver_kind=strings("CudaDriverDependencyError"),
        launch_kind=strings("LaunchError"),
        no_driver_text=strings("no NVIDIA driver: libcuda.so.1 was not found"),
        old_driver_text=strings("the NVIDIA driver is too old (CUDA 12 is needed): it has no %s"),
        status_text=strings(f"the kernels of {name.replace('%', '%%')} cannot be loaded\n  error  %d"),
        init=_DRIVER.index("cuInit"), count=_DRIVER.index("cuDeviceGetCount"),
        load_data=_DRIVER.index("cuLibraryLoadData"), get_kernel=_DRIVER.index("cuLibraryGetKernel"),
        kernel_attribute=_DRIVER.index("cuKernelGetAttribute"), device_attribute=_DRIVER.index("cuDeviceGetAttribute"),
        set_attribute=_DRIVER.index("cuKernelSetAttribute"), launch=_DRIVER.index("cuLaunchKernelEx"),
        plain=_DRIVER.index("cuLaunchKernel"), slot_plain=abi.SLOT_PLAIN,
        unload_library=_DRIVER.index("cuLibraryUnload"), first_enter=_first_enter(tvm_ffi),
        shared_bytes=_SHARED_BYTES, shared_optin=_SHARED_OPTIN, max_dynamic_shared=_MAX_DYNAMIC_SHARED,
        non_portable_cluster=_NON_PORTABLE_CLUSTER, first_kernel=abi.FIRST_KERNEL, slot_contexts=abi.SLOT_CONTEXTS,
        slot_enter=abi.SLOT_ENTER, slot_launch=abi.SLOT_LAUNCH, raised=abi.RAISED,
        encode=_DRIVER.index("cuTensorMapEncodeTiled"), slot_tensor_map=abi.SLOT_TENSOR_MAP,
    )  # fmt: skip
    body, size = c_string(metadata)
    table_type = f"[{abi.FIRST_KERNEL + len(kernels)} x ptr]"
    outer = [
        f"@{TABLE}{name} = external global {table_type}",
        f'@{META}{name} = constant [{size} x i8] c"{body}"',
    ]
    return "\n".join([*outer, *map(_image, range(len(kernels)), kernels), *strings.definitions(), text])


def _tvm_errors(strings: Strings) -> str:
    return llvm_file(
        "tvm_errors",
        argument_kind=strings("ArgumentError"),
        phrase_count=len(_TYPE_ERRORS),
        phrases=", ".join(f"ptr {strings(phrase)}" for phrase in _TYPE_ERRORS),
        type_kind=strings("TypeError"),
        value_kind=strings("ValueError"),
        runtime_kind=strings("RuntimeError"),
    )


def _image(index: int, kernel: ExportedKernel) -> str:
    body = "".join(f"\\{byte:02X}" for byte in kernel.cubin)
    return f'@tw_cubin_{index} = internal constant [{len(kernel.cubin)} x i8] c"{body}", align 64'
