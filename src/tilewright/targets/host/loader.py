"""Loads a relocatable object into this process: map, relocate, protect.

Loading needs neither MLIR nor LLVM, so an object from the disk cache runs at once. Code, constants and data get
pages of their own; nothing is ever writable and executable together.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilewright.base.errors import CompileError
from tilewright.targets.host import elf, relocations, symbols

_PROT_READ, _PROT_WRITE, _PROT_EXEC = 1, 2, 4
_MAP_PRIVATE_ANONYMOUS = 0x22
_MAP_FAILED = ctypes.c_void_p(-1).value
_MACHINES = {"x86_64": relocations.EM_X86_64, "aarch64": relocations.EM_AARCH64}
_SLOT = 8

_libc = ctypes.CDLL(None, use_errno=True)
_mmap, _mprotect, _munmap = _libc.mmap, _libc.mprotect, _libc.munmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class LoadedObject:
    """Code and data in memory; they go when this object is collected, so whoever calls into it must hold it."""

    def __init__(self, base: int, size: int, addresses: Mapping[str, int], keep_alive: object = None) -> None:
        self._addresses = dict(addresses)
        self.keep_alive = keep_alive
        self.size = size
        weakref.finalize(self, _munmap, base, size)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names defined by the object."""
        return tuple(self._addresses)

    def address(self, name: str) -> int:
        """The address of symbol `name`."""
        if name not in self._addresses:
            raise CompileError(f"the host object defines no {name!r}", values={"defined": ", ".join(self._addresses)})
        return self._addresses[name]


