"""Addresses, tensors, values of tensors in registers, and the layout algebra on them."""
