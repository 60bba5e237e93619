"""Heaps on GPUs: torch's symmetric memory, one process a rank; or all ranks in one process, by peer access."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed
import torch.distributed._symmetric_memory as symmetric_memory

from tilewright.base import settings
from tilewright.base.errors import ArgumentError, LaunchError
from tilewright.dist.heap import Heap
from tilewright.targets.nvidia.devices.driver import driver


class TorchHeap(Heap):
    """A heap in a tensor of PyTorch; the record is in memory of the host, which outlives a kernel that traps."""

    target = "cuda"

    def __init__(self, rank: int, memory: torch.Tensor, bases: Sequence[int]) -> None:
        self.rank, self.world, self.bases = rank, len(bases), tuple(bases)
        self._memory = memory
        self._pinned = torch.zeros(1, dtype=torch.int64).pin_memory()
        self._record = self._pinned.numpy()
        self.record = self._pinned.data_ptr()

    def view(self, offset: int, shape: Sequence[int], dtype: Any) -> Any:
        nbytes = math.prod(shape) * dtype.itemsize
        return self._memory[offset : offset + nbytes].view(dtype).view(tuple(shape))

    def nothing(self) -> Any:
        return self._memory[:0].view(torch.int32)

    def new(self, like: Any, shape: Sequence[int]) -> Any:
        return torch.empty(tuple(shape), dtype=like.dtype, device=self._memory.device)

    def check(self, tensor: Any) -> None:
        device = self._memory.device
        if not isinstance(tensor, torch.Tensor) or tensor.device != device:
            where = getattr(tensor, "device", type(tensor).__name__)
            raise ArgumentError(f"rank {self.rank} works on {device}, and a tensor is elsewhere",
                                values={"tensor": where}, hint=f"tensor.to('{device}')")  # fmt: skip

    def read_record(self) -> int:
        return int(self._record[0])

    def synchronize(self) -> None:
        torch.cuda.synchronize(self._memory.device)


class SymmetricHeap(TorchHeap):
    """By torch.distributed: one process a rank, symmetric memory without multicast."""

    def __init__(self, group: Any, nbytes: int) -> None:
        if not settings.get("symm_mem_no_multicast"):
            raise ArgumentError(
                "torch's symmetric memory would ask for multicast objects, which this library does not use",
                hint="set TORCH_SYMM_MEM_DISABLE_MULTICAST=1 before the process starts",
            )
        memory = symmetric_memory.empty(
            nbytes, dtype=torch.uint8, device=torch.device("cuda", torch.cuda.current_device())
        )
        handle = symmetric_memory.rendezvous(memory, group.group_name)
        memory.zero_()
        torch.cuda.synchronize()
        torch.distributed.barrier(group)
        super().__init__(handle.rank, memory, handle.buffer_ptrs)
        self._handle, self._group = handle, group

    def nccl(self, t: Any, out: Any, op: str) -> None:
        """out = the tensors of all ranks combined by torch.distributed."""
        if out.data_ptr() != t.data_ptr():
            out.copy_(t)
        ops = torch.distributed.ReduceOp
        kinds = {"sum": ops.SUM, "prod": ops.PRODUCT, "min": ops.MIN, "max": ops.MAX}
        torch.distributed.all_reduce(out, op=kinds[op], group=self._group)


def peer_heaps(devices: Sequence[int], nbytes: int) -> list[TorchHeap]:
    """A heap on each of these devices, all of this process. A device may come more than once.

    Raises:
        LaunchError: a device cannot reach the memory of another.
    """
    memories = [torch.zeros(nbytes, dtype=torch.uint8, device=torch.device("cuda", number)) for number in devices]
    current = torch.cuda.current_device()
    for one in sorted(set(devices)):
        for other in sorted(set(devices) - {one}):
            if not torch.cuda.can_device_access_peer(one, other):
                raise LaunchError(f"device {one} cannot reach the memory of device {other}",
                                  hint="use devices that are linked, or one process a rank")  # fmt: skip
            driver().enable_peer_access(one, other)
    for number in set(devices):
        torch.cuda.synchronize(number)
    torch.cuda.set_device(current)
    bases = [memory.data_ptr() for memory in memories]
    return [TorchHeap(rank, memory, bases) for rank, memory in enumerate(memories)]


def symmetric_heap(group: Any, nbytes: int) -> SymmetricHeap:
    """This rank's heap in a group of torch.distributed; all its ranks call this.

    Raises:
        ArgumentError: torch.distributed has not begun, or would use multicast.
    """
    if not torch.distributed.is_initialized():
        raise ArgumentError(
            "torch.distributed has not been initialised", hint='torch.distributed.init_process_group("nccl", ...) first'
        )
    return SymmetricHeap(torch.distributed.group.WORLD if group is None else group, nbytes)


def group_size(group: Any) -> int:
    """The number of ranks of a group; None is the one of all processes."""
    return torch.distributed.get_world_size(group) if torch.distributed.is_initialized() else 1
