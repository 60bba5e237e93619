"""What a layout costs on the machine: bank conflicts, sectors, vector widths; and what two layouts share.

The model of shared memory is that of the CUDA C++ Programming Guide ("Shared Memory", compute capability 5.x and
later): 32 banks, each a word of 4 bytes wide; an access of 8 bytes a thread goes in two halves of a warp, one of 16
bytes in four quarters; in each such phase a bank serves one word at a time, and threads that want the same word share
it. Global memory is moved in sectors of 32 bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright.base.errors import LayoutError
from tilewright.layout.compose import composition
from tilewright.layout.divide import logical_divide
from tilewright.layout.dynamic import Leaf, floor_div, is_multiple, mul, same
from tilewright.layout.inttuple import flat
from tilewright.layout.inverse import max_common_layout, max_common_vector
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle, is_static, require_plain, trusted
from tilewright.layout.query import rank, size
from tilewright.layout.simplify import coalesced_modes, is_zero, packed
from tilewright.layout.widths import bits_of

WARP = 32
BANKS = 32
BANK_BYTES = 4
SECTOR_BYTES = 32
VECTOR_BYTES = 16
"""The most that one thread moves with one instruction."""


class BankConflicts(NamedTuple):
    """What a warp-wide access of shared memory costs.

    `wavefronts` are the passes that shared memory makes for all accesses, `phases` the fewest it could make;
    `conflicts` is the difference. `degree` is the most words that one bank has to serve in a phase: 1 is free of
    conflicts. `vector` is the number of elements that a thread moves at once.
    """

    wavefronts: int
    phases: int
    degree: int
    vector: int

    @property
    def conflicts(self) -> int:
        """Passes that are there only because words share a bank."""
        return self.wavefronts - self.phases

    def __str__(self) -> str:
        if not self.conflicts:
            return f"no bank conflicts: {self.wavefronts} wavefronts, vectors of {self.vector}"
        return f"{self.degree}-way bank conflicts: {self.wavefronts} wavefronts for {self.phases}"


class Coalescing(NamedTuple):
    """What a warp-wide access of global memory costs: `sectors` of 32 bytes moved, `ideal` the fewest that hold the
    bytes asked for, `requests` warp-wide instructions, `vector` elements a thread moves at once."""

    sectors: int
    ideal: int
    requests: int
    vector: int

    @property
    def efficiency(self) -> float:
        """Ideal over actual sectors: 1.0 is fully coalesced."""
        return self.ideal / self.sectors if self.sectors else 1.0

    def __str__(self) -> str:
        return f"{self.sectors} sectors for {self.ideal} ({self.efficiency:.0%}), vectors of {self.vector}"


def bank_conflicts(tv_layout: Any, dtype: Any, vector: int | None = None) -> BankConflicts:
    """The cost of an access of shared memory where thread t moves elements `tv_layout(t, 0), tv_layout(t, 1), ...`.

    `tv_layout` maps (thread, value) to an offset in elements of `dtype`; a layout of rank 1 is one value a
    thread. Without `vector` the widest vectors are taken that are contiguous and aligned for every thread.

    Raises:
        LayoutError: the layout is not static, or its values are coordinates.
    """
    bits = bits_of(dtype)
    offsets = _offsets(tv_layout)
    width = _vector(offsets, bits, vector)
    lanes = {16: 8, 8: 16}.get(width * bits // 8, WARP)
    wavefronts = phases = degree = 0
    for warp in _groups(offsets, WARP):
        for first in range(0, len(offsets[0]), width):
            for group in _groups(warp, lanes):
                words = {word for thread in group for word in _cells(thread[first], width, bits, BANK_BYTES)}
                load = [0] * BANKS
                for word in words:
                    load[word % BANKS] += 1
                wavefronts += max(load)
                phases += 1
                degree = max(degree, *load)
    return BankConflicts(wavefronts, phases, degree, width)


def coalescing(tv_layout: Any, dtype: Any, vector: int | None = None) -> Coalescing:
    """The cost of an access of global memory where thread t moves elements `tv_layout(t, 0), tv_layout(t, 1), ...`.

    The base address is taken to be aligned to a sector. Arguments and errors as for `bank_conflicts`.
    """
    bits = bits_of(dtype)
    offsets = _offsets(tv_layout)
    width = _vector(offsets, bits, vector)
    sectors = ideal = requests = 0
    for warp in _groups(offsets, WARP):
        for first in range(0, len(offsets[0]), width):
            starts = {thread[first] for thread in warp}
            touched = {cell for start in starts for cell in _cells(start, width, bits, SECTOR_BYTES)}
            wanted = {start + i for start in starts for i in range(width)}
            sectors += len(touched)
            ideal += -(-len(wanted) * bits // (8 * SECTOR_BYTES))
            requests += 1
    return Coalescing(sectors, ideal, requests, width)


_MOST_ELEMENTS = 1 << 20


def _offsets(tv_layout: Any) -> list[list[int]]:
    """The offsets of each thread's values."""
    if not is_static(tv_layout):
        raise LayoutError("only static layouts can be analysed", values={"layout": tv_layout})
    if size(tv_layout) > _MOST_ELEMENTS:
        raise LayoutError(
            f"an access of {size(tv_layout)} elements is too large to count",
            values={"layout": tv_layout, "most": _MOST_ELEMENTS},
            hint="give the layout of one block's threads and their values",
        )
    threads = size(tv_layout, 0) if rank(tv_layout) > 1 else size(tv_layout)
    count = size(tv_layout) // max(threads, 1)
    table = [[tv_layout(t + v * threads) for v in range(count)] for t in range(threads)]
    if not table or not table[0] or not isinstance(table[0][0], int):
        raise LayoutError("the layout must map (thread, value) to offsets", values={"layout": tv_layout})
    return table


