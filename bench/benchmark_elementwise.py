"""Times elementwise beside its peers: `python bench/benchmark_elementwise.py --help`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("elementwise")
