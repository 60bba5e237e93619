"""NVIDIA's operations: asynchronous copies, warp-level matrix copies and products."""