def _groups(items: list[Any], count: int) -> list[list[Any]]:
    return [items[first : first + count] for first in range(0, len(items), count)]


def _cells(start: int, count: int, bits: int, cell_bytes: int) -> range:
    """The cells of `cell_bytes` bytes that `count` elements from offset `start` on lie in."""
    return range(start * bits // (8 * cell_bytes), ((start + count) * bits - 1) // (8 * cell_bytes) + 1)


def _vector(offsets: list[list[int]], bits: int, wanted: int | None) -> int:
    """The elements a thread moves at once."""
    count = len(offsets[0])
    if wanted is not None:
        if count % wanted or not _is_vector(offsets, wanted):
            raise LayoutError(f"the values do not come in aligned vectors of {wanted}", values={"values": count})
        return wanted
    width = 1
    while width * 2 * bits <= 8 * VECTOR_BYTES and count % (width * 2) == 0 and _is_vector(offsets, width * 2):
        width *= 2
    return width


def _is_vector(offsets: list[list[int]], width: int) -> bool:
    return all(
        thread[first] % width == 0 and thread[first + i] == thread[first] + i
        for thread in offsets
        for first in range(0, len(thread), width)
        for i in range(width)
    )


def vector_width(src: Any, dst: Any, dtype: Any = None, max_bits: int = 8 * VECTOR_BYTES) -> int:
    """The elements that one instruction can move between two layouts: contiguous in both, aligned at every step.

    With `dtype`, at most `max_bits` bits. Run-time strides count by their divisibility. The base addresses are
    taken to be aligned.
    """
    plain_src, limit_src = _unswizzled(src)
    plain_dst, limit_dst = _unswizzled(dst)
    most = min(max_common_vector(plain_src, plain_dst), limit_src, limit_dst)
    if dtype is not None:
        most = min(most, max(max_bits // bits_of(dtype), 1))
    common = max_common_layout(plain_src, plain_dst)
    width = 1 << (most.bit_length() - 1)
    while width > 1 and not all(_steps_by(layout, common, width) for layout in (plain_src, plain_dst)):
        width //= 2
    return width


def _unswizzled(layout: Any) -> tuple[Layout, int]:
    """The plain layout inside, and the number of elements that the swizzle keeps together."""
    if not isinstance(layout, ComposedLayout):
        return layout, 1 << 30
    if not isinstance(layout.inner, Swizzle) or not isinstance(layout.outer, Layout):
        return trusted(1, 0), 1
    keeps = 1 << layout.inner.base if layout.inner.bits else 1 << 30
    while keeps > 1 and not is_multiple(layout.offset, keeps):
        keeps //= 2
    return layout.outer, keeps


def _steps_by(layout: Layout, common: Layout, width: int) -> bool:
    """Whether, with the common part taken out, all that is left of the layout steps by multiples of `width`."""
    tile = common if is_multiple(size(common), width) else composition(common, Layout(width))
    try:
        rest = logical_divide(layout, tile)[1]
    except LayoutError:
        return False
    steps = zip(flat(rest.shape), flat(rest.stride), strict=True)
    return all(is_multiple(step, width) or (type(extent) is int and extent == 1) for extent, step in steps)


def common_sub_layout(a: Layout, b: Layout) -> Layout:
    """The layout `R` of indices at which `a` and `b` agree: `a(R(i)) = b(R(i))`, mode for mode.

    Both are split into the same modes as far as their extents divide; R has those whose strides are equal.
    """
    left = coalesced_modes(require_plain(a, "common_sub_layout"))
    right = coalesced_modes(require_plain(b, "common_sub_layout"))
    shared: list[tuple[Leaf, Leaf]] = []
    below: Leaf = 1
    while left and right:
        (n, d), (m, e) = left.pop(0), right.pop(0)
        if is_multiple(n, m):
            extent = m
        elif is_multiple(m, n):
            extent = n
        else:
            break
        if not same(n, extent):
            left.insert(0, (floor_div(n, extent), _advanced(d, extent)))
        if not same(m, extent):
            right.insert(0, (floor_div(m, extent), _advanced(e, extent)))
        if _same_step(d, e) and not (type(extent) is int and extent == 1):
            shared.append((extent, below))
        below = mul(extent, below)
    return packed(coalesced_modes(packed(shared or [(1, 0)])))


def _advanced(step: Leaf, extent: Leaf) -> Leaf:
    return 0 if is_zero(step) else mul(extent, step)


def _same_step(left: Leaf, right: Leaf) -> bool:
    if hasattr(left, "mode") or hasattr(right, "mode"):
        return hasattr(left, "same_as") and bool(left.same_as(right))
    return same(left, right)
