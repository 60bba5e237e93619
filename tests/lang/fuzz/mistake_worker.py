"""Runs programs with mistakes in a process of its own: reads seeds, a line each, and says how each ended, as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import tilewright
from tests.lang.fuzz import harness
from tests.lang.fuzz.harness import code_of, inputs, run_compiled, run_model
from tests.lang.fuzz.mistakes import Mistake, mistake
from tilewright import TilewrightError
from tilewright.base import settings

PACKAGE = str(Path(tilewright.__file__).parent)


def outcome(seed: int) -> dict[str, Any]:
    """How the program ended: `ours` with file and line, `raw` with a traceback, `result` (and whether it is right)."""
    case = mistake(seed)
    name = f"<mistake {seed}>"
    start = time.process_time()
    try:
        code = code_of(case.text, name)
    except SyntaxError:
        return {"kind": "syntax", "seconds": 0.0}
    given = inputs(seed)
    try:
        found = run_compiled(code, given, 1, "emu")
    except TilewrightError as error:
        places = error.location.chain() if error.location else ()
        files = (name, harness.__file__)  # a fault while it runs names the innermost line, of a helper too
        lines = [place.line for place in places if place.file in files]
        return {"kind": "ours", "message": str(error), "lines": lines, "seconds": time.process_time() - start}
    except BaseException as error:  # noqa: BLE001  (reported)
        return _raw(error) | {"seconds": time.process_time() - start}
    return {"kind": "result", "seconds": time.process_time() - start, "wrong": _wrong(case, name, found)}


def _raw(error: BaseException) -> dict[str, Any]:
    last = traceback.extract_tb(error.__traceback__)[-1]
    by_user = not last.filename.startswith(PACKAGE) and isinstance(error, (RuntimeError, AssertionError))
    return {"kind": "user" if by_user else "raw", "message": traceback.format_exc()[-3000:]}


def _wrong(case: Mistake, name: str, found: Any) -> str:
    """Where the result is not that of plain Python; empty too where plain Python has none."""
    try:
        expected = run_model(code_of(case.text, name), inputs(int(name.split()[1][:-1])), 1)
    except BaseException as error:  # noqa: BLE001  (no result to compare)
        return "" if not isinstance(error, KeyboardInterrupt) else "interrupted"
    for right, got in ((expected.ints, found.ints), (expected.floats, found.floats)):
        differ = np.argwhere(~((right == got) | (np.isnan(right) & np.isnan(got))))
        if len(differ):
            lane, column = differ[0]
            return f"[{lane}, {column}]: plain Python {right[lane, column]}, compiled {got[lane, column]}"
    return ""


def main() -> None:
    warnings.simplefilter("ignore")
    answers = sys.stdout
    with settings.scope(target="emu", arch="sm_90a"):
        for line in sys.stdin:
            with contextlib.redirect_stdout(io.StringIO()):
                said = outcome(int(line))
            print(json.dumps(said), file=answers, flush=True)


if __name__ == "__main__":
    main()
