"""benchmark_softmax_online.py by the op's other name."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main("softmax_online")
