"""`tilewright cache`: the compiled functions that are kept on disk."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.table import Table

from tilewright.base.errors import ArgumentError
from tilewright.compiler.cache.entry import DamagedError, described, unsealed
from tilewright.compiler.cache.store import Store, StoredFile, named_store
from tilewright.tools.console import console as make_console

WAYS = ("ls", "clear", "verify")


def command(what: Annotated[str, typer.Argument(help=f"one of {', '.join(WAYS)}")] = "ls") -> None:
    """List what is kept (ls), take it all away (clear), or take away what is damaged (verify)."""
    if what not in WAYS:
        raise ArgumentError(f"there is no `tilewright cache {what}`", hint=f"one of: {', '.join(WAYS)}")
    store = named_store()
    {"ls": show, "clear": clear, "verify": verify}[what](store)


def show(store: Store) -> None:
    """Print the compiled functions, the one used last first."""
    console = make_console(highlight=False)
    files = store.files()
    table = Table(box=None, pad_edge=False)
    for title in ("function", "arch", "bytes", "used"):
        table.add_column(title, justify="right" if title == "bytes" else "left")
    for file in files:
        if file.kind == "entries":
            name, arch = _described(file)
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.used))
            table.add_row(name, arch, f"{file.size:,}", used)
    if table.row_count:
        console.print(table)
    total = sum(file.size for file in files)
    line = f"{_counted(table.row_count, 'function')}, {total:,} of {store.limit:,} bytes in {store.folder}"
    console.print(line, markup=False, soft_wrap=True)


def clear(store: Store) -> None:
    """Take all files away."""
    count = store.clear()
    line = f"{_counted(count, 'file')} taken away from {store.folder}"
    make_console(highlight=False).print(line, markup=False, soft_wrap=True)


def verify(store: Store) -> None:
    """Take damaged files away; the exit status says whether there were any."""
    console, files = make_console(highlight=False), store.files()
    damaged = [file for file in files if not _is_whole(file)]
    for file in damaged:
        console.print(f"damaged: {file.path}", markup=False, soft_wrap=True)
        store.remove(file.kind, file.key)
    console.print(f"{_counted(len(files), 'file')}, {len(damaged)} damaged")
    if damaged:
        raise typer.Exit(1)


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _described(file: StoredFile) -> tuple[str, str]:
    try:
        found = described(file.path.read_bytes())
    except (OSError, DamagedError):
        return "(damaged)", ""
    return str(found.get("name")), str(found.get("arch"))


def _is_whole(file: StoredFile) -> bool:
    try:
        return bool(unsealed(file.path.read_bytes()))
    except (OSError, DamagedError):
        return False
