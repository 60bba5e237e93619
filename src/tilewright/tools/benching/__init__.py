"""Benchmarks of the kernel library: suites of cases, peers, timing, results."""
