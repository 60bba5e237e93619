"""The support code that every host object carries, as LLVM IR: errors, printf, launches, 16-bit floats.

`@__tw_launch` is what compiled host code calls for a launch, `@__tw_tensor_map` for a tensor map, `@__tw_raise` for a
failed assertion, `@__tw_printf` for printing. They reach the process only through the pointer table (`abi.py`).
`@__tw_enter` and `@__tw_leave` make the launch use the device of the tensors.
"""

from __future__ import annotations

import functools

from tilewright.hw import launches
from tilewright.hw.atoms.async_copy import L2_PROMOTION
from tilewright.targets.host import abi
from tilewright.targets.host.irtext import Strings, llvm_file, name_table

_MESSAGE_SIZE = 2048

_LAUNCH_TEXTS = {
    "grid_text": "a grid has 1 to 2147483647 blocks along x and 1 to 65535 along y and z\n  grid  (%d, %d, %d)\n"
    "  hint: %s",
    "block_text": "a block has at most 1024 threads, 1 to 1024 along x and y and 1 to 64 along z\n"
    "  block    (%d, %d, %d)\n  threads  %lld\n  hint: %s",
    "cluster_text": "a cluster has 1 to 16 blocks\n  cluster  (%d, %d, %d)\n  hint: %s",
    "division_text": "the grid is not a whole number of clusters\n  grid     (%d, %d, %d)\n  cluster  (%d, %d, %d)\n"
    f"  hint: {launches.WHOLE_CLUSTERS}",
    "smem_text": "the size of dynamic shared memory is negative\n  smem  %d\n"
    "  hint: look at the difference that it comes from, or leave smem= out for what the kernel allocates",
    "refused_text": "the launch was refused\n  error    %d\n  grid     (%d, %d, %d)\n  block    (%d, %d, %d)\n"
    "  cluster  (%d, %d, %d)\n  smem     %d",
}

_TENSOR_MAP_TEXTS = {
    "no_maps_text": "the driver has no tensor maps\n  hint: it takes a driver of CUDA 12 and a GPU of sm_90 or later",
    "refused_map_text": "the driver refused a tensor map\n  error              %d\n  address            %p\n"
    "  modes              %d\n  contiguous extent  %lld\n  hint: addresses and strides are multiples of 16 bytes, "
    "extents at least 1",
}

_LAUNCH_HINTS = {
    "nothing": launches.NOTHING,
    "negative": launches.NEGATIVE,
    "along_x": launches.ALONG_X,
    "no_threads": launches.NO_THREADS,
    "fewer": launches.FEWER,
    "not_along_z": launches.NOT_ALONG_Z,
    "no_cluster": launches.NO_CLUSTER,
    "small_cluster": launches.SMALL_CLUSTER,
}

_REPORT_TEXTS = {
    "first_item": "%lld",
    "next_item": ", %lld",
    "packed_lanes": "x%d",
    "one_lane": "",
    "compact": "compact",
    "with_id": ":%d",
    "without_id": "",
    "tensor_format": "%s%s %s : %s on %s%s",
    "cpu_word": "cpu",
    "cuda_word": "cuda",
    "argument_error": "ArgumentError",
    "launch_error": "LaunchError",
    # The signature is last: where it is too long for the buffer, only it is cut.
    "tensor_report": "%s\n  expected  %s on %s\n  actual    %s%s\n  calling   %s",
    "any_report": "%s\n  expected  %s\n  actual    %s%s\n  calling   %s",
    "int_format": "int %lld",
    "float_format": "float %g",
    "text_format": "%s",
    "true_text": "bool True",
    "false_text": "bool False",
}


