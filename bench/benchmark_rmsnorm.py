"""Times rmsnorm beside its peers: `python bench/benchmark_rmsnorm.py --help`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("rmsnorm")
