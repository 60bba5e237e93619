"""Times reduce beside its peers: `python bench/benchmark_reduce.py --help`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("reduce")
