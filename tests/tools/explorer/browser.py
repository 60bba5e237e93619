"""A headless Chromium for tests of pages; they are skipped, with the reason, where there is none."""

from __future__ import annotations

import importlib.util
import shutil
from contextlib import contextmanager

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZE = {"width": 1920, "height": 1080}


def chromium():
    """The browser's program.

    The tests that need it are skipped where it, or Playwright, is not installed.
    """
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("Playwright is not installed: pip install playwright (group `browser` of pyproject.toml)")
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"none of {', '.join(PROGRAMS)} is installed")
    return program


@contextmanager
def browser():
    """A browser; what it says of errors in pages fails the test."""
    program = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()


@contextmanager
def opened(started, address, scheme="light"):
    """A page of a browser, once it shows everything; errors that it meets are raised."""
    context = started.new_context(viewport=SIZE, color_scheme=scheme, offline=str(address).startswith("file:"))
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type in ("error", "warning") else None)
    try:
        page.goto(str(address))
        page.wait_for_selector("html[data-ready]", timeout=30_000)
        yield page
        assert errors == []
    finally:
        context.close()
