"""Asynchronous copies from global to shared memory (PTX `cp.async`, sm_80 and up)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tilewright.base.errors import CompileError
from tilewright.ir import atom_text, build
from tilewright.lang import trace
from tilewright.lang.atoms.copy_atom import CopyOp, CopyTraits, one_thread
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.tensor import Tensor


class LoadCacheMode(Enum):
    """Which caches a load fills: `ALWAYS` all levels, `GLOBAL` L2 alone; `NONE` leaves it to the instruction."""

    ALWAYS = "always"
    GLOBAL = "global"
    STREAMING = "streaming"
    LAST_USE = "last_use"
    NONE = "none"


@dataclass(frozen=True)
class CopyG2SOp(CopyOp):
    """`cp.async` of 4, 8 or 16 bytes by each thread; with `LoadCacheMode.GLOBAL` 16 bytes, past L1.

    Where the predicate of `cute.copy` is false, zeros are written. The copies of a thread are complete after
    `cp_async_commit_group` and `cp_async_wait_group`; other threads see them after a barrier.
    """

    cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS

    def __post_init__(self) -> None:
        if self.cache_mode not in (LoadCacheMode.ALWAYS, LoadCacheMode.GLOBAL, LoadCacheMode.NONE):
            raise CompileError(
                f"cp.async with cache mode {self.cache_mode.name}",
                location=user_location(),
                hint="LoadCacheMode.ALWAYS or LoadCacheMode.GLOBAL",
            )

    def traits(self, dtype: type[Numeric], num_bits: int) -> CopyTraits:
        bits = num_bits or dtype.width
        allowed = (128,) if self.cache_mode is LoadCacheMode.GLOBAL else (32, 64, 128)
        if bits not in allowed:
            raise CompileError(
                f"cp.async of {bits} bits",
                location=user_location(),
                values={"cache mode": self.cache_mode.name, "num_bits_per_copy": num_bits},
                hint=f"it copies {' or '.join(map(str, allowed))} bits; LoadCacheMode.GLOBAL only 128",
            )
        return one_thread(bits)

    def text(self, num_bits: int) -> str:
        cached = LoadCacheMode.ALWAYS if self.cache_mode is LoadCacheMode.NONE else self.cache_mode  # PTX says .ca
        return atom_text.write("cp.async", **({"bits": num_bits} if num_bits else {}), cache=cached.value)

    def check(self, src: Tensor, dst: Tensor) -> None:
        super().check(src, dst)
        expect_space("cp.async", "source", src, AddressSpace.gmem)
        expect_space("cp.async", "destination", dst, AddressSpace.smem)


def expect_space(what: str, side: str, tensor: Tensor, space: AddressSpace) -> None:
    """Refuse a tensor in another memory."""
    if tensor.memspace is not space:
        raise CompileError(
            f"{what} has its {side} in {space}, not in {tensor.memspace}",
            location=user_location(),
            values={side: tensor},
        )


def cp_async_commit_group(*, loc: object = None, ip: object = None) -> None:
    """Close the group of all `cp.async` copies that this thread has started since the last group."""
    trace.device("cp_async_commit_group")
    build.cute("async_commit", ())


def cp_async_wait_group(n: int, *, loc: object = None, ip: object = None) -> None:
    """Wait until at most `n` of this thread's latest groups are unfinished; `n` is known while compiling.

    Raises:
        CompileError: `n` is known only at run time, or negative.
    """
    trace.device("cp_async_wait_group")
    value = getattr(n, "value", n)
    if not isinstance(value, int) or value < 0:
        raise CompileError(
            "cp_async_wait_group takes a number known while compiling",
            location=user_location(),
            values={"n": n},
            hint="PTX holds the number of groups in the instruction",
        )
    build.cute("async_wait", (), (), groups=build.i32(value))
