"""How a mutant ends: refused by the verifier or by MLIR, or run on the emulator and by the interpreter."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tests.passes.cute_interpreter import Fault, Undefined, run
from tests.passes.mutants import Mutate, Snapshot
from tests.passes.mutated_kernels import CASES
from tilewright import PassError
from tilewright.base.errors import TilewrightError
from tilewright.emulate import observe

STEPS = 3_000_000
LONG = ("too many steps", "too many threads")


@dataclass
class Ending:
    """`kind` is `unchanged`, `verifier`, `mlir`, `equal`, `fault`, `undefined`, or what is wrong: then `wrong`."""

    kind: str
    case: str
    change: str
    detail: str = ""
    text: str = ""

    @property
    def wrong(self) -> bool:
        return self.kind not in ("unchanged", "verifier", "mlir", "equal", "fault", "undefined")


def end_of(seed: int) -> Ending:
    """Make the mutant of a seed, and see how it ends."""
    dice = random.Random(seed)
    name = dice.choice(sorted(CASES))
    function, arrays, numbers = CASES[name]
    x, y = arrays()
    mutate, snapshot = Mutate(dice), Snapshot()
    first = dice.choice(("promote-register-tensors", "annotate-loops"))
    passes = [cutlass.before(first, mutate), cutlass.before(first, snapshot)]

    def ending(kind: str, detail: object = "") -> Ending:
        return Ending(kind, name, mutate.done, str(detail), getattr(snapshot, "text", ""))

    try:
        compiled = cute.compile(function, x, y, *map(cutlass.Int32, numbers.values()), passes=passes)
    except PassError as error:
        return ending(_refusal(error), error)
    except TilewrightError as error:
        return ending("refused late", f"{type(error).__name__}: {error}")
    if not mutate.done:
        return ending("unchanged")
    try:
        wanted = run(snapshot.text, {"x": x, "y": y}, numbers)
    except Fault as fault:
        return ending(_after_fault(compiled, snapshot.text, x, y, numbers), fault)
    except Undefined as reason:
        if str(reason) not in LONG:
            _emulate(compiled, x, y, numbers)
        return ending("undefined", reason)
    errors = _emulate(compiled, x, y, numbers)
    if errors:
        return ending("found by the emulator alone", errors[0])
    if not _same(wanted, x, y):
        return ending("another result", f"{wanted['y'].ravel()[:16]} against {y.ravel()[:16]}")
    return ending("equal")


def _refusal(error: PassError) -> str:
    """Point by point: the pass, the operation, the user's line."""
    if "pass mutate left a module that is not valid" in error.message:
        named = bool(
            re.search(r"'\w+\.[\w.]+' op|block with no terminator|operand #|does not dominate", error.values["reason"])
        )
        return "mlir" if named and _placed(error) else "refused without a place"
    if "against the rules of the dialect" not in error.message:
        return "refused late"
    named = error.message.startswith("pass mutate left ") and "operation" in error.values
    return "verifier" if named and _placed(error) else "refused without a place"


def _placed(error: PassError) -> bool:
    return error.location is not None and error.location.file.endswith("mutated_kernels.py")


def _emulate(compiled, x, y, numbers) -> list:
    """Findings of the emulator."""
    with observe(checks="collect", limit=STEPS) as reports:
        try:
            compiled(x, y, *numbers.values())
        except TilewrightError as error:
            return [error]
    return [finding for report in reports for finding in (*report.errors, *report.races)]


def _after_fault(compiled, text, x, y, numbers) -> str:
    """The emulator must find the access too, unless nothing hung on it."""
    given = {"x": x.copy(), "y": y.copy()}
    if _emulate(compiled, x, y, numbers):
        return "fault"
    try:
        wanted = run(text, given, numbers, lenient=True)
    except (Fault, Undefined):
        return "missed by the emulator"
    return "fault" if _same(wanted, x, y) else "missed by the emulator"


def _same(wanted, x, y) -> bool:
    return all(np.array_equal(wanted[key], got, equal_nan=True) for key, got in (("x", x), ("y", y)))
