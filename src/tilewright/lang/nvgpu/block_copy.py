"""`block_copy`: a tile between global and shared memory by a TMA atom, without `tma_partition`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import arch, trace
from tilewright.lang.atoms.copying import copy
from tilewright.lang.control.generate import run_if
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int16, Int32
from tilewright.lang.nvgpu.tma import TmaAtom, tma_partition
from tilewright.lang.nvgpu.tma_ops import CopyBulkTensorTileG2SMulticastOp, CopyBulkTensorTileG2SOp
from tilewright.lang.tensors.algebra import group_modes
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout, rank


def block_copy(
    atom: Any,
    src: Tensor,
    dst: Tensor,
    *,
    tma_multicast: Mapping[str, Any] | None = None,
    loc: object = None,
    ip: object = None,
    **options: Any,
) -> None:
    """Copy a tile with a TMA atom: one thread of the warp starts it. Options are those of `cute.copy`.

    `tma_multicast` shares a load in the cluster: `cluster_shape` (m, n), and in `multicast_dim` the coordinate, "M" or
    "N", that the blocks have in common which take the same tile. One of them loads it for all; each expects the bytes
    of whole tiles at its own barrier, and says there, for all, that its memory is free.

    Raises:
        CompileError: the atom does not copy boxes, or a store is shared.
    """
    trace.device("block_copy")
    if not isinstance(atom, TmaAtom):
        raise CompileError(
            f"block_copy takes a TMA atom, not {type(atom).__name__}",
            location=user_location(),
            hint="make it on the host with cute.nvgpu.cpasync.make_tiled_tma_atom",
        )
    loads = isinstance(atom.op, CopyBulkTensorTileG2SOp)
    shared, far = (dst, src) if loads else (src, dst)
    parts = tma_partition(atom, 0, Layout(1), *(group_modes(tensor, 0, rank(tensor.shape)) for tensor in (shared, far)))
    sides = (parts[1], parts[0]) if loads else parts
    blocks = 1 if tma_multicast is None else _sharing(tma_multicast)
    if blocks == 1:
        copy(atom, *sides, **options)
        return
    if not loads:
        raise CompileError("block_copy shares loads in the cluster, not stores", location=user_location())
    assert tma_multicast is not None
    first, mask = _group(tma_multicast)
    to_all = TmaAtom(
        CopyBulkTensorTileG2SMulticastOp(), atom.value_type, atom.held, atom.box, atom.swizzle, atom.shared
    )
    with run_if(first):
        copy(to_all, *sides, mcast_mask=mask, **options)


def _shape(multicast: Mapping[str, Any]) -> tuple[int, int]:
    m, n = (int(extent) for extent in tuple(multicast["cluster_shape"])[:2])
    return m, n


def _sharing(multicast: Mapping[str, Any]) -> int:
    """How many blocks take the same tile.

    Raises:
        CompileError: the coordinate is none, or two multiprocessors compute together, which sm_90 has not.
    """
    along = str(multicast.get("multicast_dim"))
    if along not in ("M", "N") or multicast.get("use_2cta_mma_inst"):
        raise CompileError(
            "tma_multicast has cluster_shape, and multicast_dim M or N",
            location=user_location(3),
            values={"tma_multicast": dict(multicast)},
            hint="products of two multiprocessors (use_2cta_mma_inst) need sm_100",
        )
    return _shape(multicast)[1 if along == "M" else 0]


def _group(multicast: Mapping[str, Any]) -> tuple[Any, Any]:
    """Whether this block loads for its group, and the group as bits of ranks."""
    m, n = _shape(multicast)
    place = arch.block_idx_in_cluster()
    across, along = place % m, place // m
    if multicast["multicast_dim"] == "M":
        return along == 0, Int16(Int32(sum(1 << m * block for block in range(n))) << across)
    return across == 0, Int16(Int32((1 << m) - 1) << (along * m))
