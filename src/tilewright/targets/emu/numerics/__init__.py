"""Exact arithmetic of PTX over NumPy arrays: floats, approximations, conversions, integers, matrix operations.

Every function is vectorised over arrays of any shape and raises no NumPy warning state of its own: callers that
care hold `np.errstate(all="ignore")` around a run (entering it per instruction would cost more than the arithmetic).
"""
