"""Native host code: compiling, loading and calling it."""
