"""AST rewriting: control flow of the user's function becomes calls of `tilewright.lang.control`."""

from tilewright.lang.rewrite.rewriter import is_region, is_rewritten, rewrite, text
from tilewright.lang.rewrite.source import Source, capture

__all__ = ["Source", "capture", "is_region", "is_rewritten", "rewrite", "text"]
