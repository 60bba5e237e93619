"""Kernels of the Hopper language, each with places that can be wrong."""
