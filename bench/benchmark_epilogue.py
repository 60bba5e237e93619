"""Times epilogue beside its peers: `python bench/benchmark_epilogue.py --help`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("epilogue")
