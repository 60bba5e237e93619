"""Times reduce_sum beside its peers: `python bench/benchmark_reduce_sum.py --help`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("reduce_sum")
