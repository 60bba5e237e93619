"""The registry of intrinsics: what each operation of `tt` is in C++, by API profile.

A row has the form of the call, in which `{0}`, `{1}` are the operands, the number of operands, and the header that
declares it. A form that depends on attributes is a function of them. The names are those of the headers of
ttnn 0.81.1, `tt_metal/hw/inc/api`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tilewright.base.errors import PassError
from tilewright.targets.tenstorrent.tir.nodes import Call

Form = str | Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True)
class Intrinsic:
    """An operation in C++."""

    form: Form
    arity: int
    header: str = ""

    def text(self, found: Call, operands: list[str]) -> str:
        """The call with its operands.

        Raises:
            PassError: there are more or fewer than it takes.
        """
        if len(operands) != self.arity:
            raise PassError(
                f"{found.op.name} takes {self.arity} operands, not {len(operands)}",
                location=found.location,
                values={"call": found},
                hint="intrinsics.py lists the operations with their operands",
            )
        form = self.form if isinstance(self.form, str) else self.form(found.attrs)
        return form.format(*operands)


_DATAFLOW: Final = "api/dataflow/dataflow_api.h"
_COMPUTE: Final = "api/compute/"
_POOLS: Final = {"add": "SUM", "max": "MAX"}
_DIMS: Final = {"row": "REDUCE_ROW", "col": "REDUCE_COL"}
_SPREADS: Final = {"cols": "COL", "rows": "ROW", "scalar": "SCALAR"}


def _binary_init(attrs: Mapping[str, Any]) -> str:
    spread = "" if attrs["bcast"] == "none" else f"_bcast_{attrs['bcast']}"
    return f"{attrs['kind']}{spread}_init({{0}}, {{1}});"


def _binary(kind: str) -> Callable[[Mapping[str, Any]], str]:
    def form(attrs: Mapping[str, Any]) -> str:
        spread = "" if attrs["bcast"] == "none" else f"_bcast_{attrs['bcast']}"
        return f"{kind}_tiles{spread}({{0}}, {{1}}, {{2}}, {{3}}, {{4}});"

    return form


def _reduce(name: str, operands: int) -> Callable[[Mapping[str, Any]], str]:
    listed = ", ".join(f"{{{number}}}" for number in range(operands))

    def form(attrs: Mapping[str, Any]) -> str:
        return f"{name}<PoolType::{_POOLS[attrs['kind']]}, ReduceDim::{_DIMS[attrs['dim']]}>({listed});"

    return form


def _spread(text: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda attrs: text.replace("DIM", _SPREADS[attrs["dim"]])


def float_bits(number: float) -> str:
    """A Float32 as the 32 bits that it is."""
    return f"0x{struct.unpack('<I', struct.pack('<f', number))[0]:08x}u"


def _vector_init(attrs: Mapping[str, Any]) -> str:
    return f"{vector_name(attrs['kind'])}_tile_init();"


def _vector(attrs: Mapping[str, Any]) -> str:
    if "parameter" in attrs:
        return f"{vector_name(attrs['kind'] + '_number')}_tile({{0}}, {float_bits(attrs['parameter'])});"
    return f"{vector_name(attrs['kind'])}_tile({{0}});"


def vector_name(kind: str) -> str:
    """What C++ calls a function of the vector engine."""
    names = {"max_number": "unary_max", "min_number": "unary_min", "max_binary": "binary_max",
             "min_binary": "binary_min", "div_binary": "div_binary"}  # fmt: skip
    return names.get(kind, kind)


VECTOR_HEADERS: Final = {
    **{kind: f"eltwise_unary/{kind}.h" for kind in ("exp", "recip", "rsqrt", "sqrt", "relu", "negative")},
    "erf": "eltwise_unary/erf_erfc.h", "sin": "eltwise_unary/trigonometry.h", "cos": "eltwise_unary/trigonometry.h",
    **dict.fromkeys(("exp2", "log", "tanh", "abs", "max_number", "min_number"), "compute_kernel_api.h"),
    "div_binary": "eltwise_binary_sfpu.h", "max_binary": "binary_max_min.h", "min_binary": "binary_max_min.h",
}  # fmt: skip

TTNN_0_81: Final[dict[str, Intrinsic]] = {
    # Dataflow.
    "tt.cb.reserve_back": Intrinsic("cb_reserve_back({0}, {1});", 2, "cb"),
    "tt.cb.push_back": Intrinsic("cb_push_back({0}, {1});", 2, "cb"),
    "tt.cb.wait_front": Intrinsic("cb_wait_front({0}, {1});", 2, "cb"),
    "tt.cb.pop_front": Intrinsic("cb_pop_front({0}, {1});", 2, "cb"),
    "tt.cb.write_ptr": Intrinsic("get_write_ptr({0})", 1, _DATAFLOW),
    "tt.cb.read_ptr": Intrinsic("get_read_ptr({0})", 1, _DATAFLOW),
    "tt.noc.read_tile": Intrinsic("noc_async_read_page({1}, {0}, {2});", 3, _DATAFLOW),
    "tt.noc.write_tile": Intrinsic("noc_async_write_page({1}, {0}, {2});", 3, _DATAFLOW),
    "tt.noc.read_barrier": Intrinsic("noc_async_read_barrier();", 0, _DATAFLOW),
    "tt.noc.write_barrier": Intrinsic("noc_async_write_barrier();", 0, _DATAFLOW),
    # The engines.
    "tt.engine.startup": Intrinsic(
        lambda attrs: f"compute_kernel_hw_startup{'<SrcOrder::Reverse>' if attrs['order'] == 'reverse' else ''}"
        "({0}, {1}, {2});",
        3,
        _COMPUTE + "compute_kernel_hw_startup.h",
    ),
    "tt.mm.init": Intrinsic("matmul_init({0}, {1});", 2, _COMPUTE + "matmul.h"),
    "tt.mm.mma": Intrinsic("matmul_tiles({0}, {1}, {2}, {3}, {4});", 5, _COMPUTE + "matmul.h"),
    "tt.fpu.init": Intrinsic(_binary_init, 2, _COMPUTE + "eltwise_binary.h"),
    "tt.fpu.add": Intrinsic(_binary("add"), 5, _COMPUTE + "eltwise_binary.h"),
    "tt.fpu.sub": Intrinsic(_binary("sub"), 5, _COMPUTE + "eltwise_binary.h"),
    "tt.fpu.mul": Intrinsic(_binary("mul"), 5, _COMPUTE + "eltwise_binary.h"),
    "tt.reduce.init": Intrinsic(_reduce("reduce_init", 3), 3, _COMPUTE + "reduce.h"),
    "tt.reduce": Intrinsic(_reduce("reduce_tile", 5), 5, _COMPUTE + "reduce.h"),
    "tt.reduce.uninit": Intrinsic("reduce_uninit({0});", 1, _COMPUTE + "reduce.h"),
    "tt.copy.init": Intrinsic("copy_init({0});", 1, _COMPUTE + "tile_move_copy.h"),
    "tt.copy": Intrinsic("copy_tile({0}, {1}, {2});", 3, _COMPUTE + "tile_move_copy.h"),
    "tt.bcast.init": Intrinsic(_spread("unary_bcast_init<BroadcastType::DIM>({0});"), 1, _COMPUTE + "bcast.h"),
    "tt.bcast": Intrinsic(_spread("unary_bcast<BroadcastType::DIM>({0}, {1}, {2});"), 3, _COMPUTE + "bcast.h"),
    "tt.sfpu.init": Intrinsic(_vector_init, 0),
    "tt.sfpu.unary": Intrinsic(_vector, 1),
    "tt.sfpu.binary": Intrinsic(
        lambda attrs: f"{vector_name(attrs['kind'] + '_binary')}_tile({{0}}, {{1}}, {{2}});", 3
    ),
    "tt.reconfig": Intrinsic("reconfig_data_format({0}, {1});", 2, _COMPUTE + "reconfig_data_format.h"),
    "tt.pack.reconfig": Intrinsic("pack_reconfig_data_format({0});", 1, _COMPUTE + "reconfig_data_format.h"),
    "tt.pack.relu": Intrinsic(
        lambda attrs: f"pack_relu_config(ReluConfig::{'zero' if attrs['on'] else 'none'}());", 0, _COMPUTE + "pack.h"
    ),
    # DST.
    "tt.dst.acquire": Intrinsic("tile_regs_acquire();", 0, _COMPUTE + "reg_api.h"),
    "tt.dst.commit": Intrinsic("tile_regs_commit();", 0, _COMPUTE + "reg_api.h"),
    "tt.dst.wait": Intrinsic("tile_regs_wait();", 0, _COMPUTE + "reg_api.h"),
    "tt.dst.release": Intrinsic("tile_regs_release();", 0, _COMPUTE + "reg_api.h"),
    "tt.pack": Intrinsic("pack_tile({0}, {1});", 2, _COMPUTE + "pack.h"),
}  # fmt: skip

PROFILES: Final[dict[str, dict[str, Intrinsic]]] = {"ttnn-0.81": TTNN_0_81}


def header_of(found: Call, row: Intrinsic) -> str:
    """The header that declares an operation of a compute kernel."""
    name = found.op.name
    if name.startswith("tt.sfpu"):
        kind = str(found.attrs["kind"])
        kind += "_binary" if name == "tt.sfpu.binary" else "_number" if "parameter" in found.attrs else ""
        return _COMPUTE + VECTOR_HEADERS[kind]
    if name.startswith("tt.fpu") and found.attrs["bcast"] != "none":
        return _COMPUTE + "bcast.h"
    return _COMPUTE + "cb_api.h" if row.header == "cb" else row.header
