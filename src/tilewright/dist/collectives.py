"""The communicator: one rank's view of several GPUs, and the collectives that all ranks call together."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import tilewright.cute as cute
from tilewright.base.errors import ArgumentError, LaunchError
from tilewright.dist import algorithms
from tilewright.dist.heap import Heap, timed_out
from tilewright.dist.places import LINE_RATE, Places, aligned
from tilewright.kernels import views
from tilewright.kernels.all_reduce_lamport import PAYLOAD, launch_lamport
from tilewright.kernels.all_reduce_two_shot import launch_two_shot
from tilewright.kernels.exchange import launch_exchange
from tilewright.kernels.exchanging import ARRIVED, LINES, OPS, PUBLISHED, THREADS, UNROLL, ExchangePlan
from tilewright.kernels.launching import address_of
from tilewright.lib.comm.node import CLOCK_MHZ, SLOT_BYTES, Node, read_record

ACCESS_BYTES = 16
EXCHANGE_BLOCKS = 128
TIMEOUT = 30.0
"""Seconds that a rank waits for another."""
_FLAGS = {ARRIVED: "data", PUBLISHED: "a result", LINES: "data that carries flags"}


class Communicator:
    """Rank `rank` of `world`. Every rank makes the same calls in the same order, each with its own communicator.

    Calls are queued on the current stream of the rank's device and can be captured in a CUDA graph. Sums are formed in
    the order of ranks, in float32 for halves, and are bitwise equal on all ranks and in all runs.

    A rank waits for others `timeout` seconds at most; then its kernel ends with a trap, and the next call or
    `synchronize` raises a `LaunchError` that names rank, block and flag.
    """

    def __init__(self, heap: Heap, places: Places, size: int, timeout: float | None = None, nccl: Any = None) -> None:
        self._heap, self._places, self._size, self._nccl = heap, places, size, nccl
        self._next, self._signals = places.free, 0
        self.rank, self.world = heap.rank, heap.world
        ticks = heap.ticks(timeout) or int((TIMEOUT if timeout is None else timeout) * CLOCK_MHZ * 1e6)
        self._signals_at = places.slots + SLOT_BYTES * places.own_slots
        self._own = self._node(places.slots, ticks)
        self._users = self._node(self._signals_at, ticks)

    def _node(self, signals: int, ticks: int) -> Node:
        heap = self._heap
        bases = tuple(cute.Int64(base) for base in heap.bases)
        return Node(heap.rank, bases, signals, heap.record, ticks)  # type: ignore[arg-type]

    # Memory that all ranks see.

    @property
    def node(self) -> Node:
        """What kernels take to `put`, `get`, `signal` and `wait` (`tilewright.lib.comm.node`)."""
        return self._users

    def empty(self, shape: int | Sequence[int], dtype: Any) -> Any:
        """A tensor in the heap, at the same place in that of every rank, since all of them make this call.

        It lasts as long as the heap.

        Raises:
            ArgumentError: the heap has no room for it.
        """
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        made = self._heap.view(self._next, sizes, dtype) if self._fits(sizes, dtype) else None
        if made is None:
            raise ArgumentError(
                "the heap has no room for this tensor",
                values={"shape": sizes, "dtype": dtype, "free bytes": self._size - self._next},
                hint="make the communicator with a larger heap=",
            )
        self._next = aligned(self._next + math.prod(sizes) * _itemsize(dtype))
        return made

    def _fits(self, sizes: Sequence[int], dtype: Any) -> bool:
        return self._next + math.prod(sizes) * _itemsize(dtype) <= self._size

    def signals(self, count: int) -> range:
        """The numbers of `count` slots for `signal` and `wait`, the same on all ranks, each 0 at first.

        Raises:
            ArgumentError: there are no more.
        """
        first = self._signals
        if first + count > self._places.signals:
            raise ArgumentError(
                "there are no more slots for signals", values={"wanted": count, "left": self._places.signals - first},
                hint="make the communicator with more signals=",
            )  # fmt: skip
        self._signals += count
        return range(first, first + count)

    # Collectives.

    def all_reduce(
        self, t: Any, op: str = "sum", algo: str = "auto", out: Any = None, deterministic: bool = True
    ) -> Any:
        """out = the tensors `t` of all ranks, combined element by element; `t` itself where no `out` is given.

        Args:
            t: a contiguous tensor, of the same shape and type on all ranks.
            op: "sum", "prod", "min" or "max".
            algo: "lamport" (few bytes), "one_shot", "two_shot", "nccl" (of torch.distributed), or "auto", which goes
                by `dist.algorithms.TABLE`.
            deterministic: whether the order of a sum may not change; if it may, "auto" takes NCCL for large tensors.

        Raises:
            ArgumentError: a tensor, an operation or an algorithm that cannot be.
        """
        out = t if out is None else out
        self._check((t, out), op)
        if tuple(out.shape) != tuple(t.shape):
            raise ArgumentError(
                "out has another shape", values={"t": tuple(t.shape), "out": tuple(out.shape)},
                hint="give out the shape of t, or leave it out to write to t",
            )  # fmt: skip
        count, size = _count(t), _itemsize(t.dtype)
        if algo == "auto":
            room = self._places.regions.line_part // LINE_RATE
            algo = algorithms.choose(self.world, count * size, room, deterministic, self._nccl is not None)
        if algo not in algorithms.ALGORITHMS:
            known = ", ".join(("auto", *algorithms.ALGORITHMS))
            raise ArgumentError(f"there is no algorithm {algo!r}", hint=f"one of {known}")
        if algo == "nccl":
            return self._by_nccl(t, out, op)
        part = self._places.regions.line_part // LINE_RATE if algo == "lamport" else self._places.regions.part
        most = part // size // ACCESS_BYTES * ACCESS_BYTES * (self.world if algo == "two_shot" else 1)
        source, target = _flat(t), _flat(out)
        for first in range(0, count, most):
            some = slice(first, min(first + most, count))
            self._reduce_piece(source[some], target[some], op, algo)
        return out

    def _reduce_piece(self, x: Any, out: Any, op: str, algo: str) -> None:
        count, blocks = _count(x), self._places.regions.blocks
        if algo == "lamport":
            plan = self._plan(x, out, op, "all", PAYLOAD)
            lines = -(-count // plan.vector)
            self._run(launch_lamport, x, out, plan, min(-(-lines // THREADS), blocks), count)
            return
        if algo == "one_shot":
            self._exchange(x, out, self._plan(x, out, op, "all"), count)
            return
        plan = self._plan(x, out, op, "slices")
        each = -(-count // self.world // plan.vector) * plan.vector
        each += plan.vector if each * self.world < count else 0
        self._run(launch_two_shot, x, out, plan, self._blocks(each, plan), each, count)

    def all_gather(self, t: Any, out: Any = None) -> Any:
        """out = the tensors of all ranks one after the other: (world * t.shape[0], ...), or (world,) of a scalar.

        Raises:
            ArgumentError: a tensor that cannot be, or an `out` of another size.
        """
        shape = tuple(t.shape)
        out = self._heap.new(t, (self.world * shape[0], *shape[1:]) if shape else (self.world,)) if out is None else out
        self._check((t, out))
        self._count_is(out, self.world * _count(t), "the tensors of all ranks")
        self._pieces(t, out, "", "all", 0, _count(t))
        return out

    def reduce_scatter(self, t: Any, out: Any = None, op: str = "sum") -> Any:
        """out = this rank's slice of the tensors of all ranks, combined: (t.shape[0] / world, ...).

        `t` has `world` equal slices along dimension 0; `op` is one of those of `all_reduce`.

        Raises:
            ArgumentError: a tensor or an operation that cannot be, or an `out` of another size.
        """
        out = self._heap.new(t, self._slice_shape(t)) if out is None else out
        self._check((t, out), op)
        self._count_is(t, self.world * _count(out), "a slice like out for each rank")
        self._pieces(t, out, op, "slices", _count(out), 0)
        return out

    def all_to_all(self, t: Any, out: Any = None) -> Any:
        """Slice r of out = slice `rank` of rank r's tensor; both have t's shape, in `world` slices along dimension 0.

        Raises:
            ArgumentError: a tensor that cannot be, an `out` of another size, or one that is `t` itself.
        """
        self._slice_shape(t)
        out = self._heap.new(t, tuple(t.shape)) if out is None else out
        self._check((t, out))
        self._count_is(out, _count(t), "as many elements as t")
        if address_of(out) == address_of(t) and _count(t):
            raise ArgumentError("all_to_all cannot write over its input", hint="pass another tensor as out=")
        self._pieces(t, out, "", "slices", _count(t) // self.world, _count(t) // self.world)
        return out

    def broadcast(self, t: Any, src: int = 0) -> Any:
        """t = the tensor of rank `src`, of the same shape and type on all ranks.

        Raises:
            ArgumentError: a tensor that cannot be, or no such rank.
        """
        self._check((t,))
        if not 0 <= src < self.world:
            hint = f"ranks are 0 to {self.world - 1}"
            raise ArgumentError(f"there is no rank {src}", values={"world": self.world}, hint=hint)
        self._pieces(t, t, "", "root", 0, 0, src)
        return t

    def barrier(self) -> None:
        """What is queued after this on the device waits until all ranks have reached it."""
        empty = self._heap.nothing()
        plan = ExchangePlan(cute.Int32, "", "all", self.world, 4, 4, self._places.regions)
        self._run(launch_exchange, empty, empty, plan, 1, 0, 0, 0, 0)

    def synchronize(self) -> None:
        """Wait, on the host, until all that is queued has been done.

        Raises:
            LaunchError: a rank has waited for another in vain.
        """
        try:
            self._heap.synchronize()
        except Exception as error:
            if timed_out(error):
                self._raise_recorded(error)
            raise
        self._raise_recorded(None)

    # Launches.

    def _pieces(self, x: Any, out: Any, op: str, sends: str, x_step: int, out_step: int, root: int = 0) -> None:
        """Exchange slices, as much at a time as the heap has room for."""
        plan = self._plan(x, out, op, sends, ACCESS_BYTES, (x_step, out_step))
        length = x_step or _count(x)
        most = self._places.regions.part // _itemsize(x.dtype) // ACCESS_BYTES * ACCESS_BYTES
        source, target = _flat(x), _flat(out)
        for first in range(0, length, most):
            some = min(most, length - first)
            self._exchange(source[first:], target[first:], plan, some, x_step, out_step, root)

    def _exchange(
        self, x: Any, out: Any, plan: ExchangePlan, length: int, x_step: int = 0, out_step: int = 0, root: int = 0
    ) -> None:  # fmt: skip
        self._run(launch_exchange, x, out, plan, self._blocks(length, plan), length, x_step, out_step, root)

    def _blocks(self, length: int, plan: ExchangePlan) -> int:
        groups = -(-length // (plan.vector * THREADS * UNROLL))
        return max(1, min(groups, EXCHANGE_BLOCKS, self._places.regions.blocks))

    def _plan(
        self, x: Any, out: Any, op: str, sends: str, access: int = ACCESS_BYTES, steps: Sequence[int] = ()
    ) -> ExchangePlan:  # fmt: skip
        """What the kernel is compiled for; accesses are as wide as addresses and slices allow."""
        dtype = views.dtype_of(x)
        size = max(dtype.width, 8) // 8
        unit = access // size
        numbers = (address_of(x) // size, address_of(out) // size, *steps)
        while unit > 1 and any(number % unit for number in numbers):
            unit //= 2
        vector = access // size if access == PAYLOAD else unit
        return ExchangePlan(dtype, op, sends, self.world, vector, unit, self._places.regions)

    def _run(self, launch: Any, x: Any, out: Any, plan: ExchangePlan, *numbers: int) -> None:
        self._raise_recorded(None)
        aligned_to = min(_alignment(address_of(x)), _alignment(address_of(out)))
        executor = _executor(launch, plan, self._heap.target, aligned_to, len(numbers), self.world)
        with self._heap.on():
            executor(x, out, self._own, *numbers)

    def _by_nccl(self, t: Any, out: Any, op: str) -> Any:
        if self._nccl is None:
            raise ArgumentError(
                "this communicator has no NCCL", hint="it takes one made of a group of torch.distributed"
            )
        self._nccl(t, out, op)
        return out

    # Checks.

    def _check(self, tensors: Sequence[Any], op: str = "sum") -> None:
        if op not in OPS:
            raise ArgumentError(f"there is no operation {op!r}", hint=f"one of {', '.join(OPS)}")
        for tensor in tensors:
            self._heap.check(tensor)
            if not _contiguous(tensor):
                raise ArgumentError("a tensor is not contiguous", values={"shape": tuple(tensor.shape)}, hint="copy it")
            if tensor.dtype != tensors[0].dtype:
                values = {"t": tensors[0].dtype, "out": tensor.dtype}
                raise ArgumentError("out has another type than t", values=values, hint="give out the dtype of t")
        if "bool" in str(tensors[0].dtype):
            raise ArgumentError("tensors of bool are not exchanged", hint="view them as uint8")

    def _slice_shape(self, t: Any) -> tuple[int, ...]:
        shape = tuple(t.shape)
        if not shape or shape[0] % self.world:
            raise ArgumentError(
                f"dimension 0 has no {self.world} equal slices", values={"shape": shape, "ranks": self.world},
                hint="pad it to a multiple of the number of ranks",
            )  # fmt: skip
        return (shape[0] // self.world, *shape[1:])

    def _count_is(self, tensor: Any, wanted: int, what: str) -> None:
        if _count(tensor) != wanted:
            raise ArgumentError(
                f"a tensor must have {what}",
                values={"elements": _count(tensor), "wanted": wanted, "ranks": self.world},
                hint="leave out= away, and it is allocated",
            )

    def _raise_recorded(self, cause: BaseException | None) -> None:
        word = self._heap.read_record()
        if word:
            raise self._timed_out(word) from cause

    def _timed_out(self, word: int) -> LaunchError:
        rank, block, slot, seen = read_record(word)
        kind, place = divmod(slot, self._places.regions.blocks * self.world)
        own = self._places.own_slots
        what = f"{_FLAGS[kind]} of rank {place % self.world}" if slot < own else f"a signal in slot {slot - own}"
        return LaunchError(
            f"Rank {rank} has waited in vain for {what}",
            values={"rank": rank, "block": block, "slot": slot if slot < own else slot - own, "seen": seen},
            hint="does every rank run, and make the same calls in the same order? timeout= allows for more",
        )


def compiled(
    launch: Any, plan: ExchangePlan, target: str, align: int, numbers: int, world: int, **options: Any
) -> Any:  # fmt: skip
    """The kernel for tensors aligned to so many bytes, so many numbers behind the node, and so many ranks."""

    def fake() -> Any:
        return cute.runtime.make_fake_tensor(plan.dtype, (cute.sym_int64(),), stride=(1,), assumed_align=align)

    node = Node(0, tuple(cute.Int64(0) for _ in range(world)), 0, 0, 0)  # type: ignore[arg-type]
    return cute.compile(launch, fake(), fake(), node, *[1] * numbers, plan, target=target, **options)


_executor = functools.lru_cache(maxsize=256)(compiled)


def _alignment(address: int) -> int:
    """The power of two, 16 at most, that divides an address."""
    return min(address & -address or ACCESS_BYTES, ACCESS_BYTES)


def _itemsize(dtype: Any) -> int:
    size = getattr(dtype, "itemsize", None)
    return size if isinstance(size, int) else np.dtype(dtype).itemsize


def _count(tensor: Any) -> int:
    return math.prod(tuple(tensor.shape))


def _flat(tensor: Any) -> Any:
    return tensor.reshape(-1)


def _contiguous(tensor: Any) -> bool:
    return bool(tensor.flags.c_contiguous if isinstance(tensor, np.ndarray) else tensor.is_contiguous())
