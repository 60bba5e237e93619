"""References: each op by its definition, in PyTorch and in NumPy."""
