"""What is measured: suites of cases, read from `bench/suites.yaml`.

    suites:
      smoke:
        warmup: 3
        iterations: 20
        backends: [kernel, torch]
        cases:
          - {op: softmax_online, shapes: [[4096, 1024]], dtypes: [float32, bfloat16]}
    emulated:
      softmax_online: [[3, 1000]]

A case may have `options`, the op's own arguments; `gradient: true` among them is none: the inputs are then such that
PyTorch records the call. A suite with `clock: host` times what a call takes on the host. `only` of a suite names
backends that take long to compile, and the shapes for which they are measured: these cases come first. `emulated` has
the shapes that take a suite's place on the emulator.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tilewright.base.errors import ArgumentError

DTYPES = ("float16", "bfloat16", "float32", "float64")
BACKENDS = ("kernel", "torch.ops", "ref", "torch", "torch.compile", "triton", "quack")
"""`kernel` is this project's function, `torch.ops` its operator, `ref` its reference; the others are peers."""
OWN = BACKENDS[:3]
CLOCKS = ("device", "host")
GRADIENT = "gradient"
BACKWARD = "_backward"


@dataclass(frozen=True)
class Case:
    """One op on inputs of one shape and dtype; `options` are the op's own arguments, as pairs."""

    op: str
    shape: tuple[int, ...]
    dtype: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def label(self) -> str:
        """The op with its options."""
        given = ", ".join(f"{name}={value}" for name, value in self.options)
        return f"{self.op}({given})" if given else self.op

    @property
    def arguments(self) -> dict[str, Any]:
        """The options that are arguments of the op."""
        return {name: value for name, value in self.options if name != GRADIENT}

    @property
    def recorded(self) -> bool:
        """Whether PyTorch shall record the call for a gradient."""
        return bool(dict(self.options).get(GRADIENT))

    @property
    def size(self) -> str:
        """The shape as text: 32768x1024."""
        return "x".join(map(str, self.shape))

    def __str__(self) -> str:
        return f"{self.label} {self.size} {self.dtype}"


@dataclass(frozen=True)
class Suite:
    """Cases, and how they are timed: calls before the clock starts, calls timed (on the host series of them)."""

    name: str
    cases: tuple[Case, ...]
    backends: tuple[str, ...] = tuple(name for name in BACKENDS if name != "torch.ops")
    warmup: int = 10
    iterations: int = 100
    clock: str = "device"
    only: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)

    def backends_of(self, case: Case) -> list[str]:
        """What is measured of a case."""
        return [name for name in self.backends if name not in self.only or case.shape in self.only[name]]


def read_suites(path: Path) -> dict[str, Suite]:
    """The suites of a file.

    Raises:
        ArgumentError: the file is missing or is no file of suites, or PyYAML is not installed.
    """
    suites = _read(path).get("suites", {})
    return {name: _suite(path, name, given) for name, given in suites.items()}


def read_emulated(path: Path) -> dict[str, tuple[tuple[int, ...], ...]]:
    """The shapes of each op on the emulator; raises as `read_suites`."""
    given = _read(path).get("emulated", {})
    return {op: tuple(_shape(path, shape) for shape in shapes) for op, shapes in given.items()}


def _read(path: Path) -> dict[str, Any]:
    try:
        yaml: Any = importlib.import_module("yaml")
    except ModuleNotFoundError as error:
        raise ArgumentError("the suites need PyYAML", hint='pip install "tilewright[bench]"') from error
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}", hint="name one with --suites; a checkout has bench/suites.yaml")
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ArgumentError(f"{path} is no YAML: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("suites"), dict):
        raise ArgumentError(f"{path} has no suites", hint="see the docstring of tilewright.tools.benching.cases")
    return found


def _suite(path: Path, name: str, given: Any) -> Suite:
    if not isinstance(given, dict) or not isinstance(given.get("cases"), list):
        raise ArgumentError(f"{path}: suite {name} has no list of cases")
    unknown = given.keys() - {"cases", "backends", "warmup", "iterations", "clock", "only"}
    if unknown:
        raise ArgumentError(f"{path}: suite {name} has an unknown key {sorted(unknown)[0]!r}")
    only = {
        backend: tuple(_shape(path, shape) for shape in shapes) for backend, shapes in given.get("only", {}).items()
    }
    first = {shape for shapes in only.values() for shape in shapes}
    groups = [sorted(_cases(path, name, entry), key=lambda case: case.shape not in first) for entry in given["cases"]]
    turns = zip_longest(*groups)  # each op's first case, then each op's second: a budget that ends takes from all
    cases = tuple(case for turn in turns for case in turn if case is not None)
    made = Suite(name, cases)
    return replace(
        made,
        backends=known("backend", given.get("backends", made.backends), BACKENDS),
        warmup=int(given.get("warmup", made.warmup)),
        iterations=int(given.get("iterations", made.iterations)),
        clock=known("clock", [given.get("clock", made.clock)], CLOCKS)[0],
        only={backend: only[backend] for backend in known("backend", tuple(only), BACKENDS)},
    )


def _cases(path: Path, suite: str, entry: Any) -> list[Case]:
    wanted = {"op", "shapes", "dtypes"}
    if not isinstance(entry, dict) or not wanted <= entry.keys() <= wanted | {"options"}:
        raise ArgumentError(
            f"{path}: a case of suite {suite} is not understood", values={"case": entry},
            hint="it has op, shapes and dtypes, and may have options",
        )  # fmt: skip
    options = tuple((str(name), value) for name, value in (entry.get("options") or {}).items())
    dtypes = known("dtype", entry["dtypes"], DTYPES)
    return [
        Case(str(entry["op"]), _shape(path, shape), dtype, options) for shape in entry["shapes"] for dtype in dtypes
    ]


def _shape(path: Path, given: Any) -> tuple[int, ...]:
    if not isinstance(given, list) or not all(isinstance(item, int) and item > 0 for item in given):
        raise ArgumentError(f"{path}: a shape is a list of positive integers, not {given!r}")
    return tuple(given)


def known(kind: str, given: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    """`given`, all of them among `names`.

    Raises:
        ArgumentError: one is not.
    """
    names = tuple(names)
    for name in given:
        if name not in names:
            raise ArgumentError(f"there is no {kind} {name!r}", hint=f"one of: {', '.join(names)}")
    return tuple(given)


def of_op(cases: Sequence[Case], op: str) -> tuple[Case, ...]:
    """The cases of an op and of its backward.

    Raises:
        ArgumentError: there are none.
    """
    found = tuple(case for case in cases if case.op in (op, op + BACKWARD))
    if not found:
        ops = sorted({case.op for case in cases})
        raise ArgumentError(f"the suite has no case of {op!r}", hint=f"it has: {', '.join(ops)}")
    return found


def emulated(cases: Sequence[Case], shapes: Mapping[str, Sequence[tuple[int, ...]]]) -> tuple[Case, ...]:
    """The same ops, options and dtypes on small shapes, each once.

    Raises:
        ArgumentError: an op has no shapes.
    """
    found: dict[Case, None] = {}
    for case in cases:
        if case.op not in shapes:
            raise ArgumentError(f"{case.op} has no shapes for the emulator", hint="list some under `emulated`")
        found |= {replace(case, shape=tuple(shape)): None for shape in shapes[case.op]}
    return tuple(found)
