"""The reference of the public modules, from their docstrings.

A page `api/<module>.md` is written for each row of `MODULES` before Sphinx reads the sources; it lists the module's
public names with their signatures. The docstrings are plain text with names in backquotes, which is what Sphinx is
told here.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODULES = {
    "tilewright.layout": "The layout algebra in plain Python",
    "tilewright.cute": "The language: layouts, tensors, copies, products, compiling",
    "tilewright.cute.arch": "What a thread can do: indices, barriers, shuffles, atomics, fences",
    "tilewright.cute.math": "Functions of numbers and vectors",
    "tilewright.cute.nvgpu": "Operations that copy and multiply, by hardware",
    "tilewright.cute.nvgpu.warp": "Tensor cores of a warp, ldmatrix, stmatrix",
    "tilewright.cute.nvgpu.warpgroup": "Tensor cores of a warpgroup (sm_90)",
    "tilewright.cute.nvgpu.cpasync": "Asynchronous copies: cp.async and TMA",
    "tilewright.cute.runtime": "Tensors and pointers that calls pass",
    "tilewright.cute.testing": "Timing and comparing kernels",
    "tilewright.pipeline": "Buffers that producers fill and consumers drain",
    "tilewright.utils": "Shared memory, hardware facts, layouts of tiles",
    "tilewright": "Names of `cutlass`: number types, decorators, errors",
    "tilewright.tile": "Kernels of whole blocks",
    "tilewright.passes": "Passes and operations of your own",
    "tilewright.epilogue": "Epilogues",
    "tilewright.ops": "The kernel library",
    "tilewright.emulate": "Run PTX on the emulator",
    "tilewright.testing": "Helpers for tests",
}


def public_names(module: Any) -> list[str]:
    """What a module offers: its `__all__`, or the names without an underscore that are no modules."""
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    return [name for name in sorted(set(names), key=str.lower) if describes(getattr(module, name, None))]


def describes(value: Any) -> bool:
    """Whether the reference has an entry for a value: functions and classes with a docstring, Python's own apart."""
    own = getattr(value, "__module__", "") != "builtins"
    return callable(value) and own and bool(inspect.getdoc(value)) and not inspect.ismodule(value)


def page(name: str, title: str, written: dict[int, str]) -> str:
    """The Markdown of a module's page; `written` has the full name of each object that a page before it describes."""
    module = importlib.import_module(name)
    here = [(item, getattr(module, item)) for item in public_names(module)]
    own = [(item, value) for item, value in here if id(value) not in written]
    others = [f"{{py:obj}}`{item} <{written[id(value)]}>`" for item, value in here if id(value) in written]
    written.update({id(value): f"{name}.{item}" for item, value in reversed(own)})
    head = f"# {name}\n\n{title}.\n\n{(inspect.getdoc(module) or '').strip()}\n\n"
    also = f"Also here: {', '.join(others)}.\n\n" if others else ""
    return (
        head
        + also
        + "\n".join(entry(f"{name}.{item}", value) for item, value in own if first(name, item, value, written))
    )


def first(name: str, item: str, value: Any, written: dict[int, str]) -> bool:
    """Whether this is the name under which an object is described, of several that it has in one module."""
    return written[id(value)] == f"{name}.{item}"


def entry(full_name: str, value: Any) -> str:
    """The directive that describes an object."""
    kind, options = ("autoclass", "   :members:\n") if inspect.isclass(value) else ("autofunction", "")
    return f"```{{eval-rst}}\n.. {kind}:: {full_name}\n{options}```\n"


def write_pages(app: Any) -> None:
    """Write the pages that changed, and the list of them."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    written: dict[int, str] = {}
    for name, title in MODULES.items():
        write(folder / f"{name}.md", page(name, title, written))
    rows = "\n".join(f"* [{name}]({name}.md): {title[0].lower()}{title[1:]}" for name, title in MODULES.items())
    contents = "\n".join(MODULES)
    write(folder / "index.md", f"# The public modules\n\n{rows}\n\n```{{toctree}}\n:hidden:\n\n{contents}\n```\n")


def write(file: Path, text: str) -> None:
    """Write a file unless it is as it should be, so that Sphinx reads only what is new."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def as_text(app: Any, kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Docstrings as reStructuredText: double backquotes for code, and tables and lists as they stand."""
    lines[:] = restructured(lines)


FIELDS = {"Args": "param", "Raises": "raises", "Returns": "returns", "Yields": "yields"}
"""The fields that sections of a docstring become."""
SECTION = re.compile(rf"({'|'.join(FIELDS)}):$")
ITEM = re.compile(r"([*\-]|\d+\.) ")


def restructured(lines: list[str]) -> list[str]:
    """The lines of a docstring as reStructuredText.

    Prose has code in double backquotes, `Args:` and the like become fields, lists stay lists; a table or a block of
    code is kept as it is.
    """
    made: list[str] = []
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
        block = paragraph.strip("\n").splitlines()
        if not block:
            continue
        if found := SECTION.match(block[0]):
            made += fields(found[1], block[1:])
        elif ITEM.match(block[0]) and all(ITEM.match(line) or line.startswith("  ") for line in block):
            made += [line for item in joined(block, ITEM.match) for line in listed(item)]
        elif re.match(r"\s*[|>]", block[0]) or any(line.startswith(" ") for line in block):
            made += ["::", "", *("   " + line for line in block)]
        else:
            made += prose(block)
        made.append("")
    return made


def fields(section: str, block: list[str]) -> list[str]:
    """A section as fields: one for each item, `name: text`, or one of its own for what is returned."""
    kind, indent = FIELDS[section], min(len(line) - len(line.lstrip()) for line in block)
    block = [line[indent:] for line in block]
    if section in ("Returns", "Yields"):
        return [f":{kind}: {' '.join(prose([' '.join(line.strip() for line in block)]))}"]
    made = []
    for item in joined(block, lambda line: not line.startswith(" ")):
        name, _, text = item.partition(": ")
        made.append(f":{kind} {name.replace('*', chr(92) + '*')}: {' '.join(prose([text]))}")
    return made


def joined(block: list[str], begins: Callable[[str], Any]) -> list[str]:
    """The items of a block, each with its continuation lines in one."""
    items: list[str] = []
    for line in block:
        if begins(line) or not items:
            items.append(line.strip())
        else:
            items[-1] += " " + line.strip()
    return items


def listed(item: str) -> list[str]:
    """An item of a list."""
    mark, _, text = item.partition(" ")
    return [f"{mark} {' '.join(prose([text]))}"]


def prose(block: list[str]) -> list[str]:
    """Escape what reStructuredText would read as markup, and double the backquotes around code."""
    parts = re.split(r"(`+[^`]+`+)", "\n".join(block))
    return "".join(
        code(part) if part.startswith("`") else re.sub(r"([*_|\\`])", r"\\\1", part) for part in parts
    ).splitlines()


def code(span: str) -> str:
    """A code span, with the empty words that reStructuredText wants between it and letters beside it."""
    return f"\\ ``{' '.join(span.strip('`').split())}``\\ "


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", as_text)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
