"""Times gemm_grouped beside its peers: `python bench/benchmark_gemm_grouped.py --help`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("gemm_grouped")
