"""The passes of a compilation, in order. `verify-protocol` is the last; `emit` runs at stage `cpp`."""

from __future__ import annotations

from tilewright.targets.tenstorrent.passes.compute_init import ComputeInit
from tilewright.targets.tenstorrent.passes.finalize_args import FinalizeArgs
from tilewright.targets.tenstorrent.passes.grid_to_core import GridToCore
from tilewright.targets.tenstorrent.passes.infer_layout import InferLayout
from tilewright.targets.tenstorrent.passes.insert_dst import InsertDst
from tilewright.targets.tenstorrent.passes.lower_dataflow import LowerDataflow
from tilewright.targets.tenstorrent.passes.partition import Partition
from tilewright.targets.tenstorrent.passes.smem_to_cb import SmemToCb
from tilewright.targets.tenstorrent.passes.split import Split
from tilewright.targets.tenstorrent.passes.tensorize import Tensorize
from tilewright.targets.tenstorrent.passes.tile_dfg import TileDfg
from tilewright.targets.tenstorrent.passing import TirPass

STANDARD: tuple[TirPass, ...] = (
    InferLayout,
    Partition,
    GridToCore,
    SmemToCb,
    Tensorize,
    TileDfg,
    Split,
    LowerDataflow,
    ComputeInit,
    InsertDst,
    FinalizeArgs,
)
