"""Collectives of several GPUs of one host: by torch.distributed, in one process, or on emulated devices."""

from tilewright.dist.algorithms import TABLE, Thresholds
from tilewright.dist.collectives import Communicator
from tilewright.dist.making import communicator, communicators
from tilewright.lib.comm.node import Node, get, put, signal, wait

__all__ = [
    "TABLE", "Communicator", "Node", "Thresholds", "communicator", "communicators", "get", "put", "signal", "wait",
]  # fmt: skip
