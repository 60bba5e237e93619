"""A graph for tests of passes, and what a user looks at one with."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.passes import PassPreprocessRed, PassShapeTypePropagation
from tilewright.lib.epilogue.passes.pass_manager import EVTPassManager
from tilewright.lib.epilogue.proxies import relu
from tilewright.lib.epilogue.proxies import sum as reduce_sum
from tilewright.lib.epilogue.trace import parse

SHAPE = (2, 16, 8)
"""(L, M, N) of the graph of `create_test_dag`."""


def _epilogue(accum: Any, C: Any, alpha: Any, bias: Any) -> Any:
    scaled = alpha * accum + C
    grad_bias = reduce_sum(scaled, dim=(0, 1))
    D = relu(scaled + bias)
    return D, grad_bias


def create_test_dag(cc: int = 90) -> DAGIR:
    """A small graph whose shapes are known: loads of four kinds, two compute chains, a reduction `grad_bias`, D.

    `dag.evaluate(accum=, C=, alpha=, bias=)` gives its outputs before and after a pass; `create_test_arrays` has
    arrays for it.
    """
    arrays = create_test_arrays()
    outputs = {"D": np.zeros(SHAPE, np.float32), "grad_bias": np.zeros((1, SHAPE[2]), np.float32)}
    dag = parse(_epilogue, {**arrays, **outputs}, cc)
    EVTPassManager(dag, [PassPreprocessRed, PassShapeTypePropagation])()
    return dag


def create_test_arrays(seed: int = 0) -> dict[str, Any]:
    """Small whole numbers for the operands of `create_test_dag`, so that results are exact."""
    random = np.random.default_rng(seed)
    row = random.integers(-4, 5, SHAPE[2:]).astype(np.float32)
    full = [random.integers(-4, 5, SHAPE).astype(np.float32) for _ in range(2)]
    return {"accum": full[0], "C": full[1], "alpha": 2.0, "bias": row}


def debug_pass(dag_ir: DAGIR) -> None:
    """Print how many nodes a graph has, and the name and `op` of each."""
    print(f"Nodes: {len(dag_ir.nodes_meta)}")
    for node in dag_ir.nodes_meta:
        print(f"  {node.name}: {node.op}")
