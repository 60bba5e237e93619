"""Products whose operands are copied ahead of time.

The rule: a `for` has one `tile.dot` in it, whose two operands are loaded in the loop, padded with zeros and used
nowhere else, at coordinates that are the loop's variable or do not change in it; and nothing in the loop writes memory.
Then both operands go through a ring of stages in shared memory, filled by cp.async while earlier stages are multiplied:

    copy stages 0 .. S-2
    for each step:  wait for its stage; meet; copy the step S-1 further on; multiply

Where address, strides or extents turn out not to be multiples of a group, stages are filled by loads and stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import constant_of
from tilewright.ir.walk import address, operations
from tilewright.lang.control.generate import for_generate, yield_out
from tilewright.lang.numbers.numeric import Int32, Uint32
from tilewright.lang.nvgpu.cpasync import CopyG2SOp, LoadCacheMode
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout
from tilewright.targets.nvidia.tiles.access import Window, load, put_all, whole_groups, window
from tilewright.targets.nvidia.tiles.assignment import contiguous_mode
from tilewright.targets.nvidia.tiles.block import Block, when
from tilewright.targets.nvidia.tiles.distribution import Distribution
from tilewright.targets.nvidia.tiles.products import Product, Staged, multiply_staged, row_elements

if TYPE_CHECKING:
    from mlir import ir

STAGES = (4, 3, 2)
MOST_BYTES = 112 * 1024
"""Of shared memory for the stages, so that two blocks find room on a multiprocessor."""
_COPIED_BITS = (32, 64, 128)
_MULTIPLIED_BITS = (8, 16)  # by mma.sync
_QUIET = ("arith.", "math.", "vector.", "scf.", "cute.tile_", "cute.convert", "cute.leaf", "cute.index", "cute.profile")


@dataclass(frozen=True)
class MainLoop:
    """A loop, its product, and the loads of the product's operands."""

    loop: ir.Operation
    dot: ir.Operation
    loads: tuple[ir.Operation, ir.Operation]


def find_main_loops(ops: Sequence[ir.Operation]) -> list[MainLoop]:
    """The loops to which the rule applies."""
    found = (_main_loop(op) for op in ops if op.name == "scf.for")
    return [item for item in found if item is not None]


def _main_loop(loop: ir.Operation) -> MainLoop | None:
    inner = operations(loop)[1:]
    dots = [op for op in inner if op.name == "cute.tile_dot"]
    if len(dots) != 1 or any(op.name == "cute.tile_store" or not op.name.startswith(_QUIET) for op in inner):
        return None
    first, second = (getattr(value.owner, "operation", value.owner) for value in list(dots[0].operands)[:2])
    direct = {address(op.operation) for op in loop.regions[0].blocks[0].operations}
    if address(dots[0]) not in direct or not all(_can_be_ahead(item, loop, direct) for item in (first, second)):
        return None
    return MainLoop(loop, dots[0], (first, second))


def _can_be_ahead(made: Any, loop: ir.Operation, direct: set[int]) -> bool:
    """Whether an operand of a product can be copied ahead."""
    if getattr(made, "name", "") != "cute.tile_load" or address(made) not in direct:
        return False
    (tensor,), origin = build.groups(made)
    variable = loop.regions[0].blocks[0].arguments[0]
    element = mlir.ir.RankedTensorType(made.results[0].type).element_type
    return (
        getattr(element, "width", 0) in _MULTIPLIED_BITS
        and sum(1 for _ in made.results[0].uses) == 1
        and mlir.ir.FloatAttr(made.attributes["pad"]).value == 0
        and all(value == variable or constant_of(value) is not None or _is_outside(value, loop) for value in origin)
        and _is_outside(tensor, loop)
        and contiguous_mode(tensor) is not None
    )


