"""Collectives of several GPUs of one host: by torch.distributed, in one process, or on emulated devices."""

from tilewright.dist.algorithms import TABLE, Thresholds
from tilewright.dist.collectives import Communicator
from tilewright.dist.functions import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    default_communicator,
    reduce_scatter,
)
from tilewright.dist.making import communicator, communicators
from tilewright.lib.comm.node import Node, get, put, signal, wait

__all__ = [
    "TABLE", "Communicator", "Node", "Thresholds", "all_gather", "all_reduce", "all_to_all", "broadcast",
    "communicator", "communicators", "default_communicator", "get", "put", "reduce_scatter", "signal", "wait",
]  # fmt: skip
