"""All Hopper kernels with mistakes."""

from tests.emu.hopper import clusters, copies, maps, products

CASES = (*copies.CASES, *products.CASES, *clusters.CASES, *maps.CASES)
