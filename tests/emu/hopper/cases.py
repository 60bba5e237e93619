"""All Hopper kernels with mistakes."""

from tests.emu.hopper import clusters, copies, products

CASES = (*copies.CASES, *products.CASES, *clusters.CASES)
