"""thread-map: the iterations of loops spread over the threads of a block.

before: a kernel launched with one thread in a block, `scf.for %i = %a to %b step %s { body(%i) }`
after:  with `thread-map{threads=128}`: a kernel launched with 128 threads in a block, `%t = thread_idx.x`,
        `scf.for %i = %a + %t * %s to %b step 128 * %s { body(%i) }`

It is for kernels written for one thread, which do not ask which thread they are. Loops whose iterations are independent
are spread, the outermost such loops. What else the kernel writes is written by thread 0, and the block meets before and
after each such piece. A kernel that this does not fit is left as it was, and a remark says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from tilewright.base.errors import PassError
from tilewright.hw.chips import MAX_BLOCK_DIM
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import constant_of, ptr_info, text_of
from tilewright.ir.context import located
from tilewright.ir.walk import operations
from tilewright.passes.accessed_elements import Access, accesses_of
from tilewright.passes.effects import effects_of, memories, name_of
from tilewright.passes.iterations import conflict
from tilewright.passes.kernel_remarks import remark
from tilewright.passes.loop_bodies import Body, clone, is_inside
from tilewright.passes.loop_building import binary, compare, for_loop
from tilewright.passes.loop_counts import trip_count
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.program import Launch, kernels, launches

if TYPE_CHECKING:
    from mlir import ir


@register
class ThreadMap(Pass):
    """Spreads the loops of kernels that were written for one thread over the threads of a block; the launch follows.

    `threads` are those of a block after the pass. A kernel whose iterations may depend on each other stays as it is,
    and a remark of the report says why.
    """

    name = "thread-map"
    options: ClassVar[Mapping[str, object]] = {"threads": 128}

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        if not 1 <= self["threads"] <= MAX_BLOCK_DIM[0]:
            raise PassError(
                f"thread-map: a block has 1 to {MAX_BLOCK_DIM[0]} threads",
                values={"threads": self["threads"]},
                hint="write thread-map{threads=128}",
            )

    def run(self, module: ir.Operation) -> None:
        build.forget_pure()
        for kernel in kernels(module):
            made = [launch for launch in launches(module) if launch.kernel == text_of(kernel, "sym_name")]
            reason = _cannot(kernel, made)
            if reason:
                remark(kernel, f"thread-map leaves this kernel as it is: {reason}")
                continue
            _Spread(kernel, self["threads"]).run()
            for launch in made:
                _relaunch(launch.op, self["threads"])
        build.forget_pure()


def _cannot(kernel: ir.Operation, made: list[Launch]) -> str:
    """Why the loops of a kernel are not spread."""
    if not made or any(launch.block != (1, 1, 1) for launch in made):
        return "it is launched with other blocks than of one thread"
    asks = [op for op in operations(kernel) if op.name == "cute.index" and text_of(op, "name").startswith(_OF_THREADS)]
    if asks:
        return f"it asks for {text_of(asks[0], 'name')}"
    together = next((op.name for op in operations(kernel) if op.name in _TOGETHER or _is_of_thread(op)), "")
    if together:
        return f"{together} is for more threads than one"
    found = effects_of(kernel)
    if found.unknown:
        return f"{found.unknown[0][1]} may do something else in each thread"
    if found.waits:
        return f"{found.waits[0].name} is for more threads than one"
    bodies = [Body(op) for op in operations(kernel) if op.name == "scf.for"]
    if not bodies:
        return "it has no loop"
    reasons = [_not_independent(body) for body in bodies]
    return reasons[0] if all(reasons) else ""


_OF_THREADS = ("thread_idx", "block_dim", "lane_idx", "physical_warp_id", "warp")


_TOGETHER = ("cute.shuffle", "cute.vote", "cute.warp_reduce", "cute.async_commit", "cute.async_wait")


def _is_of_thread(op: ir.Operation) -> bool:
    """True of instructions by their PTX that tell threads apart."""
    return op.name == "cute.ptx_pure" and any(word in text_of(op, "text") for word in ("%tid", "%lane", "%warp"))


def _not_independent(body: Body) -> str:
    """Why the iterations of a loop cannot be done by several threads."""
    if body.initial:
        return "its loop carries a value from one iteration to the next"
    if constant_of(body.step) is None:
        return "the step of its loop is known only at run time"
    if any(op.name == "gpu.printf" for item in body.operations for op in operations(item)):
        return "its loop prints, in order"
    memory = [item for item in accesses_of(*body.operations) if ptr_info(item.tensor.type).space != "rmem"]
    outside = [item for item in accesses_of(*body.operations) if item not in memory and not _is_own(item, body)]
    if outside:
        return "its loop uses registers of before the loop"
    tensor = conflict(memory, [body.index], stores=True)
    return f"iterations of its loop may depend on each other through {name_of(tensor)}" if tensor is not None else ""


def _is_own(access: Access, body: Body) -> bool:
    """True of registers that each iteration has for itself."""
    owners = [value.owner for value in memories(access.tensor)]
    return bool(owners) and all(
        not isinstance(owner, mlir.ir.Block) and is_inside(owner.operation, body.loop) for owner in owners
    )


class _Spread:
    """The walk over a kernel that all threads run through together."""

    def __init__(self, kernel: ir.Operation, threads: int) -> None:
        self.kernel = kernel
        self.threads = threads

    def run(self) -> None:
        block = self.kernel.regions[0].blocks[0]
        with mlir.ir.InsertionPoint.at_block_begin(block), located(lambda: self.kernel.location):
            index = {"name": build.string("thread_idx.x")}
            self.thread = build.value("cute.index", types.parse("i32"), (), index)
        self._block(block)
        self.kernel.attributes["known_block_size"] = build.i32_array([self.threads, 1, 1])

    def _block(self, block: ir.Block) -> None:
        for op in [op.operation for op in block.operations]:
            found = effects_of(op)
            if op.name == "scf.for" and not _not_independent(Body(op)):
                self._alone(op, self._share)
            elif op.name in ("scf.for", "scf.if", "scf.while"):
                for region in op.regions:
                    for inner in region:
                        self._block(inner)
            elif op.name == "gpu.printf" or any(ptr_info(item.type).space != "rmem" for item in found.writes):
                self._alone(op, self._first_thread)

    def _alone(self, op: ir.Operation, change: Callable[[ir.Operation], None]) -> None:
        """Change an operation so that threads do parts of it, and let them meet before and after."""
        location = op.location
        with located(lambda: location):
            with mlir.ir.InsertionPoint(op):
                build.cute("sync_threads", ())
            with mlir.ir.InsertionPoint.after(op):
                build.cute("sync_threads", ())
            with mlir.ir.InsertionPoint(op):
                change(op)

    def _first_thread(self, op: ir.Operation) -> None:
        """Let thread 0 do an operation."""
        first = compare("eq", self.thread, build.constant(0, self.thread.type))
        branch = build.emit("scf.if", (), [first], regions=2)
        inside = branch.regions[0].blocks.append()
        with mlir.ir.InsertionPoint(inside):
            end = build.emit("scf.yield")
        op.move_before(end)

    def _share(self, loop: ir.Operation) -> None:
        """Let each thread do every so manieth iteration; iterations are counted, as a sum of indices may overflow."""
        body = Body(loop)
        kind, step = body.index.type, int(constant_of(body.step) or 1)
        thread = build.value("arith.extui", kind, (self.thread,)) if str(kind) != "i32" else self.thread
        trips, zero, one = trip_count(body), build.constant(0, kind), build.constant(1, kind)
        last = binary("divui", binary("subi", binary("subi", trips, one), thread), build.constant(self.threads, kind))
        some = compare("ult", thread, trips)
        turns = build.value("arith.select", kind, (some, binary("addi", last, one), zero))

        def inside(turn: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            number = binary("addi", thread, binary("muli", turn, build.constant(self.threads, kind)))
            offset = binary("muli", number, build.constant(step, kind))
            mapping = {body.index: binary("addi", body.lower, offset)}
            for op in body.operations:
                clone(op, mapping)
            return []

        for_loop(body, (zero, turns, one), [], inside, {"unsignedCmp": build.attribute("unit")})
        loop.erase()


def _relaunch(launch: ir.Operation, threads: int) -> None:
    """Launch with a block of so many threads."""
    sizes = list(mlir.ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    first = sizes[0] + 3
    kind = launch.operands[first].type
    with mlir.ir.InsertionPoint(launch), located(lambda: launch.location):
        launch.operands[first] = build.constant(threads, kind)
