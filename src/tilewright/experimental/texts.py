"""Printing while a kernel or the code that launches it runs."""

from __future__ import annotations

from typing import Any

from tilewright.lang.printing.runtime_print import printf


def print_runtime(text: str, *values: Any, loc: object = None, ip: object = None) -> None:
    """Print `text` with the values in the places of its braces, as `cute.printf`; lines that have no end get one."""
    printf(text, *values, end="" if text.endswith("\n") else "\n")
