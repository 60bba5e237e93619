"""LLVM IR as text: files with holes, constants, numbered values, blocks."""

from __future__ import annotations

import functools
from pathlib import Path
from string import Template
from typing import Final

_FILES: Final = Path(__file__).with_name("llvm")


def llvm_file(name: str, **values: object) -> str:
    """The text of `llvm/<name>.ll` with each `$word` replaced by the value of that name.

    Raises:
        KeyError: a hole has no value.
    """
    return _template(name).substitute(values)


@functools.cache
def _template(name: str) -> Template:
    return Template((_FILES / f"{name}.ll").read_text(encoding="utf-8"))


def c_string(text: str) -> tuple[str, int]:
    """`text` as the body of an LLVM string constant, and its size in bytes with the final zero."""
    data = text.encode() + b"\0"
    body = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:02X}" for b in data)
    return body, len(data)


def symbol(name: str) -> str:
    """`name` as a global symbol in IR, whatever characters it has."""
    body, _ = c_string(name)
    return f'@"{body.removesuffix(chr(92) + "00")}"'


def name_table(symbol: str, names: dict[int, str], count: int, default: str) -> tuple[str, int]:
    """A constant array of `count` fixed-width strings, and the width: text number i at byte i * width.

    It holds no pointers, so that it needs no relocation.
    """
    width = max(len(name) for name in (*names.values(), default)) + 1
    rows = []
    for index in range(count):
        body, _ = c_string(names.get(index, default).ljust(width - 1, "\0"))
        rows.append(f'[{width} x i8] c"{body}"')
    table = ", ".join(rows)
    return f"@{symbol} = private unnamed_addr constant [{count} x [{width} x i8]] [{table}]", width


class Strings:
    """String constants of a module, each text once."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.names: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        """The name of the constant that holds `text`."""
        return self.names.setdefault(text, f"@.{self.prefix}.{len(self.names)}")

    def definitions(self) -> list[str]:
        """The constants as IR lines."""
        lines = []
        for text, name in self.names.items():
            body, size = c_string(text)
            lines.append(f'{name} = private unnamed_addr constant [{size} x i8] c"{body}"')
        return lines


class Body:
    """The body of one function: instructions in order, and cold blocks behind the last."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.cold: list[str] = []
        self.failures: list[tuple[str, int, str, str]] = []
        self.block = "entry"
        self._count = 0

    def _next(self) -> int:
        self._count += 1
        return self._count

    def do(self, instruction: str) -> None:
        """Add an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def value(self, instruction: str) -> str:
        """Add an instruction; the name of its result."""
        name = f"%v{self._next()}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def alloca(self, type_: str) -> str:
        """Room on the stack; its address."""
        name = f"%v{self._next()}"
        self.allocas.append(f"  {name} = alloca {type_}, align 8")
        return name

    def start(self, label: str) -> None:
        """Begin the block `label`."""
        self.lines.append(f"{label}:")
        self.block = label

    def label(self, stem: str) -> str:
        """A new label."""
        return f"{stem}{self._next()}"

    def load(self, type_: str, pointer: str, offset: int = 0) -> str:
        """Load from `offset` bytes behind `pointer`."""
        return self.value(f"load {type_}, ptr {self.offset(pointer, offset)}")

    def offset(self, pointer: str, bytes_: int) -> str:
        """`pointer` moved by a constant number of bytes."""
        return self.value(f"getelementptr i8, ptr {pointer}, i64 {bytes_}") if bytes_ else pointer

    def require(self, condition: str, failure: int, value: str, subject: str) -> None:
        """Go on where `condition` (an i1) holds; else go to the block `fail`.

        Args:
            condition: an i1.
            failure: the number of the failure.
            value: an i64 to report.
            subject: a pointer to report.
        """
        number = self._next()
        self.do(f"br i1 {condition}, label %ok{number}, label %bad{number}")
        self.cold += [f"bad{number}:", "  br label %fail"]
        self.failures.append((f"%bad{number}", failure, value, subject))
        self.start(f"ok{number}")

    def text(self, fail: list[str]) -> str:
        """The whole body; block `fail` runs the lines `fail`, which know `%failure`, `%value` and `%subject`."""
        sources = [", ".join(f"[ {row[column]}, {row[0]} ]" for row in self.failures) for column in (1, 2, 3)]
        phis = [
            f"  %{name} = phi {type_} {source}"
            for name, type_, source in zip(("failure", "value", "subject"), ("i32", "i64", "ptr"), sources, strict=True)
        ]
        lines = [*self.allocas, *self.lines, *self.cold, "fail:", *phis, *(f"  {line}" for line in fail)]
        return "\n".join(lines)


class Messages:
    """The messages of a function's checks in one constant; each is known by its offset."""

    def __init__(self) -> None:
        self._offsets: dict[str, int] = {}
        self._size = 0

    def __call__(self, kind: str, what: str, expected: str = "", hint: str = "") -> int:
        """The offset of a message."""
        text = f"{kind}{what}\0{expected}\0{hint}\0"
        if text not in self._offsets:
            self._offsets[text] = self._size
            self._size += len(text.encode())
        return self._offsets[text]

    def definition(self, symbol: str) -> str:
        """The constant that holds all messages."""
        body, size = c_string("".join(self._offsets))
        return f'@{symbol} = private unnamed_addr constant [{size} x i8] c"{body}"'
