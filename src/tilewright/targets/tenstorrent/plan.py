"""plan.json: everything about a launch that is not in the C++. `SCHEMA` describes it as JSON Schema (draft 2020-12)."""

from __future__ import annotations

from typing import Any, Final

from tilewright.hw.tensix import FORMATS
from tilewright.targets.tenstorrent.context import PassContext
from tilewright.targets.tenstorrent.passes.roles import ROLES
from tilewright.targets.tenstorrent.passes.verify_protocol import by_kernel
from tilewright.targets.tenstorrent.tir.frozen import thaw
from tilewright.targets.tenstorrent.tir.nodes import IRModule, PrimFunc
from tilewright.targets.tenstorrent.tir.read_mlir import HostFunc, LaunchedKernel
from tilewright.targets.tenstorrent.tir.visitors import calls

VERSION: Final = 1


def make_plan(mod: IRModule, ctx: PassContext) -> dict[str, Any]:
    """The plan of a finished module."""
    host = next(item for item in mod.functions.values() if isinstance(item, HostFunc))
    kernels = by_kernel(mod)
    return {
        "version": VERSION,
        "profile": ctx.options.profile,
        "arch": ctx.core.name,
        "function": host.name,
        "launches": [_launch(item, kernels[item.kernel], ctx) for item in host.launches],
    }


def _launch(launch: LaunchedKernel, kernels: list[PrimFunc], ctx: PassContext) -> dict[str, Any]:
    parts = {str(item.attrs["tt.kernel_role"]): item for item in kernels}
    first = kernels[0]
    partition = thaw(first.attrs["tt.work_partition"])
    return {
        "kernel": launch.kernel,
        "grid": partition["grid"],
        "core_grid": thaw(first.attrs["tt.core_grid"]),
        "cores": partition["cores"],
        "arguments": {
            name: {"parameter": item.name} if item.name else {"value": item.value}
            for name, item in launch.arguments.items()
        },
        "tensors": [_tensor(item) for item in first.buffer_map.values() if "tt.padded_shape" in item.attrs],
        "circular_buffers": thaw(first.attrs["tt.cb_assignment"]),
        "kernels": {role: _kernel(parts[role]) for role in ROLES},
        "compute": {
            "dst": ctx.options.dst,
            "dst_tiles": ctx.dst_capacity,
            "fidelity": ctx.options.fidelity,
            "sfpu": bool(calls(parts["compute"].body, "tt.sfpu.unary", "tt.sfpu.binary")),
        },
    }


def _tensor(buffer: Any) -> dict[str, Any]:
    attrs = buffer.attrs
    pad = attrs["tt.pad"]
    return {
        "name": buffer.name,
        "shape": list(buffer.shape),
        "dtype": buffer.dtype,
        "format": FORMATS[buffer.dtype][0],
        "padded_shape": list(attrs["tt.padded_shape"]),
        "pad": pad if abs(pad) != float("inf") else str(pad),
        "memory": attrs["tt.memory"],
        "layout": attrs["tt.layout"],
        "usage": attrs["tt.usage"],
    }


def _kernel(func: PrimFunc) -> dict[str, Any]:
    return {
        "runtime_args": thaw(func.attrs["tt.runtime_args"]),
        "compile_time_args": thaw(func.attrs["tt.compile_time_args"]),
    }


def _object(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def _array(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
_NUMBER = {"type": ["number", "string"]}
_ROLE = {"enum": list(ROLES)}
_CORE = _object({"core": _array(_COUNT, minItems=2, maxItems=2), "start": _COUNT, "count": _COUNT})
_TENSOR = _object({
    "name": _TEXT, "shape": _array(_COUNT), "dtype": {"enum": list(FORMATS)},
    "format": {"enum": [name for name, _ in FORMATS.values()]}, "padded_shape": _array(_COUNT), "pad": _NUMBER,
    "memory": {"const": "dram"}, "layout": {"const": "interleaved"}, "usage": {"enum": ["read", "written", "both"]},
})  # fmt: skip
_BUFFER = _object({
    "id": {"type": "integer", "minimum": 0, "maximum": 31}, "name": _TEXT, "variable": _TEXT,
    "kind": {"enum": ["input", "output", "intermediate", "constant"]}, "format": _TEXT,
    "pages": {"type": "integer", "minimum": 1}, "page_size": {"type": "integer", "minimum": 1},
    "producer": _ROLE, "consumer": _ROLE,
})  # fmt: skip
_ARGUMENT = _object(
    {"name": _TEXT, "kind": {"enum": ["address", "start_id", "count", "scalar"]}, "dtype": _TEXT}, ["name", "kind"]
)
_KERNEL = _object({"runtime_args": _array(_ARGUMENT), "compile_time_args": _array(_TEXT)})
_LAUNCH = _object({
    "kernel": _TEXT, "grid": _array(_COUNT, minItems=3, maxItems=3),
    "core_grid": _array(_COUNT, minItems=2, maxItems=2), "cores": _array(_CORE),
    "arguments": {
        "type": "object",
        "additionalProperties": {"oneOf": [_object({"parameter": _TEXT}), _object({"value": {"type": "number"}})]},
    },
    "tensors": _array(_TENSOR), "circular_buffers": _array(_BUFFER), "kernels": _object(dict.fromkeys(ROLES, _KERNEL)),
    "compute": _object({
        "dst": {"enum": ["fp32", "bf16"]}, "dst_tiles": _COUNT,
        "fidelity": {"enum": ["LoFi", "HiFi2", "HiFi3", "HiFi4"]}, "sfpu": {"type": "boolean"},
    }),
})  # fmt: skip
SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Tilewright plan of a Tenstorrent program",
    **_object({
        "version": {"const": VERSION}, "profile": _TEXT, "arch": _TEXT, "function": _TEXT, "launches": _array(_LAUNCH),
    }),
}  # fmt: skip
