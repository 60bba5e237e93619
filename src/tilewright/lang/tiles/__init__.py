"""Tiles: the values of block-level code, and what makes them from memory and from each other."""