@functools.cache
def runtime_ir(*, for_python: bool = True) -> str:
    """LLVM IR of the support functions; the same for every program.

    `for_python`: with what `router.py` and `front.py` need.
    """
    strings = Strings("rt")
    kinds, kind_width = name_table("kind_names", abi.KIND_NAMES, 80, "object")
    dtypes, dtype_width = name_table("dtype_names", abi.DTYPE_FORMATS, 18, "unknown")
    devices, device_width = name_table("device_names", abi.DEVICE_NAMES, 20, "another device")
    errors = llvm_file(
        "errors", set_error=abi.SLOT_SET_ERROR, raised=abi.RAISED, size=_MESSAGE_SIZE, write=abi.SLOT_WRITE
    )
    reports = llvm_file(
        "reports",
        **{name: strings(text) for name, text in _REPORT_TEXTS.items()},
        dtype=abi.DL_DTYPE, ndim=abi.DL_NDIM, shape=abi.DL_SHAPE, strides=abi.DL_STRIDES, device=abi.DL_DEVICE,
        dtype_count=18, dtype_width=dtype_width, device_count=20, device_width=device_width,
        kind_count=80, kind_width=kind_width, cuda=abi.CUDA, devices=abi.SLOT_DEVICES, cpu_bit=1 << abi.CPU,
        any_value=abi.ANY_VALUE, object_header=abi.OBJECT_HEADER, int=abi.INT, bool=abi.BOOL, float=abi.FLOAT,
        dltensor=abi.DLTENSOR, tensor=abi.TENSOR, failed_tensor=ord(abi.FAILED_TENSOR),
        failed_argument=ord(abi.FAILED_ARGUMENT), failed_count=ord(abi.FAILED_COUNT),
    )  # fmt: skip
    launch = llvm_file(
        "launch",
        **{name: strings(text) for name, text in (_LAUNCH_TEXTS | _LAUNCH_HINTS).items()},
        launch_kind=strings("LaunchError"), launch=abi.SLOT_LAUNCH, plain=abi.SLOT_PLAIN,
        first_kernel=abi.FIRST_KERNEL, cluster_id=abi.ATTRIBUTE_CLUSTER, cooperative_id=abi.ATTRIBUTE_COOPERATIVE,
        pdl_id=abi.ATTRIBUTE_PDL, raised=abi.RAISED, invalid_context=abi.INVALID_CONTEXT,
    )  # fmt: skip
    tensor_map = llvm_file(
        "tensor_map",
        **{name: strings(text) for name, text in _TENSOR_MAP_TEXTS.items()},
        launch_kind=strings("LaunchError"), tensor_map=abi.SLOT_TENSOR_MAP, promotion=L2_PROMOTION,
    )  # fmt: skip
    contexts = llvm_file(
        "contexts",
        contexts=abi.SLOT_CONTEXTS, most_devices=abi.MOST_DEVICES, invalid_context=abi.INVALID_CONTEXT,
        completion_id=abi.ATTRIBUTE_COMPLETION_EVENT, programmatic_id=abi.ATTRIBUTE_PROGRAMMATIC_EVENT,
    )  # fmt: skip
    poll = llvm_file("poll", signals=abi.SLOT_SIGNALS, interrupted=abi.INTERRUPTED)
    route = llvm_file(
        "route",
        **{name: number for number, name in enumerate(abi.ROUTE_KINDS)},
        unknown=abi.ROUTE_UNKNOWN, first_kind=abi.ROUTE_FIRST_KIND,
        most=abi.ROUTE_MOST_ARGUMENTS, facts=abi.ROUTE_FACTS, alignment=abi.ROUTE_ALIGNMENT - 1, dl_size=abi.DL_SIZE,
        view_size=abi.DL_SIZE + 32, any_size=abi.ANY_SIZE, any_value=abi.ANY_VALUE, object_header=abi.OBJECT_HEADER,
        none=abi.NONE, bool=abi.BOOL, dltensor=abi.DLTENSOR, tensor=abi.TENSOR, data=abi.DL_DATA,
        device=abi.DL_DEVICE, ndim=abi.DL_NDIM, dtype=abi.DL_DTYPE, shape=abi.DL_SHAPE, strides=abi.DL_STRIDES,
        offset=abi.DL_OFFSET,
    )  # fmt: skip
    front = llvm_file(
        "front",
        **{name: number for number, name in enumerate(abi.PYTHON_TABLE)},
        **{f"type_{name}": number for number, name in enumerate(abi.TENSOR_TYPE)},
        python_size=len(abi.PYTHON_TABLE), most_types=abi.MOST_TENSOR_TYPES, type_size=len(abi.TENSOR_TYPE),
        most=abi.FRONT_MOST_ARGUMENTS, key_words=abi.CALL_KEY_WORDS, unknown=abi.ROUTE_UNKNOWN,
        any_size=abi.ANY_SIZE, any_value=abi.ANY_VALUE, dl_size=abi.DL_SIZE, dl_device=abi.DL_DEVICE,
        dl_ndim=abi.DL_NDIM, dl_shape=abi.DL_SHAPE, dl_strides=abi.DL_STRIDES, cpu=abi.CPU,
        interrupted=abi.INTERRUPTED, int_kind=abi.INT, float_kind=abi.FLOAT,
        none_kind=abi.NONE, bool_kind=abi.BOOL, tensor_kind=abi.DLTENSOR, capsule_name=strings("dltensor"),
    )  # fmt: skip
    texts = [
        kinds,
        dtypes,
        devices,
        *strings.definitions(),
        errors,
        reports,
        contexts,
        poll,
        launch,
        tensor_map,
        *([route, front] if for_python else []),
        llvm_file("halves"),
    ]
    return "\n".join(texts)
