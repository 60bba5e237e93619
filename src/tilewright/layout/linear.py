"""Static layouts as sums of floors, and where they are linear: the arithmetic behind composition.

A flat layout `A` with extents `a0, a1, ...` and strides `s0, s1, ...` has at index `x` the value

    A(x) = s0*x + Σ_k jump_k * floor(x / q_k),      q_k = a0*...*ak,   jump_k = s_(k+1) - ak*sk

A mode `n:d` of indices becomes the fewest *runs* on which `A` is linear: the first run ends at the first multiple of
`d` at which a floor does not grow in step, that is at `ceil(q_k / (d mod q_k))` for the least such k; its length
must divide `n`, and the rest is a mode `n/m : d*m`. A layout with the values `A(i*d)` exists if and only if the mode
splits this way. Runs `m:D` of several modes add up if they carry over no `q_k` with a jump: the sum of all
`(m-1) * (D mod q_k)` stays below `q_k`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as grid

Run = tuple[int, int]
"""Extent and stride of a run in the domain of A."""

Jump = tuple[int, int, int]
"""`(q, jump, extent)`: A's slope changes at multiples of `q`, which completes the mode of that extent."""

SEARCH_LIMIT = 1 << 18
"""The most points at which cancelling jumps are compared one by one."""


class NotLinear(Exception):
    """No layout has the values asked for; `jump` is where it fails, None if that was too much to find out."""

    def __init__(self, jump: Jump | None, mode: int | None = None) -> None:
        super().__init__()
        self.jump = jump
        self.mode = mode


class Linear:
    """`first*x + Σ jump * (x // q)` for a flat layout of ints."""

    __slots__ = ("first", "jumps")
    first: int
    jumps: list[Jump]

    def __init__(self, extents: Sequence[int], strides: Sequence[int]) -> None:
        self.jumps = []
        self.first = step_before = 0
        q = extent_before = 1
        last = len(extents) - 1
        started = False
        for index, extent in enumerate(extents):
            if extent == 1 and index != last:
                continue
            step = strides[index]
            if started:
                q *= extent_before
                jump = step - extent_before * step_before
                if jump:
                    self.jumps.append((q, jump, extent_before))
            else:
                self.first = step
                started = True
            extent_before, step_before = extent, step

    def __call__(self, x: int) -> int:
        value = self.first * x
        for q, jump, _ in self.jumps:
            value += jump * (x // q)
        return value

    def runs(self, n: int, d: int) -> list[Run]:
        """The fewest runs that make up the mode `n:d`.

        Raises:
            NotLinear: there are none.
        """
        runs: list[Run] = []
        while True:
            length = n
            stop: Jump | None = None
            tied = False
            for jump in self.jumps:
                residue = d % jump[0]
                if residue:
                    crossing = -(-jump[0] // residue)
                    if crossing < length:
                        length, stop, tied = crossing, jump, False
                    elif crossing == length < n:
                        tied = True
            if tied:
                length, stop = self._search_run(n, d, stop)
            if length == n:
                runs.append((n, d))
                return runs
            if n % length:
                raise NotLinear(stop)
            runs.append((length, d))
            n //= length
            d *= length

    def _search_run(self, n: int, d: int, stop: Jump | None) -> tuple[int, Jump | None]:
        """The length of the first run where several jumps meet and may cancel."""
        slope = self(d)
        for count in range(2, min(n, SEARCH_LIMIT)):
            if self(count * d) != count * slope:
                return count, stop
        if n > SEARCH_LIMIT:
            raise NotLinear(None)
        return n, None

    def require_additive(self, runs: Sequence[Run]) -> None:
        """Pass only if the value at any sum of the runs is the sum of the values.

        Raises:
            NotLinear: runs carry over a jump.
        """
        carried: Jump | None = None
        count = 0
        for jump in self.jumps:
            q = jump[0]
            load = 0
            for m, d in runs:
                load += (m - 1) * (d % q)
            if load >= q:
                carried = carried or jump
                count += 1
        if carried is not None and (count == 1 or not self._adds_up(runs)):
            raise NotLinear(carried)

    def _adds_up(self, runs: Sequence[Run]) -> bool:
        """Whether carries at several jumps cancel everywhere; tried point by point."""
        points = 1
        for m, _ in runs:
            points *= m
        if points > SEARCH_LIMIT:
            return False
        slopes = [self(d) for _, d in runs]
        for coord in grid(*(range(m) for m, _ in runs)):
            x = sum(c * d for c, (_, d) in zip(coord, runs, strict=True))
            if self(x) != sum(c * s for c, s in zip(coord, slopes, strict=True)):
                return False
        return True

    def unit_stride(self, d: int) -> int:
        """The stride CuTe prints for the mode `1:d`: `d` over each extent of A, rounded up, in its last mode."""
        below = 1
        step = self.first
        for q, jump, _ in self.jumps:
            extent = q // below
            d = -(-d // extent)
            step = jump + extent * step
            below = q
        return d * step
