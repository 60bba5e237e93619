"""Benchmarks: one module `bench_<topic>.py` for each topic, run by `make bench` or `python -m bench [topic ...]`.

A module has a one-line docstring, printed as the title, and a function `rows(quick: bool)` that yields
`bench.runner.Row`s. With `quick` it measures less, to show that it works. Results go to `bench/results/<topic>.json`
together with the machine they were measured on.
"""
