"""A kernel whose tiles are being expanded: its thread, where its thread stands in a tile, shared memory, barriers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, layout_text, mlir, types
from tilewright.ir.accessors import tensor_info
from tilewright.ir.context import located
from tilewright.lang import arch
from tilewright.lang.numbers.numeric import Boolean, Int32, Int64, Numeric, from_mlir_type
from tilewright.lang.tensors.pointer import AddressSpace, Held, Pointer
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.layout import Layout
from tilewright.targets.nvidia.tiles.distribution import Coordinate, Distribution

if TYPE_CHECKING:
    from mlir import ir

SHARED_ALIGN = 16


class Block:
    """What the code of all operations of a kernel shares. `threads` is their number."""

    def __init__(self, kernel: ir.Operation, threads: int) -> None:
        self.threads = threads
        self._entry = kernel.regions[0].blocks[0]
        self._place = kernel.location
        with mlir.ir.InsertionPoint.at_block_begin(self._entry), located(lambda: self._place):
            self.thread = arch.linear_thread_idx()
            self._memory = build.cute("alloc", (types.ptr("i8", "smem", SHARED_ALIGN),), (), bytes=build.i32(1))
            self._behind = self._memory
        self._used = 0
        self._known: dict[Any, Int32] = {}

    # Where the thread stands.

    def part(self, distribution: Distribution, mode: int, divisor: int = 1) -> Int32:
        """Where a thread's elements begin along a mode, in units of `divisor` elements."""
        bits = [(bit, distribution.threads[bit][1] // divisor) for bit in distribution.bits_along(mode)]  # type: ignore[index]
        return self._at_entry(("part", tuple(bits)), lambda: self._moved(bits))

    def first_of_copies(self, distribution: Distribution) -> Boolean | None:
        """Whether this thread is the first of those that hold the same elements; None where all hold others."""
        copies = distribution.copies
        if not copies:
            return None
        masked = self._at_entry(("copies", copies), lambda: self.thread & copies)
        return masked == 0

    def number_of(self, bits: list[int]) -> Int32:
        """The number that some bits of the thread's number make, the first of them lowest."""
        pairs = [(bit, 1 << number) for number, bit in enumerate(bits)]
        return self._at_entry(("part", tuple(pairs)), lambda: self._moved(pairs))

    def _moved(self, bits: list[tuple[int, int]]) -> Int32:
        """The sum of the steps of the bits that are set; neighbours that double are taken together."""
        total = Int32(0)
        rest = sorted(bits)
        while rest:
            count = 1
            while count < len(rest) and rest[count] == (rest[0][0] + count, rest[0][1] << count):
                count += 1
            low, step = rest[0]
            found = (
                (self.thread >> low) & ((1 << count) - 1) if (1 << low + count) < self.threads else self.thread >> low
            )
            total = total + found * step
            rest = rest[count:]
        return total

    def _at_entry(self, key: Any, make: Callable[[], Int32]) -> Int32:
        """A number computed once, where the kernel begins."""
        if key not in self._known:
            with mlir.ir.InsertionPoint.after(self._behind), located(lambda: self._place):
                made = Int32(make())
                if not made.is_static:
                    made.bound = 1 << 30
                self._known[key] = made
                self._behind = made.ir_value().owner if not made.is_static else self._behind
        return self._known[key]

    # Shared memory.

    def shared(self, element: ir.Type, layout: Layout, count: int) -> Tensor:
        """Memory of its own for `count` elements, arranged by `layout`."""
        dtype = from_mlir_type(element)
        start = self._used
        self._used += -(-count * max(dtype.width, 8) // 8 // SHARED_ALIGN) * SHARED_ALIGN
        base = Pointer(self._memory.results[0], from_mlir_type(types.parse("i8")), AddressSpace.smem, SHARED_ALIGN)
        moved = (base + start).value
        value = build.cute("ptr_cast", (types.ptr(dtype.facts.name, "smem", SHARED_ALIGN),), ((moved,),)).results[0]
        return make_tensor(Pointer(value, dtype, AddressSpace.smem, SHARED_ALIGN), layout)

    def finish(self) -> None:
        """Say how much shared memory was handed out."""
        if self._used:
            self._memory.attributes["bytes"] = build.i32(self._used)
        else:
            self._memory.erase()

    @staticmethod
    def meet() -> None:
        """Wait for all threads."""
        build.cute("sync_threads", ())

    def meet_again(self, op: ir.Operation) -> None:
        """Wait for all threads where `op` may run more than once: they may still read what it is about to write."""
        above = op.parent
        while above is not None and above.operation.name != "gpu.func":
            if above.operation.name in ("scf.for", "scf.while"):
                self.meet()
                return
            above = above.operation.parent


def tensor_of(value: ir.Value) -> Tensor:
    """A tensor of stage `cute` as one of the language."""
    info = tensor_info(value)
    dtype = from_mlir_type(info.element)
    held, count = Held(value, tensor=True), iter(range(1 << 30))

    def leaf(width: int, divisibility: int) -> Numeric:
        type_ = Int64 if width == 64 else Int32
        op = build.cute("leaf", (type_.mlir_type,), ((value,),), index=build.i32(next(count)))
        made = type_.from_ir(op.results[0])
        made.divisibility, made.bound = max(divisibility, 1), type_.max
        return made

    layout = layout_text.decode_layout(info.text, leaf)
    pointer = Pointer(held, dtype, AddressSpace[info.space], info.align)
    return Tensor(pointer, layout, dtype, held)


def extents_of(tensor: Tensor) -> Coordinate:
    """The extents of a tensor, mode by mode; ints or integers of run time."""
    return tensor.shape if isinstance(tensor.shape, tuple) else (tensor.shape,)


def when(
    condition: Any, type_: ir.Type | None, then: Callable[[], Any], otherwise: Callable[[], Any] | None = None
) -> Any:
    """What `then` builds where `condition` holds, else `otherwise`; with a type both give a value of it."""
    if isinstance(condition, bool) or condition.is_static:
        known = condition if isinstance(condition, bool) else bool(condition.value)
        return then() if known else otherwise() if otherwise is not None else None
    branch = build.emit("scf.if", [] if type_ is None else [type_], (condition.ir_value(),), regions=2)
    for region, body in zip(branch.regions, (then, otherwise), strict=True):
        if body is not None:
            with mlir.ir.InsertionPoint(region.blocks.append()):
                found = body()
                build.emit("scf.yield", (), () if type_ is None else (found,))
    return None if type_ is None else branch.results[0]


def every(conditions: list[Any]) -> Any:
    """Whether all hold."""
    found: Any = True
    for condition in conditions:
        if isinstance(condition, bool):
            if not condition:
                return False
        elif found is True:
            found = condition
        else:
            found = found & condition
    return found
