"""The page: template, style, program and data in one HTML file."""

from __future__ import annotations

import base64
import html
import json
import zlib
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

_ASSETS: Final = resources.files("tilewright.tools.explorer") / "assets"


def page(data: Mapping[str, Any], *, watch: str = "") -> str:
    """The HTML of the explorer for what `collect.collected` gave.

    Args:
        data: what is shown.
        watch: where the page asks whether there is a newer one; "" for a page that stands alone.
    """
    packed = zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9)
    parts = {
        "title": html.escape(f"{data['function']} - Tilewright explorer"),
        "style": asset("explorer.css"),
        "licence": html.escape(asset("codemirror.LICENSE")),
        "watch": html.escape(watch, quote=True),
        "data": base64.b64encode(packed).decode(),
        "codemirror": asset("codemirror.js"),
        "program": asset("explorer.js"),
    }
    text = asset("explorer.html")
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return text


def asset(name: str) -> str:
    """A file of the page."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def data_of(text: str) -> dict[str, Any]:
    """What a page shows: the data that `page` was given."""
    _, _, rest = text.partition('id="data">')
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(rest.partition("<")[0])))
    return found
