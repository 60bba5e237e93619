"""Runs a suite: `python bench/run.py --suite smoke`, with the options of `tilewright bench`."""

from tilewright.tools.benching.standalone import main

if __name__ == "__main__":
    main()
