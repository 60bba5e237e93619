"""Machines that run compiled kernels, and their registry."""
