"""Memory of the interpreter: bytes, which of them were written, and who touched them since the last barrier."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

NUMPY = {
    "i1": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


class Fault(Exception):
    """An access that the emulator must find too."""


class Undefined(Exception):
    """What the program does here has no meaning."""


NOBODY, MANY = -1, -2


class _Unwritten:
    """What registers hold that nobody wrote to, as a value."""

    def __repr__(self):
        return "unwritten"


UNWRITTEN = _Unwritten()


@dataclass
class Region:
    """An allocation or a buffer. Shared regions note accesses, to find races; `lenient` ones read 0 outside."""

    data: np.ndarray
    space: str
    lenient: bool = False
    written: np.ndarray = field(init=False)
    pending: np.ndarray = field(init=False)
    marks: dict = field(default_factory=dict)

    def __post_init__(self):
        shape = self.data.shape
        self.written = np.full(shape, self.space == "gmem")
        self.pending = np.zeros(shape, bool)
        # writer and reader since the block's last barrier, and the blocks that wrote and read
        self.marks = {
            name: np.full(shape, NOBODY) for name in ("writer", "reader", "wblock", "rblock", "atomic", "kind")
        }

    def forget(self, block: int) -> None:
        """A barrier orders what the threads of a block did."""
        self.marks["writer"][self.marks["wblock"] == block] = NOBODY
        self.marks["reader"][self.marks["rblock"] == block] = NOBODY
        self.marks["reader"][self.marks["rblock"] == MANY] = NOBODY

    def _span(self, start: int, size: int) -> slice:
        if start < 0 or start + size > len(self.data):
            if self.space == "rmem":
                raise Undefined("outside an allocation")
            raise Fault("bounds")
        if start % size:
            raise Undefined("misaligned")
        return slice(start, start + size)

    def read(self, start: int, element: str, who: tuple[int, int]):
        dtype = np.dtype(NUMPY[element])
        if self.lenient and (start < 0 or start + dtype.itemsize > len(self.data)):
            return 0 if element.startswith("i") else dtype.type(0)
        span = self._span(start, dtype.itemsize)
        if not self.written[span].all():
            raise Undefined("uninitialised")
        if self.pending[span].any():
            raise Undefined("asynchronous copy not waited for")
        if self.space != "rmem":
            self._note_read(span, who)
        value = self.data[span].view(dtype)[0]
        if element == "i1":
            return int(value != 0)
        return int(value) if element.startswith("i") else value

    def write(self, start: int, element: str, value, who: tuple[int, int], atomic: str = "") -> None:
        dtype = np.dtype(NUMPY[element])
        span = self._span(start, dtype.itemsize)
        if self.space != "rmem" and atomic:
            self._note_atomic(span, who, atomic)
        elif self.space != "rmem":
            self._note_write(span, who)
        if value is UNWRITTEN:
            if self.space != "rmem":
                raise Undefined("uninitialised")
            self.written[span] = False
            return
        self.data[span] = np.array([value]).astype(dtype).view(np.uint8)
        self.written[span] = True

    def _note_read(self, span: slice, who: tuple[int, int]) -> None:
        self._check_atomic(span, who)
        block, thread = who
        writer, wblock = self.marks["writer"][span], self.marks["wblock"][span]
        if ((writer != NOBODY) & (writer != thread) & (wblock == block)).any():
            raise Undefined("race")
        if ((wblock != NOBODY) & (wblock != block)).any():
            raise Undefined("race")
        for name, me in (("reader", thread), ("rblock", block)):
            held = self.marks[name][span]
            self.marks[name][span] = np.where((held == NOBODY) | (held == me), me, MANY)

    def _note_write(self, span: slice, who: tuple[int, int]) -> None:
        self._check_readers(span, who)
        self._check_atomic(span, who)
        block, thread = who
        writer, wblock = self.marks["writer"][span], self.marks["wblock"][span]
        same = (wblock == block) & ((writer == NOBODY) | (writer == thread))
        if not ((wblock == NOBODY) | same).all():
            raise Undefined("race")
        self.marks["writer"][span], self.marks["wblock"][span] = thread, block

    def _note_atomic(self, span: slice, who: tuple[int, int], kind: str) -> None:
        """Atomic operations race with other accesses, and with those of another kind, whose order matters."""
        number = sum(kind.encode())
        if ((self.marks["kind"][span] != NOBODY) & (self.marks["kind"][span] != number)).any():
            raise Undefined("race")
        self.marks["kind"][span] = number
        self._check_readers(span, who)
        writer = self.marks["writer"][span]
        if ((writer != NOBODY) & (writer != who[1])).any():
            raise Undefined("race")
        held = self.marks["atomic"][span]
        self.marks["atomic"][span] = np.where((held == NOBODY) | (held == who[1]), who[1], MANY)

    def _check_atomic(self, span: slice, who: tuple[int, int]) -> None:
        held = self.marks["atomic"][span]
        if ((held != NOBODY) & (held != who[1])).any():
            raise Undefined("race")

    def _check_readers(self, span: slice, who: tuple[int, int]) -> None:
        block, thread = who
        reader, rblock = self.marks["reader"][span], self.marks["rblock"][span]
        others = (reader != NOBODY) & (reader != thread)
        foreign = (rblock != NOBODY) & (rblock != block)
        if (others | foreign).any():
            raise Undefined("race")


@dataclass(frozen=True)
class Pointer:
    """A byte of a region."""

    region: Region
    offset: int

    def moved(self, step: int) -> Pointer:
        return Pointer(self.region, self.offset + step)


@dataclass(frozen=True)
class Tensor:
    """An address with a layout of plain numbers."""

    pointer: Pointer
    layout: object
    element: str
    space: str

    def place(self, coord) -> int:
        """The byte of the region at which the element at `coord` begins."""
        return self.pointer.offset + int(self.layout(coord)) * np.dtype(NUMPY[self.element]).itemsize

    def read(self, coord, who):
        return self.pointer.region.read(self.place(coord), self.element, who)

    def write(self, coord, value, who) -> None:
        self.pointer.region.write(self.place(coord), self.element, value, who)
