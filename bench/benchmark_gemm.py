"""Times gemm beside its peers: `python bench/benchmark_gemm.py --help`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("gemm")
