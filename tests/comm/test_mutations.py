"""Each barrier, fence and flag of the collectives matters: without any one of them the emulator reports a fault, or the
numbers are wrong."""

import re

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.comm import cases
from tilewright import EmulationError
from tilewright.cute.runtime import from_dlpack
from tilewright.emulate import run_ptx

SEEDS = range(6)
REMOVED = re.compile(r"^\s*(@\S+ )?(\{[^}]*)?\b(bar|barrier|fence|membar|mbarrier)\b")
WEAKENED = re.compile(r"\.(acquire|release|acq_rel)\.")


@cute.jit
def in_a_loop(x, collective):
    """The sum of three all-reduces, whose memory is used again."""
    total = x * 0
    for number in cutlass.range(3, unroll=1):
        total = total + collective(x + number)
    return total


def block(x, _):
    return in_a_loop(x, lambda y: cute.block_allreduce(y))


def many_warps(x, _):
    return in_a_loop(x, lambda y: cute.block_allreduce(y, "max"))


def wide(x, _):
    return in_a_loop(x, lambda y: cute.block_allreduce(y))


def memory(x, _):
    """The caller's memory, used twice in two ways."""
    place = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int8, 256, 16)

    def collective(y):
        wide = cute.block_allreduce(cutlass.Int64(y), smem=place)
        least, most, total = cute.block_allreduce((y, y, y), ("min", "max", "add"), smem=place)
        return least + most + total + cutlass.Int32(wide)

    return in_a_loop(x, collective)


def scan(x, _):
    return in_a_loop(x, lambda y: cute.block_scan(y))


def broadcast(x, _):
    return in_a_loop(x, lambda y: cute.block_broadcast(y, 5))


def groups(x, _):
    barrier = cute.arch.warp_idx() // 2 + 1
    return in_a_loop(x, lambda y: cute.block_allreduce(y, threads=64, barrier_id=barrier))


def once(x, _):
    first = cute.block_reduce(x, "max")
    return cute.block_allreduce(x) + cutlass.select_(cute.arch.thread_idx()[0] == 0, first, 0)


def push(x, _):
    return cute.cluster_allreduce(x)


def push_in_a_loop(x, _):
    return in_a_loop(x, lambda y: cute.cluster_allreduce(y))


def pull(x, _):
    return in_a_loop(x, lambda y: cute.cluster_allreduce(y, mode="pull"))


def cluster_scan(x, _):
    return cute.cluster_scan(x)


def cluster_broadcast(x, _):
    return cute.cluster_broadcast(x, 1)


def grid(x, work):
    return in_a_loop(x, lambda y: cute.grid_allreduce(y, "add", work))


def grid_broadcast(x, work):
    return in_a_loop(x, lambda y: cute.grid_broadcast(y, work, 1))


PROGRAMS = {  # body: grid, block, cluster, cooperative
    block: (1, (128, 1, 1), None, False),
    many_warps: (1, (290, 1, 1), None, False),
    wide: (1, (320, 1, 1), None, False),
    memory: (1, (300, 1, 1), None, False),
    scan: (1, (160, 1, 1), None, False),
    broadcast: (1, (64, 1, 1), None, False),
    groups: (1, (128, 1, 1), None, False),
    once: (1, (64, 1, 1), None, False),
    push: (4, (64, 1, 1), (4, 1, 1), False),
    push_in_a_loop: (2, (64, 1, 1), (2, 1, 1), False),
    pull: (2, (64, 1, 1), (2, 1, 1), False),
    cluster_scan: (2, (64, 1, 1), (2, 1, 1), False),
    cluster_broadcast: (2, (64, 1, 1), (2, 1, 1), False),
    grid: (3, (64, 1, 1), None, True),
    grid_broadcast: (3, (64, 1, 1), None, True),
}


class Program:
    """A compiled program as PTX that takes three pointers."""

    def __init__(self, body):
        blocks, self.block, self.cluster, cooperative = PROGRAMS[body]
        self.grid = (blocks, 1, 1)
        count = blocks * cases.threads_of(self.block)
        self.x = np.random.default_rng(1).integers(-40, 40, count).astype(np.int32)
        arrays = [from_dlpack(array) for array in self.arrays()]
        self.compiled = cute.compile(
            cases.launch_rows,
            *arrays,
            lambda x, work: [body(x, work)],
            self.grid,
            self.block,
            self.cluster,
            cooperative,
        )
        self.ptx = self.compiled.stages["ptx"]
        self.kernel = next(iter(self.compiled.kernels))
        self.right = self.run(self.ptx, 0)

    def arrays(self):
        return self.x.copy(), np.zeros((1, len(self.x)), np.int32), np.zeros(cute.grid_workspace(3), np.int64)

    def run(self, ptx, seed):
        x, out, work = self.arrays()
        run_ptx(ptx, self.kernel, self.grid, self.block, [x, out, work], cluster=self.cluster or (1, 1, 1),
                smem=self.compiled.smem_bytes(self.kernel), seed=seed, limit=20000)  # fmt: skip
        return out

    def is_right(self, ptx):
        """True where no schedule shows a fault or another number."""
        for seed in SEEDS:
            try:
                if not np.array_equal(self.run(ptx, seed), self.right):
                    return False
            except EmulationError:
                return False
        return True


def mutants(ptx):
    """(what was changed, text): each synchronising instruction left out, each order weakened."""
    lines = ptx.splitlines()
    for number, line in enumerate(lines):
        if REMOVED.match(line):
            yield line.strip(), "\n".join([*lines[:number], *lines[number + 1 :]])
        elif WEAKENED.search(line) and not line.strip().startswith("//"):
            weaker = WEAKENED.sub(".relaxed.", line)
            yield line.strip(), "\n".join([*lines[:number], weaker, *lines[number + 1 :]])


@pytest.mark.parametrize("body", PROGRAMS, ids=lambda body: body.__name__)
def test_every_mutant_is_reported(body):
    program = Program(body)
    assert program.is_right(program.ptx)
    changed = list(mutants(program.ptx))
    assert changed
    survivors = [what for what, text in changed if program.is_right(text)]
    assert not survivors
