"""Time stamps that kernels take of themselves."""
