"""`CUDA_VERSION`, `target_version`: the CUDA version of the toolchain, by which kernels choose their options."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.base.errors import ArgumentError


class CudaVersion(NamedTuple):
    """A version of CUDA."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


CUDA_VERSION = CudaVersion(13, 0)
"""The CUDA version of the newest PTX that is written, 9.0 (PTX ISA, release history)."""


def target_version(
    exact_version: str | None = None, *, min_version: str | None = None, max_version: str | None = None
) -> bool:
    """Whether `CUDA_VERSION` is that version, or not before or after one.

    Raises:
        ArgumentError: a version is no text such as "13.1".
    """
    own = tuple(CUDA_VERSION)
    if exact_version is not None and _version(exact_version) != own:
        return False
    if min_version is not None and own < _version(min_version):
        return False
    return max_version is None or own <= _version(max_version)


def _version(text: str) -> tuple[int, int]:
    major, _, minor = str(text).partition(".")
    if not (major.isdigit() and (minor or "0").isdigit()):
        raise ArgumentError("a version of CUDA is a text like '13.1'", values={"version": text})
    return int(major), int(minor or "0")
