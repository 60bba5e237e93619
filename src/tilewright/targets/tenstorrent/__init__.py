"""The back end for Tenstorrent's machines: passes over `tir` functions, C++ for three roles, a functional simulator."""
