"""The host function and the grid: blocks one after the other, threads until each waits or ends."""

from __future__ import annotations

import numpy as np

from tests.passes.cute_interpreter import numbers
from tests.passes.cute_interpreter.memory import Fault, Pointer, Region, Undefined
from tests.passes.cute_interpreter.program import Block, Op, parse
from tests.passes.cute_interpreter.threads import Thread, Wait

WARP = 32
MOST_THREADS = 2048


def run(
    text: str,
    arrays: dict[str, np.ndarray],
    scalars: dict[str, object],
    *,
    lenient: bool = False,
    most_threads: int = MOST_THREADS,
) -> dict[str, np.ndarray]:
    """What the arrays hold after the host function of the module ran on copies of them.

    With `lenient` a read outside an array gives 0: where nothing hangs on it, a compiler leaves it out.
    """
    module = parse(text)
    (host,) = [op for op in module.operations if op.name == "func.func"]
    regions = {name: Region(array.copy().view(np.uint8).reshape(-1), "gmem", lenient) for name, array in arrays.items()}
    names = [item.get("tilewright.name", "") for item in host.attributes["arg_attrs"]]
    arguments = [_argument(name, arrays, scalars, regions) for name in names]

    def launch(op: Op, thread: Thread) -> None:
        _launch(op, thread, module, most_threads)

    main = Thread({}, (-1, -1), {}, launch)
    for _ in main.block(host.regions[0], arguments):
        raise Undefined("the host waits for threads")
    return {name: region.data.view(arrays[name].dtype).reshape(arrays[name].shape) for name, region in regions.items()}


def _argument(name: str, arrays, scalars, regions):
    if name in arrays:
        return Pointer(regions[name], 0)
    if name in scalars:
        return scalars[name]
    owner, _, leaf = name.rpartition(".")
    if owner not in arrays:
        return None  # the stream
    array = arrays[owner]
    kind, number = leaf.rstrip("0123456789"), int(leaf.lstrip("shapetridn_"))
    return array.shape[number] if kind == "shape" else array.strides[number] // array.itemsize


def _launch(op: Op, host: Thread, module: Block, most_threads: int) -> None:
    path = [part.strip("@") for part in op.attributes["kernel"].split("::")]
    block = module
    for name in path:
        (kernel,) = [inner for inner in block.operations if inner.attributes.get("sym_name") == name]
        block = kernel.regions[0]
    grid, threads = host.read(op.operands[:3]), host.read(op.operands[3:6])
    sizes = op.attributes["operandSegmentSizes"]
    start = sum(sizes[:-2])
    arguments = host.read(op.operands[start : start + sizes[-2]])
    if min(*grid, *threads) < 1 or np.prod(threads) > 1024:
        raise Fault("a launch that no device takes")
    if kernel.attributes.get("known_block_size", threads) != threads:
        raise Undefined("a block that the kernel is not compiled for")
    if np.prod(grid) * np.prod(threads) > most_threads:
        raise Undefined(f"too many threads: {np.prod(grid) * np.prod(threads)}, at most {most_threads}")
    for number, at in enumerate(_places(grid)):
        _block(block, arguments, number, at, grid, threads)


def _places(extents):
    x, y, z = extents
    return [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]


def _block(kernel: Block, arguments, number: int, at, grid, extents) -> None:
    shared: dict = {}
    count = int(np.prod(extents))
    threads = []
    for lane, place in enumerate(_places(extents)):
        indices = {"lane_idx": lane % WARP}
        for head, triple in (("thread_idx", place), ("block_idx", at), ("block_dim", extents), ("grid_dim", grid)):
            indices |= {f"{head}.{axis}": item for axis, item in zip("xyz", triple, strict=True)}
        threads.append(Thread(indices, (number, number * count + lane), shared))
    running = {lane: thread.block(kernel, arguments) for lane, thread in enumerate(threads)}
    waits: dict[int, Wait] = {}
    answers: dict[int, object] = dict.fromkeys(running)
    while running:
        for lane, answer in answers.items():
            try:
                waits[lane] = running[lane].send(answer)
            except StopIteration:
                del running[lane]
        answers = _meet(waits, running, count)
        if not answers and running:
            raise Undefined("threads wait for one another")
        if len(answers) == len(running) and all(waits[lane].op.name == "cute.sync_threads" for lane in answers):
            _forget(threads, arguments, number, shared)
        for lane in answers:
            del waits[lane]


def _forget(threads, arguments, number: int, shared: dict) -> None:
    pointers = [getattr(argument, "pointer", argument) for argument in arguments]
    for pointer in (*pointers, *shared.values()):
        if isinstance(pointer, Pointer):
            pointer.region.forget(number)


def _meet(waits: dict[int, Wait], running: dict, count: int) -> dict[int, object]:
    """The lanes that may go on, with what they get."""
    answers: dict[int, object] = {}
    for first in range(0, count, WARP):
        lanes = range(first, min(first + WARP, count))
        ops = {id(waits[lane].op) if lane in waits else 0 for lane in lanes}
        op = waits[first].op if first in waits else None
        if len(ops) == 1 and op is not None and op.name != "cute.sync_threads":
            given = [waits[lane].value for lane in lanes]
            answers |= dict(zip(lanes, _exchange(op, given), strict=True))
    if not answers and len(running) == count and len({id(wait.op) for wait in waits.values()}) == 1:
        return dict.fromkeys(running)
    return answers


def _exchange(op: Op, given: list) -> list:
    """What each lane of a warp gets."""
    values = [item[0] for item in given]
    if len(values) < WARP:
        raise Undefined("a warp that is not full")
    if op.name == "cute.sync_warp":
        return [None] * WARP
    if op.name == "cute.warp_reduce":
        return _butterfly(op, values)
    if any(item[-1] != -1 for item in given):
        raise Undefined("lanes left out")
    if op.name == "cute.vote":
        return _vote(op.attributes["kind"], values)
    kind, clamp = op.attributes["kind"], op.attributes["clamp"]
    sources = [_source(kind, lane, item[1] & 31, clamp & 31, clamp >> 8 & 31) for lane, item in enumerate(given)]
    return [values[source] for source in sources]


def _source(kind: str, lane: int, step: int, clamp: int, mask: int) -> int:
    """The lane that gives a value: PTX ISA, `shfl.sync`."""
    last = (lane & mask) | (clamp & ~mask)
    source = {"up": lane - step, "down": lane + step, "bfly": lane ^ step, "idx": (lane & mask) | (step & ~mask)}[kind]
    inside = source >= last if kind == "up" else source <= last
    return source if inside else lane


def _butterfly(op: Op, values: list) -> list:
    step = op.attributes["width"] // 2
    while step:
        values = [numbers.fold(op.attributes["kind"], values[n], values[n ^ step], op.types[0]) for n in range(WARP)]
        step //= 2
    return values


def _vote(kind: str, values: list) -> list:
    if kind == "ballot":
        return [numbers.wrapped(sum(int(value != 0) << n for n, value in enumerate(values)), "i32")] * WARP
    found = {"any": any(values), "all": all(values), "uni": len({bool(value) for value in values}) == 1}[kind]
    return [int(found)] * WARP
