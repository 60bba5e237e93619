"""Cubins as files: ELF sections, kernels and what `.nv.info` says of them."""
