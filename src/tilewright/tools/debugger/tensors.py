"""Tensors of a thread: their elements, read through their layout from global, shared or local memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tilewright.base.errors import ArgumentError, LayoutError
from tilewright.layout import size
from tilewright.layout.parsing import parse
from tilewright.targets.emu.lanes import Array
from tilewright.targets.emu.machine import Machine
from tilewright.targets.emu.memory import CLUSTER_SHIFT, LOCAL_WINDOW, SHARED_WINDOW
from tilewright.tools.debugger.numbers import DTYPES, decoded, shown

MOST_ROWS, MOST_COLUMNS, MOST_LISTED = 32, 16, 256
"""What is drawn or listed of a large tensor."""
_INDEX = re.compile(r"[\d,\s()]+")


@dataclass(frozen=True)
class Tensor:
    """Elements of type `dtype` at `address` of a memory space, arranged by `layout`."""

    dtype: str
    space: str
    layout: Any
    address: int

    @classmethod
    def parsed(cls, text: str, words: Sequence[int]) -> Tensor:
        """From the text of a pin, `tensor f16 smem (8,?):(?,1)`, and its words: the address, then each `?`."""
        _, dtype, space, layout = text.split(" ", 3)
        address, *leaves = words
        values = iter(leaves)
        numbers = re.sub(r"\?", lambda _: str(_signed(next(values))), layout)
        return cls(dtype, space, parse(numbers), int(address))

    @property
    def title(self) -> str:
        """What the tensor is, in a line."""
        return f"{self.dtype} {self.space} {self.layout} at {self.place[1]:#x}"

    @property
    def place(self) -> tuple[Literal["global", "shared", "local"], int]:
        """The memory and the address in it."""
        if self.space == "rmem" or LOCAL_WINDOW <= self.address < LOCAL_WINDOW + (1 << 32):
            return "local", self.address - LOCAL_WINDOW if self.address >= LOCAL_WINDOW else self.address
        if self.space in ("smem", "dsmem") or SHARED_WINDOW <= self.address < LOCAL_WINDOW:
            return "shared", self.address - SHARED_WINDOW if self.address >= SHARED_WINDOW else self.address
        return "global", self.address

    @property
    def extents(self) -> tuple[int, int]:
        """Rows (the first mode) and columns (the others) when it is drawn; a tensor of one mode is a row."""
        shape = self.layout.shape
        if not isinstance(shape, tuple) or len(shape) < 2:
            return 1, int(size(self.layout))
        rows = int(size(self.layout, [0]))
        return rows, int(size(self.layout)) // rows

    @property
    def _bytes(self) -> int:
        dtype = DTYPES.get(self.dtype)
        if dtype is None:
            raise ArgumentError(f"elements of type {self.dtype} cannot be shown", hint=f"types: {', '.join(DTYPES)}")
        return dtype.itemsize

    def offset(self, coord: Any) -> int:
        """Where an element lies, in elements from the address.

        Raises:
            ArgumentError: the tensor has no such element.
        """
        try:
            return int(self.layout(coord))
        except (LayoutError, TypeError, IndexError) as error:
            message = getattr(error, "message", error)
            raise ArgumentError(f"{coord} is no element: {message}", values={"layout": self.layout}) from error

    def read(self, machine: Machine, lane: int, offset: int) -> Any:
        """The element at an offset, None where there is no memory."""
        nbytes = self._bytes
        space, start = self.place
        first = start + offset * nbytes
        raw = memory(machine, lane, space, first, nbytes)
        if raw is None:
            return None
        word = np.frombuffer(raw.tobytes().ljust(8, b"\0"), np.uint64)
        value = decoded(self.dtype, word)
        assert value is not None
        return value[0]

    def element(self, machine: Machine, lane: int, coord: Any) -> str:
        """One element as text."""
        value = self.read(machine, lane, self.offset(coord))
        if value is None:
            raise ArgumentError(f"element {coord} lies outside of memory", values={"tensor": self.title})
        return shown(value)

    def bytes_at(
        self, machine: Machine, lane: int, coord: Any = None
    ) -> tuple[Literal["global", "shared"], tuple[tuple[int, int], ...]]:
        """The memory and the (first byte, bytes) of one element, or of all.

        Raises:
            ArgumentError: it is a tensor of registers.
        """
        space, start = self.place
        if space == "local":
            raise ArgumentError("a tensor of registers has no memory to watch", hint="step, and print it")
        nbytes = self._bytes
        if coord is not None:
            offsets = np.array([self.offset(coord)])
        else:
            offsets = np.unique([self.offset(n) for n in range(int(size(self.layout)))])
        breaks = np.flatnonzero(np.diff(offsets) != 1) + 1
        runs = np.split(offsets, breaks)
        return space, tuple((start + int(run[0]) * nbytes, len(run) * nbytes) for run in runs)

    # Drawing.

    def drawn(self, machine: Machine, lane: int) -> str:
        """The elements as a table: rows are the first mode."""
        return self.title + "\n" + self._table(lambda offset: _cell(self.read(machine, lane, offset)))

    def offsets_drawn(self) -> str:
        """The offsets of the elements, as the same table."""
        return self.title + "\n" + self._table(str)

    def _table(self, cell: Any) -> str:
        rows, columns = self.extents
        shown_rows, shown_columns = min(rows, MOST_ROWS), min(columns, MOST_COLUMNS)
        texts = [
            [cell(self.offset(row + column * rows)) for column in range(shown_columns)] for row in range(shown_rows)
        ]
        width = max(len(text) for line in texts for text in line)
        lines = [f"{row:>4}  " + " ".join(f"{text:>{width}}" for text in line) for row, line in enumerate(texts)]
        head = "      " + " ".join(f"{column:>{width}}" for column in range(shown_columns))
        left = [f"{rows - shown_rows} more rows"] if rows > shown_rows else []
        left += [f"{columns - shown_columns} more columns"] if columns > shown_columns else []
        return "\n".join([head, *lines, *(["      " + ", ".join(left)] if left else [])])

    def listed(
        self, machine: Machine, lane: int, start: int = 0, count: int = MOST_LISTED
    ) -> Iterator[tuple[str, str]]:  # fmt: skip
        """(index, element) one by one: `count` elements from the one numbered `start`."""
        rows, columns = self.extents
        for n in range(max(start, 0), min(rows * columns, start + count)):
            index = f"[{n % rows}, {n // rows}]" if rows > 1 else f"[{n}]"
            yield index, _cell(self.read(machine, lane, self.offset(n)))


def memory(machine: Machine, lane: int, space: str, first: int, nbytes: int) -> Array | None:
    """Bytes of memory as one lane sees it, None where they are not all there."""
    if space == "global":
        return machine.g.at(first, nbytes)
    if space == "shared":
        slot, first = shared_place(machine, lane, first)
        start = slot * machine.sh.stride
        inside = 0 <= first <= machine.sh.size - nbytes
        return machine.sh.bytes[start + first : start + first + nbytes] if inside else None
    if not 0 <= first <= machine.lo.size - nbytes:
        return None
    start = lane * machine.lo.size + first
    return machine.lo.bytes[start : start + nbytes]


def shared_place(machine: Machine, lane: int, address: int) -> tuple[int, int]:
    """The slot of the block that a shared address of a lane leads to, and the address in that block's memory."""
    slot, rank = lane // machine.shape.stride, (address >> CLUSTER_SHIFT) - 1
    if rank < 0:
        return slot, address
    size = machine.shape.cluster_blocks
    return slot // size * size + min(rank, size - 1), address & ((1 << CLUSTER_SHIFT) - 1)


