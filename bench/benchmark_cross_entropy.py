"""Times cross_entropy beside its peers: `python bench/benchmark_cross_entropy.py --help`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("cross_entropy")
