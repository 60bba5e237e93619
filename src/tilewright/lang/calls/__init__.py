"""Calls from host code to kernels and operations: parameters, annotations, launches."""
