"""Kernels, a family a file, written in the language; they know no framework."""
