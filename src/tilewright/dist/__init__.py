"""Collectives of several GPUs of one host: by torch.distributed, in one process, or on emulated devices."""

from tilewright.dist.algorithms import TABLE, Thresholds
from tilewright.dist.collectives import Communicator
from tilewright.dist.making import communicator, communicators

__all__ = ["TABLE", "Communicator", "Thresholds", "communicator", "communicators"]
