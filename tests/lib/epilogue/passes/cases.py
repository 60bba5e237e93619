"""What tests of passes share: graphs as written, and after named passes."""

import numpy as np

from tilewright.epilogue import EVTPassManager, parse

SHAPE = (2, 16, 8)
RANDOM = np.random.default_rng(3)


def whole(*shape, dtype=np.float32):
    """Small whole numbers."""
    return RANDOM.integers(-3, 4, shape or SHAPE).astype(dtype)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape or SHAPE, dtype)


def graph(function, examples, *passes, cc=90):
    """The graph of an epilogue after the passes, whose dependencies are added."""
    dag = parse(function, {"accum": whole(), "D": zeros(), **examples}, cc)
    EVTPassManager(dag, passes, add_missing=True)()
    return dag


def fns(dag):
    """The functions of the compute nodes."""
    return [meta.fn for meta in dag.nodes_meta if meta.op == "compute"]
