"""Times layernorm beside its peers: `python bench/benchmark_layernorm.py --help`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("layernorm")
