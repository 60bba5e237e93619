"""Atoms as text in attributes of `cute.copy` and `cute.gemm`: `cp.async{bits=128,cache=global}`.

A name says which rule lowers the operation, the parameters what the rule needs to know. `copy` names: `universal`
(loads and stores), and those of the targets. `gemm` names: `universal` (multiply and add of one thread), and those of
the targets.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class AtomText:
    """The name and parameters of an atom; numbers are kept as text."""

    name: str
    parameters: dict[str, str] = field(default_factory=dict)

    def number(self, key: str, default: int = 0) -> int:
        return int(self.parameters.get(key, default))

    def __str__(self) -> str:
        inside = ",".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.name}{{{inside}}}" if inside else self.name


def write(name: str, **parameters: object) -> str:
    """The text of an atom."""
    return str(AtomText(name, {key: str(value) for key, value in parameters.items()}))


def read(text: str) -> AtomText:
    """The atom written `text`.

    Raises:
        ValueError: it is not of the form `name{key=value,...}`.
    """
    name, brace, rest = text.partition("{")
    if not brace:
        return AtomText(name)
    if not rest.endswith("}"):
        raise ValueError(f"atom {text!r} is not name{{key=value,...}}")
    pairs = [item.partition("=") for item in rest[:-1].split(",")]
    return AtomText(name, {key: value for key, _, value in pairs})
