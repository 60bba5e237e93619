"""Block-level code on NVIDIA's GPUs: who holds which element of a tile, and the CuTe code of each operation."""