def coordinate(text: str) -> Any:
    """`3`, `1, 2` or `(1, 2), 3` as a coordinate.

    Raises:
        ArgumentError: it is none.
    """
    if not _INDEX.fullmatch(text):
        raise ArgumentError(f"[{text}] is no index", hint="numbers: tile[3, 5]")
    try:
        return parse(f"({text})") if "," in text else int(text)
    except (LayoutError, ValueError) as error:
        raise ArgumentError(f"[{text}] is no index", hint="numbers: tile[3, 5]") from error


def number_text(kind: str, words: Sequence[int]) -> str:
    """A number, a vector of numbers or a pointer as text."""
    head, _, rest = kind.partition(" ")
    if head == "pointer":
        return f"{int(words[0]):#x}"
    dtype = rest.split(" ")[0] if head == "vector" else head
    count = len(words) if head == "vector" else 1
    values = decoded(dtype, np.array([w & (1 << 64) - 1 for w in words[:count]], np.uint64))
    if values is None:
        return " ".join(f"{word:#x}" for word in words)
    texts = [shown(value) for value in values]
    return texts[0] if head != "vector" else f"[{', '.join(texts)}]"


def _cell(value: Any) -> str:
    if value is None:
        return "--"
    if isinstance(value, np.bool_):
        return "1" if value else "0"
    return str(int(value)) if np.asarray(value).dtype.kind in "iu" else f"{float(value):.4g}"


def _signed(word: int) -> int:
    """A 64-bit word as a signed number; leaves are zero-extended 32-bit numbers that are seldom negative."""
    return word - (1 << 64) if word >= 1 << 63 else word - (1 << 32) if 1 << 31 <= word < 1 << 32 else word
