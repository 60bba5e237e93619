"""Finds and runs the Python blocks of a Markdown file.

A fenced block that opens with ```` ```python ```` is run; all blocks of a file share one namespace, in order. A block
that opens with ```` ```text output ```` states what the Python block before it prints: compared line by line,
trailing spaces aside, `...` standing for any text. ```` ```python skip ```` is not run, ```` ```python error=Name ````
must raise an exception of that class (its message is what the block prints). ```` ```python file=PATH ```` is a file of
the checkout, and what follows can import it. Other fences are left alone.
"""

import linecache
import re
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`]*)$")


@dataclass
class Block:
    """A fenced block: its info words, the line of its first line of code (from 1), its lines."""

    words: list[str]
    line: int
    lines: list[str] = field(default_factory=list)

    @property
    def runs(self):
        return self.words[:1] == ["python"] and "skip" not in self.words

    @property
    def is_output(self):
        return self.words == ["text", "output"]

    @property
    def error(self):
        """The class of exception that the block must raise, empty for none."""
        return self._word("error=")

    @property
    def file(self):
        """The path in the checkout of the file that the block is, empty for none."""
        return self._word("file=")

    def _word(self, key):
        return next((word.removeprefix(key) for word in self.words if word.startswith(key)), "")

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"


def find_blocks(text):
    """All fenced blocks of a Markdown text, in order."""
    blocks, opened, ticks, indent = [], None, "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        match = FENCE.match(line)
        if opened is None and match:
            opened, ticks, indent = Block(match["info"].split(), number + 1), match["ticks"], len(match["indent"])
        elif opened is not None and match and match["ticks"] == ticks and not match["info"].strip():
            blocks.append(opened)
            opened = None
        elif opened is not None:
            opened.lines.append(line[indent:] if not line[:indent].strip() else line)
    if opened is not None:
        raise ValueError(f"line {opened.line - 1}: the block is never closed")
    return blocks


def outside_blocks(text):
    """The text without its fenced blocks and code spans."""
    lines = text.splitlines()
    for block in find_blocks(text):
        lines[block.line - 1 : block.line - 1 + len(block.lines)] = [""] * len(block.lines)
    return re.sub(r"`[^`]*`", "", "\n".join(lines))


def matches(expected, actual):
    """Whether the printed text fits the stated one."""
    pattern = r"(?s:.*?)".join(re.escape(part) for part in tidy(expected).split("..."))
    return re.fullmatch(pattern, tidy(actual)) is not None


def tidy(text):
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


class Document:
    """A Markdown file whose blocks run in one namespace, with the file's line numbers."""

    def __init__(self, path: Path):
        self.path = path
        self.blocks = find_blocks(path.read_text(encoding="utf-8"))
        self.module = types.ModuleType("docs_" + re.sub(r"\W", "_", path.stem))
        self.module.__file__ = str(path)

    def run(self, printed):
        """Run all blocks; `printed()` gives what was printed since it was last called. Yields (block, problem)."""
        sys.modules[self.module.__name__] = self.module
        try:
            for block, following in zip(self.blocks, [*self.blocks[1:], None], strict=True):
                if block.runs:
                    yield from self._run_block(block, following, printed)
        finally:
            for name in {self.module.__name__, *(_module_name(block.file) for block in self.blocks if block.file)}:
                sys.modules.pop(name, None)

    def _run_block(self, block, following, printed):
        message = self._execute(block)
        text = printed() + message
        if following is not None and following.is_output and not matches("\n".join(following.lines), text):
            yield f"{self.path.name}:{following.line}: the block above prints\n{text}"

    def _execute(self, block):
        """Run one block; the message of the exception that it must raise."""
        code = self._compiled(block)
        if block.file:
            module = sys.modules[_module_name(block.file)] = types.ModuleType(_module_name(block.file))
            exec(code, module.__dict__)
            return ""
        if not block.error:
            exec(code, self.module.__dict__)
            return ""
        try:
            exec(code, self.module.__dict__)
        except Exception as error:
            if block.error not in [kind.__name__ for kind in type(error).__mro__]:
                raise
            return f"{type(error).__name__}: {error}"
        raise AssertionError(f"{self.path.name}:{block.line}: the block must raise {block.error} and does not")

    def _compiled(self, block):
        """The code of a block, which is a file of its own to Python, with its source where `inspect` looks for it."""
        name = f"{self.path}#{block.line}"
        text = "\n" * (block.line - 1) + block.text
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        return compile(text, name, "exec", dont_inherit=True)


def _module_name(path):
    """What a file of the checkout is imported as."""
    return path.removeprefix("src/").removesuffix(".py").replace("/", ".")
