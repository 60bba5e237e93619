"""Makes the pictures of docs/explorer.md: three kernels in a headless Chromium, light and dark, every view looked at.

python -m tests.tools.explorer.screenshots [FOLDER]
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from tests.tools.explorer import cases
from tests.tools.explorer.browser import browser, opened
from tilewright import ops
from tilewright.base import settings
from tilewright.compiler import hooks
from tilewright.emulate import observe
from tilewright.tools.explorer.collect import collected
from tilewright.tools.explorer.page import page
from tilewright.tools.function_runs import Run, run_executor

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "images"
SIZE = {"width": 1680, "height": 945}
COLOURS = 128
VIEWS = {
    ("gemm", "passes", "light"),
    ("gemm", "report", "light"),
    ("gemm", "layouts", "dark"),
    ("large", "flow", "light"),
}
KERNELS = {
    "row_sum": lambda: run_executor(*cases.row_sum()),
    "gemm": lambda: product("sm_80", (256, 64), (64, 128)),
    "large": lambda: product("sm_90a", (512, 32), (32, 2048)),
}


def product(arch, left, right):
    """The run of `ops.gemm` on float16 matrices of these shapes."""
    a, b = (np.ones(shape, np.float16) for shape in (left, right))
    found = []
    with settings.scope(target="emu", arch=arch, no_cache=True), hooks.after_compile(found.append):
        with observe(counters=True, collect=True, checks=False) as reports:
            ops.gemm(a, b)
    return Run("gemm", found, reports)


def walk(shown):
    """Go through every view, see that each shows something, and come back; yields the view's name while it is there."""
    assert shown.locator(".pane .cm-line").count() > 40
    shown.locator("#metric").select_option("cycles")
    shown.keyboard.press("n")
    shown.wait_for_function("document.querySelectorAll('.pane:not([hidden]) .cm-line.pinned').length > 3")
    yield "stages"
    shown.keyboard.press("p")
    for item in shown.locator("#pass-list li:not(.idle)").all():
        item.click()
        shown.wait_for_timeout(50)
        assert shown.locator("#before .cm-line").count() == shown.locator("#after .cm-line").count() > 0
    shown.locator("#pass-list li").filter(has_text="promote-register-tensors").first.click()
    yield "passes"
    shown.keyboard.press("f")
    blocks = shown.locator("#flow-graph .block").count()
    for number in range(blocks):
        assert shown.locator("#flow-graph .block.chosen").get_attribute("data-block") == str(number)
        assert shown.locator("#block-text .cm-gutter.heat .cm-gutterElement div").count() > 0
        shown.keyboard.press("ArrowDown")
    shown.locator("#flow-graph .block").nth(min(11, blocks - 1)).click()
    yield "flow"
    shown.keyboard.press("r")
    assert {"Figures", "Hottest lines", "How far the emulator is known to be a GPU", "Time to compile"} <= set(
        shown.locator(".card h2").all_inner_texts()
    )
    yield "report"
    shown.keyboard.press("l")
    layouts = shown.locator("#layout-list li").all()
    for item in layouts:
        item.click()
        assert shown.locator("#layout-picture h2").inner_text() == item.inner_text()
    swizzled = shown.locator("#layout-list li").filter(has_text="S<")
    (swizzled if swizzled.count() else shown.locator("#layout-list li")).first.click()
    yield "layouts"
    shown.keyboard.press("s")


def save(picture, path):
    """Write a PNG of few colours."""
    small = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def main():
    """Write `explorer_<kernel>_<view>_<scheme>.png`: the stages of all kernels, other views of the product."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    with browser() as started, tempfile.TemporaryDirectory() as pages:
        for name, run in KERNELS.items():
            file = Path(pages, f"{name}.html")
            file.write_text(page(collected(run())), encoding="utf-8")
            for scheme in ("light", "dark"):
                with opened(started, file.as_uri(), scheme) as shown:
                    shown.set_viewport_size(SIZE)
                    for view in walk(shown):
                        if view == "stages" or (name, view, scheme) in VIEWS:
                            shown.wait_for_timeout(300)
                            save(shown.screenshot(), folder / f"explorer_{name}_{view}_{scheme}.png")
            print(name, file.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
