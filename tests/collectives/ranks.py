"""Ranks on emulated devices for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import dist, emulate


def run_ranks(
    world: int, arrays: list[Any], call: Callable[[dist.Communicator, Any, int], Any], seed: int = 0, **options: Any
) -> list[Any]:
    """`call(communicator, array, rank)` for every rank, with its array on its device; what the calls gave, run."""
    with emulate.devices(world, seed=seed) as devices:
        comms = dist.communicators(devices, **options)
        placed = [device.array(array) for device, array in zip(devices, arrays, strict=True)]
        return [call(comm, array, rank) for rank, (comm, array) in enumerate(zip(comms, placed, strict=True))]


def whole_numbers(world: int, shape: Any, dtype: Any, seed: int = 0) -> list[Any]:
    """Small whole numbers, whose sums are exact in any order and any type."""
    random = np.random.default_rng(seed)
    return [random.integers(-5, 6, size=shape).astype(dtype) for _ in range(world)]
