"""Damaged PTX: truncated, with bytes changed, words exchanged, lines lost or doubled, numbers replaced."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np

from tilewright.base.errors import TilewrightError
from tilewright.targets.emu import Buffer, Options, Program, launch

FOLDER = Path(__file__).parent / "data"
NUMBER = re.compile(r"(?<![\w.%$])\d+(?![\w.])")
WORD = re.compile(r"[%$.\w]+")
ODD = [
    "0",
    "1",
    "-1",
    "31",
    "32",
    "33",
    "255",
    "4096",
    "65536",
    "4294967295",
    "18446744073709551615",
    "0x7fffffff",
    "1.5",
    "0f7FC00000",
]
LIMIT = 1000
LARGEST = 6000


def sources() -> list[str]:
    """One text for each kernel of the test data: the kernel with the module's head and variables."""
    texts = []
    for path in sorted(FOLDER.glob("*/*.ptx")):
        text = path.read_text()
        head, *kernels = re.split(r"(?m)^(?=\.visible \.entry)", text)
        texts += [head + kernel for kernel in kernels if len(kernel) < LARGEST]
    return texts


def damaged(text: str, rng: random.Random) -> str:
    """A text with one to three faults."""
    for _ in range(rng.randint(1, 3)):
        text = rng.choice(FAULTS)(text, rng)
    return text


def _truncate(text, rng):
    return text[: rng.randrange(len(text) + 1)]


def _change_bytes(text, rng):
    letters = list(text)
    for _ in range(rng.randint(1, 8)):
        if letters:
            letters[rng.randrange(len(letters))] = chr(rng.choice([rng.randrange(32, 127), 0, 10, 0x1F600]))
    return "".join(letters)


def _replace_number(text, rng):
    found = list(NUMBER.finditer(text))
    if not found:
        return text
    at = rng.choice(found)
    return text[: at.start()] + rng.choice(ODD) + text[at.end() :]


def _exchange_words(text, rng):
    found = list(WORD.finditer(text))
    if len(found) < 2:
        return text
    a, b = sorted(rng.sample(found, 2), key=lambda m: m.start())
    return text[: a.start()] + b.group() + text[a.end() : b.start()] + a.group() + text[b.end() :]


def _lines(text, rng):
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at = rng.randrange(len(lines))
    action = rng.randrange(3)
    if action == 0:
        del lines[at]
    elif action == 1:
        lines.insert(rng.randrange(len(lines)), lines[at])
    else:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    return "".join(lines)


FAULTS = (_truncate, _change_bytes, _replace_number, _replace_number, _exchange_words, _lines, _lines)


def attempt(text: str, checks: bool) -> str:
    """Load a text and run its first kernel; the first line of the error, or an empty string."""
    memory = np.zeros(65536, np.uint8)
    base = int(memory.ctypes.data)
    try:
        program = Program(text)
        for name in program.kernels[:1]:
            image = program.image(name, checks)
            params = [
                (base + 8192 * k).to_bytes(8, "little")
                if v.size == 8
                else (32).to_bytes(max(v.size, 1), "little")[: v.size]
                for k, v in enumerate(image.kernel.params)
            ]
            buffers = [Buffer(base, memory.nbytes)]
            launch(program, name, 2, 32, params, buffers=buffers, options=Options(checks, limit=LIMIT, echo=False))
    except TilewrightError as error:
        return str(error)
    return ""


def run(count: int, seed: int) -> dict[str, int]:
    """Outcomes of `count` damaged texts, by the beginning of the message."""
    texts = sources()
    outcomes: dict[str, int] = {}
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        text = damaged(rng.choice(texts), rng)
        outcome = attempt(text, bool(number % 2)).split("\n")[0]
        key = re.sub(r"\d+", "N", outcome)[:60] or "runs"
        outcomes[key] = outcomes.get(key, 0) + 1
    return outcomes
