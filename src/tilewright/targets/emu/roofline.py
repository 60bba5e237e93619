"""Which limit of a card would bind a kernel that the emulator has counted: an estimate, not a measurement.

Each limit is the time that one part of the card would need at its peak rate if it had nothing else to wait for; the
longest binds. Caches are taken to be perfect (each sector of global memory comes and goes once), warps to be full,
latencies to be hidden, blocks to be spread evenly. A real run takes longer.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.hw.chips import SECTOR_BYTES
from tilewright.hw.peaks import SPECIAL_PER_SM, Peak

NOTE = "an estimate from counted work and peak rates; not a measurement, a real run takes longer"


@dataclass(frozen=True)
class Limit:
    """`amount` of work in `unit` at `rate` a second."""

    name: str
    amount: float
    unit: str
    rate: float

    @property
    def seconds(self) -> float:
        """The least time that this work takes."""
        return self.amount / self.rate


@dataclass(frozen=True)
class Roofline:
    """An estimate for one launch on one card; `limits` from the longest to the shortest."""

    kernel: str
    card: str
    limits: tuple[Limit, ...]

    @property
    def binding(self) -> Limit:
        """The limit that would bind."""
        return self.limits[0]

    @property
    def seconds(self) -> float:
        """The least time of the launch, if all parts work at once."""
        return self.binding.seconds

    def __str__(self) -> str:
        lines = [f"{self.kernel} on {self.card}: {self.binding.name} binds, at least {self.seconds * 1e6:.3g} us",
                 f"  ({NOTE})"]  # fmt: skip
        width = max(len(limit.name) for limit in self.limits)
        for limit in self.limits:
            share = limit.seconds / self.seconds if self.seconds else 0.0
            lines.append(f"  {limit.name:<{width}}  {limit.seconds * 1e6:>9.3g} us  {share:>4.0%}  "
                         f"{limit.amount:.4g} {limit.unit} at {limit.rate:.3g} a second")  # fmt: skip
        return "\n".join(lines)


def estimate(
    kernel: str, card: Peak, blocks: int, instructions: int, work: dict[str, float], moved: tuple[int, int, int]
) -> Roofline:
    """The limits of a launch.

    Args:
        work: operations by unit (`work.unit_of`).
        moved: (distinct sectors read and written, sectors of all requests, wavefronts of shared memory).
    """
    active = min(blocks, card.multiprocessors)
    share = active / card.multiprocessors
    distinct, sectors, wavefronts = moved
    limits = [
        Limit("global memory", float(distinct * SECTOR_BYTES), "bytes", card.memory),
        Limit("L1 and shared memory", sectors * SECTOR_BYTES + wavefronts * 128.0, "bytes", card.l1 * active),
        Limit("instruction issue", float(instructions), "thread-instructions", card.thread_issue * active),
    ]
    rates = {"f32": card.f32, "f64": card.f64, "special": SPECIAL_PER_SM * card.clock * card.multiprocessors}
    rates |= {f"tensor {kind}": rate for kind, rate in card.tensor.items()}
    limits += [Limit(unit, amount, "operations", rates[unit] * share) for unit, amount in work.items() if unit in rates]
    return Roofline(kernel, card.name, tuple(sorted(limits, key=lambda limit: -limit.seconds)))
