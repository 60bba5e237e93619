"""What a copy asks of caches: hints that change no value, only the time that it takes.

Source: PTX ISA 9.0, "ld", "st" and "cp.async": which instruction has which qualifier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from tilewright.base.errors import CompileError
from tilewright.base.notices import say_once
from tilewright.ir import atom_text
from tilewright.lang.locations import user_location
from tilewright.lang.tensors.pointer import AddressSpace

if TYPE_CHECKING:
    from tilewright.lang.tensors.tensor import Tensor


class CacheEvictionPriority(Enum):
    """When L1 gives up the lines that a load or store touches."""

    EVICT_NORMAL = "evict_normal"
    EVICT_FIRST = "evict_first"
    EVICT_LAST = "evict_last"
    EVICT_UNCHANGED = "evict_unchanged"
    NO_ALLOCATE = "no_allocate"


class L2PrefetchSize(Enum):
    """How many bytes around an address a load brings to L2."""

    NONE = 0
    SIZE_64B = 64
    SIZE_128B = 128
    SIZE_256B = 256


NAMES: Final = ("l1c_evict_priority", "l2_prefetch_size", "invariant")


@dataclass(frozen=True)
class CopyHints:
    """The hints of a copy: `l1`, one of PTX's eviction priorities, or ""; `l2`, bytes to prefetch, or 0; `invariant`:
    nobody writes the source while the kernel runs, so that loads may go through the read-only cache."""

    l1: str = ""
    l2: int = 0
    invariant: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> CopyHints:
        """The hints among the keyword arguments of a copy.

        Raises:
            CompileError: a hint has a value that it cannot have.
        """
        return cls(
            _priority(given.get("l1c_evict_priority")),
            _prefetched(given.get("l2_prefetch_size")),
            bool(given.get("invariant")),
        )

    def over(self, other: CopyHints) -> CopyHints:
        """These hints, and of `other` those that are not given here."""
        return CopyHints(self.l1 or other.l1, self.l2 or other.l2, self.invariant or other.invariant)

    def effective(self, atom: str, src: Tensor, dst: Tensor) -> CopyHints:
        """The hints that the instruction of `atom` between these memories has a place for; of the others, it is said
        once that they have no effect."""
        name = atom_text.read(atom).name
        loads, stores = src.memspace is AddressSpace.gmem, dst.memspace is AddressSpace.gmem
        plain = name == "universal" and src.element_type.width >= 8
        has_place = {
            "l1": plain and (loads or stores),
            "l2": loads and (plain or name == "cp.async"),
            "invariant": plain and loads,
        }
        unused = [field for field, has in has_place.items() if getattr(self, field) and not has]
        for field in unused:
            where = f"a copy by {name} from {src.memspace} to {dst.memspace}"
            say_once(f"{_ARGUMENT[field]} has no effect on {where}: PTX has no place for it", user_location(3))
        return replace(self, **{field: getattr(CopyHints, field) for field in unused})

    def written(self, atom: str) -> str:
        """The text of `atom` with these hints."""
        read = atom_text.read(atom)
        given = {"l1": self.l1, "l2": self.l2, "invariant": int(self.invariant)}
        return atom_text.write(read.name, **read.parameters, **{name: value for name, value in given.items() if value})


_ARGUMENT: Final = dict(zip(("l1", "l2", "invariant"), NAMES, strict=True))


def _priority(given: Any) -> str:
    if given is None:
        return ""
    text = given.value if isinstance(given, CacheEvictionPriority) else str(given).lower()
    known = [item.value for item in CacheEvictionPriority]
    if text not in known:
        raise _refused("l1c_evict_priority", given, "a CacheEvictionPriority, or one of " + ", ".join(known))
    return "" if text == CacheEvictionPriority.EVICT_NORMAL.value else text


def _prefetched(given: Any) -> int:
    size = given.value if isinstance(given, L2PrefetchSize) else given or 0
    if size not in (0, 64, 128, 256):
        raise _refused("l2_prefetch_size", given, "a L2PrefetchSize, or 64, 128 or 256 bytes")
    return int(size)


def _refused(name: str, given: object, allowed: str) -> CompileError:
    return CompileError(f"{name} is {allowed}", location=user_location(4), values={"got": given})
