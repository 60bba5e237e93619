"""Tilewright: the open compiler for the CuTe DSL."""