def _is_outside(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether a value is there before the loop begins."""
    owner = value.owner
    above = owner.owner if isinstance(owner, mlir.ir.Block) else owner.parent
    above = above.operation if above is not None else None
    while above is not None:
        if above == loop:
            return False
        above = above.parent.operation if above.parent is not None else None
    return True


class Pipeline:
    """A main loop whose operands are held in stages."""

    def __init__(self, block: Block, found: MainLoop, product: Product, held: Sequence[Distribution]) -> None:
        """`held` are the distributions of the two loads."""
        self._block, self._found, self._product = block, found, product
        self._windows = [self._window(op, how) for op, how in zip(found.loads, held, strict=True)]

    def stages(self) -> int:
        """How many stages there are; 0 where the operands cannot be held in stages."""
        bytes_ = 0
        for k_mode, seen in zip((1, 0), self._windows, strict=True):
            width = seen.tensor.element_type.width
            if seen.width * width not in _COPIED_BITS or (width == 8 and seen.fast != k_mode):
                return 0
            bytes_ += row_elements(seen.held.shape, seen.fast, width) * seen.held.shape[1 - seen.fast] * width // 8
        return next((count for count in STAGES if count * bytes_ <= MOST_BYTES), 0)

    def _window(self, op: ir.Operation, held: Distribution) -> Window:
        (tensor,), origin = build.groups(op)
        return window(self._block, tensor, origin, held)

    def before(self) -> None:
        """Fill the first stages. It is built in front of the loop."""
        count = self.stages()
        self._block.meet_again(self._found.loop)
        self._memory = [self._ring(seen, count) for seen in self._windows]
        start, stop, step = self._bounds()
        with for_generate(0, count - 1) as (number,):
            at = start + number * step
            when(at < stop, None, lambda: self._copy(at, number))
            build.cute("async_commit", ())
            yield_out()

    def multiply(self, sums: ir.Value) -> ir.Value:
        """A step of the loop: the sums after it. It is built where the product stands."""
        count = self.stages()
        start, stop, step = self._bounds()
        now = Int32.from_ir(self._found.loop.regions[0].blocks[0].arguments[0])
        number = Uint32(now - start) // Uint32(step)
        build.cute("async_wait", (), (), groups=build.i32(count - 2))
        self._block.meet()
        ahead = now + (count - 1) * step
        when(ahead < stop, None, lambda: self._copy(ahead, Int32((number + (count - 1)) % count)))
        build.cute("async_commit", ())
        stage = Int32(number % count)
        left, right = (memory[None, None, stage] for memory in self._memory)
        operands = [
            Staged(memory, seen.fast == k_mode)
            for memory, seen, k_mode in zip((left, right), self._windows, (1, 0), strict=True)
        ]
        return multiply_staged(self._block, self._product, operands[0], operands[1], sums)

    def _bounds(self) -> list[Any]:
        return [Int32.from_ir(value) for value in list(self._found.loop.operands)[:3]]

    def _ring(self, seen: Window, count: int) -> Tensor:
        shape, fast = seen.held.shape, seen.fast
        row = row_elements(shape, fast, seen.tensor.element_type.width)
        size = row * shape[1 - fast]
        strides = tuple(1 if mode == fast else row for mode in (0, 1))
        layout = Layout((*shape, count), (*strides, size))
        return self._block.shared(seen.tensor.element_type.mlir_type, layout, size * count)

    def _copy(self, at: Int32, stage: Int32) -> None:
        """Copy the tiles of a step to a stage."""
        variable = self._found.loop.regions[0].blocks[0].arguments[0]
        for op, seen, memory in zip(self._found.loads, self._windows, self._memory, strict=True):
            origin = [
                at if value == variable else known
                for value, known in zip(build.groups(op)[1], seen.origin, strict=True)
            ]
            _fill(seen.at(origin), memory[None, None, stage])


def _fill(seen: Window, memory: Tensor) -> None:
    """Copy a tile to shared memory; zeros lie where the tensor ends."""
    wide_enough, wide = seen.wide()
    target = whole_groups(seen, memory)

    def asynchronous() -> None:
        bits = seen.width * seen.tensor.element_type.width
        cache = LoadCacheMode.GLOBAL if bits == _COPIED_BITS[-1] else LoadCacheMode.ALWAYS
        atom = build.string(CopyG2SOp(cache).text(bits))
        for value in seen.groups:
            inside = seen.inside(value, seen.width)
            pred = () if inside is True else (_flag(inside),)
            build.cute("copy", (), ((wide.group(value).value,), (target.group(value).value,), pred), atom=atom)

    when(wide_enough, None, asynchronous, lambda: put_all(target, load(seen, 0.0)))


def _flag(condition: Any) -> ir.Value:
    return build.value("vector.from_elements", types.parse("vector<1xi1>"), (condition.ir_value(),))