@dataclass
class _Image:
    """Where everything lies, as offsets from the base: sections, then the slots and stubs of outer symbols."""

    parsed: elf.Object
    known: list[tuple[elf.Relocation, relocations.Rule]]
    offsets: dict[int, int] = field(default_factory=dict)
    protections: list[tuple[int, int, int]] = field(default_factory=list)
    got: dict[int, int] = field(default_factory=dict)
    stubs: dict[int, int] = field(default_factory=dict)
    size: int = 0

    def align(self, alignment: int) -> None:
        self.size = -(-self.size // alignment) * alignment

    def reserve(self, via: relocations.Via, step: int) -> dict[int, int]:
        """Room of `step` bytes for each symbol that relocations reach `via` it; a near symbol needs no stub."""
        places: dict[int, int] = {}
        for one, rule in self.known:
            outer = self.parsed.symbols[one.symbol].section == elf.SHN_UNDEF
            if rule.via == via and (via == "got" or outer) and one.symbol not in places:
                places[one.symbol] = self.size
                self.size += step
        return places


def load_object(
    data: bytes, *, resolve: Callable[[str], int] = symbols.address_of, keep_alive: object = None
) -> LoadedObject:
    """Place a relocatable ELF64 object of this machine's processor in memory.

    Args:
        data: the object.
        resolve: the address of a symbol that the object does not define.
        keep_alive: what these addresses need; held as long as the object.

    Raises:
        CompileError: the object is damaged or for another processor, has a relocation that is not known, or refers to
            a symbol that `resolve` refuses.
    """
    parsed = elf.parse(data)
    if parsed.machine != _MACHINES.get(platform.machine()):
        values = {"object": parsed.machine, "this machine": platform.machine()}
        raise CompileError("the host object is for another processor", values=values)
    image = _lay_out(parsed)
    base = _map(image.size)
    try:
        addresses = _addresses(image, base, resolve)
        memory = _relocate(image, base, addresses)
        ctypes.memmove(base, bytes(memory), image.size)
        for start, end, protection in image.protections:
            _protect(base + start, end - start, protection)
    except BaseException:
        _munmap(base, image.size)
        raise
    named = {s.name: addresses[i] for i, s in enumerate(parsed.symbols) if s.name and i in addresses and _is_own(s)}
    return LoadedObject(base, image.size, named, keep_alive)


def _is_own(symbol: elf.Symbol) -> bool:
    return symbol.section not in (elf.SHN_UNDEF, elf.SHN_ABS)


_KINDS = (
    (elf.SHF_EXECINSTR, _PROT_READ | _PROT_EXEC),
    (0, _PROT_READ),
    (elf.SHF_WRITE, _PROT_READ | _PROT_WRITE),
)


def _lay_out(parsed: elf.Object) -> _Image:
    image = _Image(parsed, _known_relocations(parsed))
    for kind, protection in _KINDS:
        start = image.size
        for index, section in enumerate(parsed.sections):
            if _is_loaded(section) and section.flags & (elf.SHF_WRITE | elf.SHF_EXECINSTR) == kind:
                image.align(section.align)
                image.offsets[index] = image.size
                image.size += section.size
        image.align(relocations.STUB_SIZE)
        if kind == elf.SHF_EXECINSTR:
            image.stubs = image.reserve("stub", relocations.STUB_SIZE)
        if kind == 0:
            image.got = image.reserve("got", _SLOT)
        image.align(mmap.PAGESIZE)
        if image.size > start:
            image.protections.append((start, image.size, protection))
    return image


def _is_loaded(section: elf.Section) -> bool:
    # Unwinding tables are never used: compiled host code raises nothing.
    return bool(section.flags & elf.SHF_ALLOC) and not section.name.startswith((".eh_frame", ".note"))


def _known_relocations(parsed: elf.Object) -> list[tuple[elf.Relocation, relocations.Rule]]:
    rules = relocations.RULES[parsed.machine]
    found = []
    for one in parsed.relocations:
        if _is_loaded(parsed.sections[one.section]):
            if one.type not in rules:
                raise CompileError(f"the host object has a relocation of unknown type {one.type}")
            found.append((one, rules[one.type]))
    return found


def _addresses(image: _Image, base: int, resolve: Callable[[str], int]) -> dict[int, int]:
    """The address of every symbol that is loaded or referred to, by number."""
    found: dict[int, int] = {}
    referred = {one.symbol for one, _ in image.known}
    for index, symbol in enumerate(image.parsed.symbols):
        if symbol.section == elf.SHN_UNDEF:
            if index in referred:
                found[index] = resolve(symbol.name)
        elif symbol.section == elf.SHN_ABS:
            found[index] = symbol.value
        elif symbol.section in image.offsets:
            found[index] = base + image.offsets[symbol.section] + symbol.value
    return found


def _relocate(image: _Image, base: int, addresses: dict[int, int]) -> bytearray:
    memory = bytearray(image.size)
    for index, offset in image.offsets.items():
        content = image.parsed.sections[index].data
        memory[offset : offset + len(content)] = content
    for symbol, offset in image.got.items():
        memory[offset : offset + _SLOT] = addresses[symbol].to_bytes(_SLOT, "little")
    for symbol, offset in image.stubs.items():
        stub = relocations.stub(image.parsed.machine, addresses[symbol])
        memory[offset : offset + relocations.STUB_SIZE] = stub
    places = {"got": image.got, "stub": image.stubs, "symbol": {}}
    for one, rule in image.known:
        detour = places[rule.via].get(one.symbol)
        target = addresses[one.symbol] if detour is None else base + detour
        offset = image.offsets[one.section] + one.offset
        rule.write(memory, offset, target + one.addend, base + offset)
    return memory


def _map(size: int) -> int:
    base = _mmap(None, size, _PROT_READ | _PROT_WRITE, _MAP_PRIVATE_ANONYMOUS, -1, 0)
    if base in (None, _MAP_FAILED):
        raise CompileError(f"cannot map {size} bytes for host code: errno {ctypes.get_errno()}")
    return int(base)


def _protect(address: int, size: int, protection: int) -> None:
    if _mprotect(address, size, protection):
        hint = "the system forbids a process to make code of its own"
        raise CompileError(f"cannot protect host code: errno {ctypes.get_errno()}", hint=hint)
