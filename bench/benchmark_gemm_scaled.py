"""Times gemm_scaled beside its peers: `python bench/benchmark_gemm_scaled.py --help`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("gemm_scaled")
