"""Printing by the running program."""
