"""A core as the protocol sees it: who has reserved, pushed, waited for and popped what; DST; configurations.

Every rule that a kernel breaks is a `Fault`. No data is moved here; `data.DataCore` does that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.targets.tenstorrent.simulator.faults import Fault

BASE = 1 << 16
"""Where the circular buffers of a core begin."""


class CircularBuffer:
    """Pages that one role fills and another empties, in order."""

    def __init__(self, entry: Mapping[str, Any], base: int) -> None:
        self.id, self.name = int(entry["id"]), str(entry["variable"])
        self.pages, self.page_size, self.format = int(entry["pages"]), int(entry["page_size"]), str(entry["format"])
        self.base = base
        self.pushed = self.popped = self.reserved = self.waited = 0
        self.written: set[int] = set()  # of the pages reserved, those with data, or with data on their way
        self.taken: set[int] = set()  # of the pages waited for, those that were written to memory

    def has_room(self, count: int) -> bool:
        return self.pages - (self.pushed - self.popped) >= count

    def has_tiles(self, count: int) -> bool:
        return self.pushed - self.popped >= count

    def address(self, page: int) -> int:
        """Where a page is, counted from the first ever pushed."""
        return self.base + page % self.pages * self.page_size

    def page_at(self, address: int, first: int, count: int, what: str) -> int:
        """The page at an address, counted from `first`.

        Raises:
            Fault: it is none of `count`.
        """
        for page in range(count):
            if self.address(first + page) == address:
                return page
        raise Fault(f"{what} address {address - self.base} of {self.name}, where it has no page of its own now")


class Core:
    """The state of one core.

    Args:
        entries: its circular buffers, as the pass tile-dfg lists them.
        pages: how many tiles each tensor has in memory.
        capacity: the tiles of DST.
        checked: whether a transfer that a kernel does not wait for is a fault. On the machine it is none: the data is
            wrong, which is what happens here too without the check.
    """

    def __init__(
        self, entries: Sequence[Mapping[str, Any]], pages: Mapping[str, int], capacity: int, checked: bool = True
    ) -> None:
        self.pages, self.capacity, self.checked = pages, capacity, checked
        self.buffers: dict[int, CircularBuffer] = {}
        base = BASE
        for entry in entries:
            made = self.buffers[int(entry["id"])] = self.make_buffer(entry, base)
            base += made.pages * made.page_size
        self.calls: Any = None  # the program whose operation runs now
        self.reads: list[tuple[str, int, CircularBuffer, int]] = []
        self.writes: list[tuple[str, int, CircularBuffer, int]] = []
        self.dst = "free"
        self.dst_written: set[int] = set()
        self.dst_reduced: set[int] = set()
        self.started = False
        self.config: tuple[Any, ...] = ()
        self.vector = ""
        self.mask = self.relu = False
        self.source_formats: tuple[str, str] = ("", "")
        self.pack_format = ""

    def make_buffer(self, entry: Mapping[str, Any], base: int) -> CircularBuffer:
        return CircularBuffer(entry, base)

    def attrs(self, at: int) -> Mapping[str, Any]:
        """The attributes of the operation that runs."""
        found: Mapping[str, Any] = self.calls.calls[at].attrs
        return found

    def extern(self, at: int) -> None:
        """A function of C++, of which nothing is known: the rules leave it out."""

    # Circular buffers.

    def alloc_cb(self, at: int) -> CircularBuffer:
        return self.buffers[int(self.attrs(at)["id"])]

    def make_accessor(self, at: int, tensor: str, address: int) -> str:
        return tensor

    def cb_reserve_back_asked(self, at: int, buffer: CircularBuffer, count: int) -> None:
        if buffer.reserved:
            raise Fault(f"reserves pages of {buffer.name} again, without pushing those reserved before")
        if not 0 < count <= buffer.pages:
            raise Fault(f"reserves {count} pages of {buffer.name}, which has {buffer.pages}")

    def cb_reserve_back(self, at: int, buffer: CircularBuffer, count: int) -> None:
        buffer.reserved, buffer.written = count, set()

    def cb_push_back(self, at: int, buffer: CircularBuffer, count: int) -> None:
        if count > buffer.reserved:
            raise Fault(f"pushes {count} pages of {buffer.name}, of which {buffer.reserved} are reserved")
        if self.checked and any(target is buffer for _, _, target, _ in self.reads):
            raise Fault(
                f"pushes pages of {buffer.name} before the data has arrived", "put tt.noc.read_barrier before the push"
            )
        missing = [page for page in range(count) if page not in buffer.written]
        if missing:
            raise Fault(f"pushes page {missing[0]} of {buffer.name}, which nothing wrote")
        buffer.pushed += count
        buffer.reserved -= count
        buffer.written = {page - count for page in buffer.written if page >= count}

    def cb_wait_front_asked(self, at: int, buffer: CircularBuffer, count: int) -> None:
        if buffer.waited:
            raise Fault(f"waits for pages of {buffer.name} again, without popping those waited for before")
        if not 0 < count <= buffer.pages:
            raise Fault(f"waits for {count} pages of {buffer.name}, which has {buffer.pages}")

    def cb_wait_front(self, at: int, buffer: CircularBuffer, count: int) -> None:
        buffer.waited, buffer.taken = count, set()

    def cb_pop_front(self, at: int, buffer: CircularBuffer, count: int) -> None:
        if count > buffer.waited:
            raise Fault(f"pops {count} pages of {buffer.name}, of which {buffer.waited} are waited for")
        if self.checked and any(source is buffer for _, _, source, _ in self.writes):
            raise Fault(
                f"pops pages of {buffer.name} before they are written to memory",
                "put tt.noc.write_barrier before the pop",
            )
        of_writer = self.calls.role == "writer"
        missing = [page for page in range(count) if of_writer and page not in buffer.taken]
        if missing:
            raise Fault(f"pops page {missing[0]} of {buffer.name}, which nothing used")
        buffer.popped += count
        buffer.waited -= count

    def cb_write_ptr(self, at: int, buffer: CircularBuffer) -> int:
        if not buffer.reserved:
            raise Fault(f"takes the write pointer of {buffer.name}, of which nothing is reserved")
        return buffer.address(buffer.pushed)

    def cb_read_ptr(self, at: int, buffer: CircularBuffer) -> int:
        if not buffer.waited:
            raise Fault(f"takes the read pointer of {buffer.name}, of which nothing is waited for")
        return buffer.address(buffer.popped)

    def _write_page(self, buffer: CircularBuffer, address: int) -> int:
        page = buffer.page_at(address, buffer.pushed, buffer.reserved, "writes to")
        if page in buffer.written:
            raise Fault(f"writes page {page} of {buffer.name} twice")
        buffer.written.add(page)
        return page

    def at_address(self, address: int) -> CircularBuffer:
        """The circular buffer that an address of L1 is in."""
        for buffer in self.buffers.values():
            if buffer.base <= address < buffer.base + buffer.pages * buffer.page_size:
                return buffer
        raise Fault(f"address {address} of L1 is in no circular buffer")

    # The network on chip.

    def noc_read_tile(self, at: int, tensor: str, tile: int, address: int) -> None:
        buffer = self.at_address(address)
        self._in_tensor(tensor, tile)
        page = self._write_page(buffer, address)
        self.reads.append((tensor, tile, buffer, buffer.pushed + page))

    def noc_write_tile(self, at: int, tensor: str, tile: int, address: int) -> None:
        buffer = self.at_address(address)
        self._in_tensor(tensor, tile)
        page = buffer.page_at(address, buffer.popped, buffer.waited, "writes to memory from")
        if page in buffer.taken:
            raise Fault(f"writes page {page} of {buffer.name} to memory twice")
        buffer.taken.add(page)
        self.writes.append((tensor, tile, buffer, buffer.popped + page))

    def _in_tensor(self, tensor: str, tile: int) -> None:
        if not 0 <= tile < self.pages[tensor]:
            raise Fault(
                f"touches tile {tile} of {tensor}, which has {self.pages[tensor]}",
                "the coordinate of a load or store is outside the tensor",
            )

    def noc_read_barrier(self, at: int) -> None:
        if not self.reads:
            raise Fault("waits for reads, and none is under way")
        self.land_reads()

    def noc_write_barrier(self, at: int) -> None:
        if not self.writes:
            raise Fault("waits for writes, and none is under way")
        self.land_writes()

    def land_reads(self) -> None:
        """The data of all reads arrives."""
        self.reads.clear()

    def land_writes(self) -> None:
        """The data of all writes leaves."""
        self.writes.clear()

    def l1_fill(self, at: int, address: int, *number: Any) -> None:
        self._write_page(self.at_address(address), address)

    def l1_fill_scaler(self, at: int, address: int) -> None:
        self._write_page(self.at_address(address), address)

    # The engines.

    def engine_startup(self, at: int, left: CircularBuffer, right: CircularBuffer, out: CircularBuffer) -> None:
        if self.started:
            raise Fault("starts the engines twice")
        self.started = True
        swapped = self.attrs(at)["order"] == "reverse"
        self.source_formats = (right.format, left.format) if swapped else (left.format, right.format)
        self.pack_format = out.format

    def reconfig(self, at: int, left: CircularBuffer, right: CircularBuffer) -> None:
        self.source_formats = (left.format, right.format)

    def pack_reconfig(self, at: int, buffer: CircularBuffer) -> None:
        self.pack_format = buffer.format

    def pack_relu(self, at: int) -> None:
        on = bool(self.attrs(at)["on"])
        if on == self.relu:
            raise Fault(f"turns the packer's relu {'on' if on else 'off'} twice")
        self.relu = on

    def _configure(self, config: tuple[Any, ...]) -> None:
        if not self.started:
            raise Fault("configures the engines before tt.engine.startup")
        if self.mask:
            raise Fault(
                "configures the engines while the packer is masked for a reduction", "put tt.reduce.uninit before"
            )
        self.config = config

    def mm_init(self, at: int, left: CircularBuffer, right: CircularBuffer) -> None:
        self._configure(("mm", left.id, right.id))

    def fpu_init(self, at: int, left: CircularBuffer, right: CircularBuffer) -> None:
        attrs = self.attrs(at)
        self._configure((attrs["kind"], attrs["bcast"], left.id, right.id))

    def copy_init(self, at: int, buffer: CircularBuffer) -> None:
        self._configure(("copy", buffer.id))

    def bcast_init(self, at: int, buffer: CircularBuffer) -> None:
        self._configure(("bcast", self.attrs(at)["dim"], buffer.id))

    def reduce_init(self, at: int, source: CircularBuffer, scaler: CircularBuffer, out: CircularBuffer) -> None:
        attrs = self.attrs(at)
        config = ("reduce", attrs["kind"], attrs["dim"], source.id, scaler.id)
        if self.config != config:
            self._configure(config)
        self.mask = True

    def reduce_uninit(self, at: int, source: CircularBuffer) -> None:
        if not self.mask:
            raise Fault("unmasks the packer, which is not masked")
        self.mask, self.config = False, ()

    def sfpu_init(self, at: int) -> None:
        if not self.started:
            raise Fault("configures the engines before tt.engine.startup")
        self.vector = self.attrs(at)["kind"]

    def _engine(self, config: tuple[Any, ...], operands: Sequence[tuple[CircularBuffer, int]], dst: int) -> None:
        """What all operations of the matrix engine need."""
        if self.config != config:
            raise Fault(f"computes {config[0]} while the engine is configured for {(self.config or ('nothing',))[0]}")
        for buffer, index in operands:
            if not 0 <= index < buffer.waited:
                raise Fault(f"uses page {index} of {buffer.name}, of which {buffer.waited} are waited for")
            buffer.taken.add(index)
        formats = tuple(buffer.format for buffer, _ in operands)
        formats = formats if len(formats) == 2 else (formats[0], formats[0])
        swapped = config[0] == "mm" or config[:3] == ("reduce", "add", "row")
        wanted = (formats[1], formats[0]) if swapped else formats
        if wanted != self.source_formats:
            raise Fault(
                f"takes operands of {' and '.join(formats)} while the unpacker is configured for others",
                "put tt.reconfig before",
            )
        self._into_dst(dst)

    def _into_dst(self, dst: int) -> None:
        if self.dst != "acquired":
            raise Fault(f"computes into DST, which is {self.dst}", "put tt.dst.acquire before")
        if not 0 <= dst < self.capacity:
            raise Fault(f"computes into tile {dst} of DST, which holds {self.capacity}")
        self.dst_written.add(dst)

    def mm_mma(self, at: int, a: CircularBuffer, b: CircularBuffer, ia: int, ib: int, dst: int) -> None:
        self._engine(("mm", a.id, b.id), ((a, ia), (b, ib)), dst)

    def _fpu(self, kind: str, at: int, a: CircularBuffer, b: CircularBuffer, ia: int, ib: int, dst: int) -> None:
        self._engine((kind, self.attrs(at)["bcast"], a.id, b.id), ((a, ia), (b, ib)), dst)

    def fpu_add(self, at: int, a: CircularBuffer, b: CircularBuffer, ia: int, ib: int, dst: int) -> None:
        self._fpu("add", at, a, b, ia, ib, dst)

    def fpu_sub(self, at: int, a: CircularBuffer, b: CircularBuffer, ia: int, ib: int, dst: int) -> None:
        self._fpu("sub", at, a, b, ia, ib, dst)

    def fpu_mul(self, at: int, a: CircularBuffer, b: CircularBuffer, ia: int, ib: int, dst: int) -> None:
        self._fpu("mul", at, a, b, ia, ib, dst)

    def reduce(self, at: int, source: CircularBuffer, scaler: CircularBuffer, index: int, one: int, dst: int) -> None:
        attrs = self.attrs(at)
        config = ("reduce", attrs["kind"], attrs["dim"], source.id, scaler.id)
        self._engine(config, ((source, index), (scaler, one)), dst)
        self.dst_reduced.add(dst)

    def copy(self, at: int, source: CircularBuffer, index: int, dst: int) -> None:
        self._engine(("copy", source.id), ((source, index),), dst)

    def bcast(self, at: int, source: CircularBuffer, index: int, dst: int) -> None:
        self._engine(("bcast", self.attrs(at)["dim"], source.id), ((source, index),), dst)

    def sfpu_unary(self, at: int, dst: int) -> None:
        attrs = self.attrs(at)
        self._vector(attrs["kind"] + ("_number" if "parameter" in attrs else ""), (dst,))

    def sfpu_binary(self, at: int, left: int, right: int, dst: int) -> None:
        self._vector(self.attrs(at)["kind"] + "_binary", (left, right))
        self._into_dst(dst)

    def _vector(self, kind: str, tiles: Sequence[int]) -> None:
        if self.vector != kind:
            raise Fault(f"computes {kind} while the vector engine is configured for {self.vector or 'nothing'}")
        for tile in tiles:
            if tile not in self.dst_written:
                raise Fault(f"computes with tile {tile} of DST, which nothing wrote")
            self._into_dst(tile)

    # DST.

    def _step(self, name: str, before: str, after: str) -> None:
        if self.dst != before:
            raise Fault(f"tt.dst.{name} while DST is {self.dst}; it must be {before}")
        self.dst = after

    def dst_acquire(self, at: int) -> None:
        self._step("acquire", "free", "acquired")
        self.dst_written, self.dst_reduced = set(), set()

    def dst_commit(self, at: int) -> None:
        self._step("commit", "acquired", "committed")

    def dst_wait(self, at: int) -> None:
        self._step("wait", "committed", "with the packer")

    def dst_release(self, at: int) -> None:
        self._step("release", "with the packer", "free")

    def pack(self, at: int, dst: int, buffer: CircularBuffer) -> None:
        if self.dst != "with the packer":
            raise Fault(f"packs while DST is {self.dst}", "put tt.dst.commit and tt.dst.wait before")
        if dst not in self.dst_written:
            raise Fault(f"packs tile {dst} of DST, which nothing wrote")
        if self.mask != (dst in self.dst_reduced):
            raise Fault("packs a tile while the packer is configured for another kind", "put tt.reduce.uninit before")
        if self.relu != bool(self.attrs(at).get("relu")):
            raise Fault("packs a tile while the packer's relu is in the other state")
        if buffer.format != self.pack_format:
            raise Fault(
                f"packs into {buffer.name} of {buffer.format}, and the packer is configured for {self.pack_format}",
                "put tt.pack.reconfig before",
            )
        page = len(buffer.written)
        if page >= buffer.reserved:
            raise Fault(f"packs page {page} of {buffer.name}, of which {buffer.reserved} are reserved")
        buffer.written.add(page)

    def finish(self) -> None:
        """The rules for a core at the end."""
        for buffer in self.buffers.values():
            if buffer.pushed != buffer.popped or buffer.reserved or buffer.waited:
                raise Fault(
                    f"leaves {buffer.pushed - buffer.popped} pages in {buffer.name} that nothing takes"
                    if buffer.pushed != buffer.popped
                    else f"leaves pages of {buffer.name} reserved or waited for"
                )
        if self.checked and (self.reads or self.writes):
            raise Fault("ends before its reads and writes have arrived")
        if self.dst != "free":
            raise Fault(f"ends while DST is {self.dst}")
        if self.mask:
            raise Fault("ends while the packer is masked for a reduction", "put tt.reduce.uninit at the end")
