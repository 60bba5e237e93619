"""The processor that exported host code is for: `--host-target`.

The preset tags and the long form are those of CuTe DSL's documentation ("Host Cross-Compilation for AArch64").
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final

from tilewright.base.errors import CompileError

PRESETS: Final = {"linux-aarch64": "aarch64-unknown-linux-gnu", "linux-x86_64": "x86_64-unknown-linux-gnu"}
_FORM: Final = "llvm -mtriple=<triple> [-mcpu=<cpu>] [-mattr=<features>]"
_FLAGS: Final = {"-mtriple": "triple", "-mcpu": "cpu", "-mattr": "features"}
_OLDEST: Final = {"x86_64": "x86-64", "aarch64": "generic"}


@dataclass(frozen=True)
class HostTarget:
    """An LLVM triple, a processor (one that every machine of the family is, by default) and its features."""

    triple: str
    cpu: str
    features: str = ""


def portable(triple: str) -> HostTarget:
    """The oldest processor of the family that `triple` names.

    Raises:
        CompileError: no host code is made for that family or system.
    """
    machine = triple.partition("-")[0]
    if machine not in _OLDEST or "-linux" not in triple:
        raise _refusal(triple, f"host code is made for {' and '.join(_OLDEST)} under Linux")
    return HostTarget(triple, _OLDEST[machine])


def parse_host_target(text: str) -> HostTarget:
    """`linux-aarch64`, or `llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1 -mattr=+lse`.

    Raises:
        CompileError: it is neither, or names a processor that there is no host code for.
    """
    if text in PRESETS:
        return portable(PRESETS[text])
    word, *flags = shlex.split(text) or [""]
    if word != "llvm":
        raise _refusal(text, f"give one of {', '.join(PRESETS)}, or {_FORM}")
    given: dict[str, str] = {}
    for flag in flags:
        name, _, value = flag.partition("=")
        if name not in _FLAGS or not value or _FLAGS[name] in given:
            raise _refusal(text, f"{flag!r} is not of the form {_FORM}")
        given[_FLAGS[name]] = value
    if "triple" not in given:
        raise _refusal(text, f"-mtriple= is missing: {_FORM}")
    target = portable(given["triple"])
    return HostTarget(target.triple, given.get("cpu", target.cpu), given.get("features", ""))


def _refusal(text: str, hint: str) -> CompileError:
    return CompileError("no such host target", values={"host-target": text or "nothing"}, hint=hint)
