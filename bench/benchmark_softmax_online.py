"""Times softmax_online beside its peers: `python bench/benchmark_softmax_online.py --help`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("softmax_online")
