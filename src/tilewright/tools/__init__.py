"""The command line and the tools behind it."""
