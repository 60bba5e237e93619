"""`python -m tilewright.env_check`: the same as `tilewright doctor`."""

from __future__ import annotations

import sys

from tilewright.tools.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["doctor"]
    main()
