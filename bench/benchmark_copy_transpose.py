"""Times copy_transpose beside its peers: `python bench/benchmark_copy_transpose.py --help`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("copy_transpose")
