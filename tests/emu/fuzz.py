"""Damaged PTX: truncated, with bytes changed, words exchanged, lines lost or doubled, numbers replaced."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np

from tests.emu import forms
from tilewright.base.errors import TilewrightError
from tilewright.targets.emu import Buffer, Options, Program, launch

STEPS = (0, 0, 1, 4, 16, 0x10001, 0x3F800000)
STARTS = (0, 1, 2, 16, 64, 1024, 0x3C003C00, 0x7FC00000, 0xFFFFFFFF, 0x12345678)
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
ENDINGS = ("ret", "exit", "trap", "brkpt")
LIMIT = 1000
LARGEST = 6000


def sources() -> list[str]:
    """One text for each kernel of the test data: the kernel with the module's head and variables."""
    texts = []
    for path in sorted(FOLDER.glob("*/*.ptx")):
        text = path.read_text()
        head, *kernels = re.split(r"(?m)^(?=\.visible \.entry)", text)
        texts += [head + kernel for kernel in kernels if len(kernel) < LARGEST]
    return texts + form_texts(len(texts))


def form_texts(count: int, each: int = 8) -> list[str]:
    """Kernels of some instructions of any form, their registers from the thread's number, their addresses valid."""
    rng = random.Random(1)
    every = [form for form in forms.forms() if not form.startswith(ENDINGS)]
    texts = []
    for _ in range(count):
        body = [prologue(rng), *rng.sample(every, each), "st.global.u32 [d79], r0;"]
        texts.append(forms.HEAD + forms.kernel("k", "\n".join(body)).replace(".align 64 .b8 pa[256]", ".u64 pa"))
    return texts


def prologue(rng: random.Random) -> str:
    """Values for the registers that the forms read: d9, d8 point to global memory, r9, r8, r7 to shared memory."""
    lines = ["ld.param.u64 d79, [pa];", "mov.u32 r299, %tid.x;"]
    for k in (*range(60), *range(200, 204), 250):
        lines.append(f"mad.lo.u32 r{k}, r299, {rng.choice(STEPS)}, {rng.choice(STARTS)};")
    lines += [f"cvt.u16.u32 h{k}, r{k};" for k in range(12)]
    lines += [f"cvt.u64.u32 d{k}, r{k + 3};" for k in range(12)]
    lines += [f"setp.gt.u32 p{k}, r{k}, r{k + 1};" for k in range(4)]
    lines += ["mov.b128 q0, {d1, d2};", "mov.b128 q1, {d3, d4};", "mov.b128 q2, {d5, d6};"]
    lines += ["add.u64 d9, d79, 256;", "add.u64 d8, d79, 1024;", "mov.u32 r9, sh;", "add.u32 r8, r9, 1024;"]
    return "\n".join([*lines, "add.u32 r7, r9, 1536;", "mbarrier.init.shared.b64 [r7], 1;"])


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
