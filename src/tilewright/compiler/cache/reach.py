"""What a function can reach: the code that it may run, and the values that this code reads, as one digest.

The walk begins with the function and what it is given, and follows the variables that code reads, modules by the
attributes that it names, classes and objects by the names that occur in any code that was reached. So the digest is
that of everything that tracing can depend on. It holds no address: two processes with the same sources agree on it.

What it cannot follow makes a function *unprovable*: code that can reach files, clocks, the environment or other things
that no digest covers (see `pure.py`), and objects without a stable content. In doubt it is unprovable; such functions
are traced at every lookup.
"""

from __future__ import annotations

import hashlib
import types
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final

from tilewright.compiler.cache import functions, objects
from tilewright.compiler.cache.code_reads import fields
from tilewright.compiler.cache.pure import UNSEEN, reflects
from tilewright.compiler.cache.unprovable import UnprovableError
from tilewright.compiler.cache.watch import Watch

_DESCRIPTIONS: Final = frozenset(("__name__", "__qualname__", "__doc__", "__module__", "__annotations__"))
_ATOMS: Final = frozenset((type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range))


def is_atom(value: Any) -> bool:
    """True for what its text tells apart from all others, and nothing can change."""
    return type(value) in _ATOMS


class Reach:
    """One walk. Values are numbered in the order in which they are met; `digest` is of what was noted of each."""

    def __init__(self) -> None:
        self.watch = Watch()
        self._notes: list[str | bytes] = []
        self._numbers: dict[int, int] = {}
        self._met: list[Any] = []  # kept alive, so that no number is another object's
        self._waiting: deque[Any] = deque()
        self._names: set[str] = set()
        self._all_names = False
        self._unnamed: dict[str, list[tuple[int, Any]]] = {}  # attributes that no code names yet, with their owners
        self._described: list[Any] = []
        self._registered: list[Set[type]] = []
        self._read: dict[str, int] = dict.fromkeys(_DESCRIPTIONS, 0)  # of how many of these

    @property
    def met(self) -> Sequence[Any]:
        """The objects that were met, in order: of two walks with one digest, each is what the other's is."""
        return self._met

    def note(self, *notes: str | bytes) -> None:
        """Put facts into the digest."""
        self._notes += notes

    def value(self, value: Any) -> None:
        """A value that tracing may read.

        Raises:
            UnprovableError: nothing certain can be said of it.
        """
        cls = type(value)
        if cls in _ATOMS:
            self.note(cls.__name__, repr(value))
            if cls is str and "{" in value:
                self.code_names(fields(value))
        elif cls is tuple:
            self.note(f"({len(value)}")
            for item in value:
                self.value(item)
        else:
            self.note(f"#{self._number(value)}")

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """An attribute that counts once any code names it."""
        number = self._numbers[id(owner)]
        if self._all_names or name in self._names:
            self._named(number, name, value)
        else:
            self._unnamed.setdefault(name, []).append((number, value))

    def described(self, owner: Any) -> None:
        """A function or class: its names, text and annotations count once any code names such an attribute."""
        self._described.append(owner)

    def registered(self, classes: Set[type]) -> None:
        """Classes that were registered with the abstract class that is met; those count that are met too."""
        self._registered.append(classes)

    def code_names(self, names: tuple[str, ...]) -> None:
        """Names that occur in code that was reached."""
        unseen = UNSEEN.intersection(names)
        if unseen:
            raise UnprovableError(f"it uses {sorted(unseen)[0]}")
        new = [name for name in names if name not in self._names]
        self._names.update(new)
        if reflects(new):
            self._all_names, new = True, list(self._unnamed)
        for name in new:
            for number, value in self._unnamed.pop(name, ()):
                self._named(number, name, value)

    def digest(self) -> bytes:
        """Walk to the end; the digest of all notes.

        Raises:
            UnprovableError: nothing certain can be said.
        """
        while self._waiting:
            value = self._waiting.popleft()
            self.note(f"={self._numbers[id(value)]}")
            _walk(self, value)
            if not self._waiting:
                self._read_descriptions()
        for classes in self._registered:
            self.note("registered", repr(sorted(self._numbers[id(cls)] for cls in classes if id(cls) in self._numbers)))
        made = hashlib.blake2b(digest_size=20)
        for note in self._notes:
            raw = note if isinstance(note, bytes) else note.encode("utf-8", "surrogatepass")
            made.update(b"%d:" % len(raw))
            made.update(raw)
        return made.digest()

    def _number(self, value: Any) -> int:
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._met)
            self._met.append(value)
            self._waiting.append(value)
        return number

    def _read_descriptions(self) -> None:
        for name in sorted(self._names & _DESCRIPTIONS):
            for owner in self._described[self._read[name] :]:
                if name == "__annotations__" and isinstance(owner, type):
                    continue  # they are noted with the class; to ask for them may make them
                try:
                    value = getattr(owner, name, None)
                except Exception as error:  # annotations that are worked out when they are read
                    raise UnprovableError(f"it reads {name} of {owner.__qualname__}") from error
                self.watch.attributes(owner, (name,))
                self._named(self._numbers[id(owner)], name, value)
            self._read[name] = len(self._described)

    def _named(self, number: int, name: str, value: Any) -> None:
        self.note(f"@{number}", name)
        self.value(value)


def _walk(reach: Reach, value: Any) -> None:
    """Note what a value is, and what it holds."""
    handler = _BY_TYPE.get(type(value))
    if handler is not None:
        handler(reach, value)
    elif isinstance(value, type):
        objects.class_(reach, value)
    else:
        objects.object_(reach, value)


_BY_TYPE: Final[Mapping[type, Callable[[Reach, Any], None]]] = {
    types.FunctionType: functions.function,
    types.BuiltinFunctionType: functions.builtin,
    types.MethodType: functions.method,
    types.ModuleType: functions.module,
    types.CellType: functions.cell,
    **objects.BY_TYPE,
}
