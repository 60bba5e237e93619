"""A batch of blocks for checkers that are fed by hand."""

import numpy as np

from tilewright.targets.emu.checks import Access, Batch
from tilewright.targets.emu.checks.events import compose
from tilewright.targets.emu.lanes import Lanes, Shape
from tilewright.targets.emu.memory import Buffer, GlobalMemory, LocalMemory, SharedMemory
from tilewright.targets.emu.ptx import parse

U4 = np.dtype("u4")
DATA = np.zeros(256, np.uint32)
BASE = int(DATA.ctypes.data)


def instructions(text):
    """Instructions, parsed; `;` ends each."""
    registers = ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>;"
    head = ".version 8.6 .target sm_90a .address_size 64"
    return parse(f"{head} .visible .entry k() {{ {registers} {text} ret; }}").functions["k"].body


class Fed:
    """A batch with one kind of checker; `findings` are its faults, in order."""

    def __init__(self, kinds, text, blocks=1, threads=64, shared=512, cluster=1, **options):
        self.findings = []
        shape = Shape((blocks, 1, 1), (threads, 1, 1), (cluster, 1, 1))
        self.batch = Batch(
            shape, np.arange(blocks), self.findings.append, instructions(text), instructions(text),
            SharedMemory(blocks, shared, True), LocalMemory(blocks * shape.stride, 64, True),
            GlobalMemory([Buffer(BASE, DATA.nbytes)]), **options,
        )  # fmt: skip
        self.shape = shape
        self.on = compose(self.batch, kinds)

    def lanes(self, ids=None):
        """Lanes of the batch, all without numbers."""
        ids = np.flatnonzero(self.batch.alive) if ids is None else np.asarray(ids)
        return Lanes(self.shape, ids, self.batch.blocks)

    def shared(self, site, words, writes, ids=None, value=None):
        """Lanes load or store a word of shared memory each, given by its number in the block."""
        L = self.lanes(ids)
        address = np.broadcast_to(np.asarray(words), (L.n,)).astype(np.uint64) * np.uint64(4)
        index = self.batch.shared.index(site, L, address, 2)
        return self.on.shared_access(Access("shared", site, L, address, index, 2, writes, value, U4))

    def everywhere(self, site, words, writes, ids=None, value=None):
        """The same of global memory."""
        L = self.lanes(ids)
        address = np.broadcast_to(np.asarray(words), (L.n,)).astype(np.uint64) * np.uint64(4) + np.uint64(BASE)
        self.on.global_access(Access("global", site, L, address, None, 2, writes, value, U4))
