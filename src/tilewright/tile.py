"""Block-level code: `import tilewright.tile as tile`, in a kernel of `@cute.kernel`.

A tile is a value that a whole block holds: it is loaded from a tensor, computed with, and stored. How it lies in
threads, registers and shared memory is the back end's to say.
"""

from tilewright.lang.tiles.functions import (
    cos,
    dot,
    erf,
    exp,
    exp2,
    load,
    log,
    log2,
    max,
    maximum,
    minimum,
    persistent,
    rsqrt,
    sin,
    sqrt,
    store,
    sum,
    tanh,
    where,
    zeros,
)
from tilewright.lang.tiles.tile import Tile, full

__all__ = [
    "Tile", "cos", "dot", "erf", "exp", "exp2", "full", "load", "log", "log2", "max", "maximum", "minimum",
    "persistent", "rsqrt", "sin", "sqrt", "store", "sum", "tanh", "where", "zeros",
]  # fmt: skip
