"""Names in code spans become links: where a page says `cute.copy`, the reader gets to its entry in the reference."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

PREFIXES = ("", "tilewright.", "tilewright.cute.")
"""What pages leave out of a name, such as `tilewright.` of `cute.copy`."""
NAME = re.compile(r"(?:cutlass\.)?([a-z_]\w*(?:\.\w+)+)(?:\(.*\))?")


class CodeLinks(SphinxPostTransform):
    """Turns literals that are names of documented objects into links."""

    default_priority = 200

    def run(self, **_: Any) -> None:
        """Visit the literals of one page that are no links yet, outside headings."""
        domain = self.env.get_domain("py")
        here = self.env.current_document.docname if hasattr(self.env, "current_document") else self.env.docname
        for literal in list(self.document.findall(nodes.literal)):
            if isinstance(literal.parent, nodes.title | nodes.reference | nodes.caption):
                continue
            found = NAME.fullmatch(literal.astext())
            entry = found and self._entry(domain, found[1])
            if entry and entry.docname != here:
                target = make_refnode(self.app.builder, here, entry.docname, entry.node_id, literal.deepcopy())
                literal.replace_self(target)

    @staticmethod
    def _entry(domain: Any, name: str) -> Any:
        return next((domain.objects[p + name] for p in PREFIXES if p + name in domain.objects), None)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_post_transform(CodeLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
