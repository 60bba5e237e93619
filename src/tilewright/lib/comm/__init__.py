"""Collectives of a warp, a block, a cluster and a grid: device code, one scope a file."""
