"""Kernels as the field writes them, and the mistakes that are made in them."""
