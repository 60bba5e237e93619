"""Passes over an epilogue's graph, by EVT's protocol: `requires()`, `call()`, `ensures()`, in an order that
`dependencies` give.

    class PassMine(EVTPassBase):
        dependencies = [PassShapeTypePropagation]
        options = {"limit": 4}

        def call(self):
            for meta in self.dag_ir.nodes_meta:
                ...

    manager = EVTPassManager(dag_ir, [PassShapeTypePropagation, (PassMine, {"limit": 8})])
    manager()
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.base.errors import NoImplementationError, PassError
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.nodes import CommNode, create_communication_node
from tilewright.lib.epilogue.tensor import Tensor
from tilewright.lib.epilogue.validation import validate

PASSES: dict[str, type[EVTPassBase]] = {}
"""Every pass whose module has been imported, by name of its class."""


class EVTPassBase:
    """Base of passes. A subclass writes `call`; `requires` and `ensures` check what it needs and what it leaves.

    `dependencies` are passes that must have run before on the graph; `options` the defaults of `self.values`.
    """

    dependencies: ClassVar[Sequence[type[EVTPassBase]]] = ()
    options: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        PASSES[cls.__name__] = cls

    def __init__(self, dag_ir: DAGIR, **options: Any) -> None:
        unknown = [name for name in options if name not in self.options]
        if unknown:
            raise PassError(
                f"Pass {self.get_name()} has no option {unknown[0]!r}.",
                hint=f"its options: {', '.join(self.options) or 'none'}",
            )
        self.dag_ir = dag_ir
        self.cc = dag_ir.cc
        self.values = {**self.options, **options}

    def requires(self) -> None:
        """Raise where the graph is not what the pass can take."""

    def call(self) -> None:
        """Change the graph, or only look at it."""
        raise NoImplementationError(
            f"__call__ is not overwritten in Pass {self.get_name()}",
            hint="write the method `call(self)` in your subclass",
        )

    def ensures(self) -> None:
        """Raise where the graph is not what the pass promises."""

    def __call__(self) -> None:
        """Run the pass."""
        self.requires()
        self.call()
        self.ensures()
        self.dag_ir.passes_run.append(self.get_name())

    @classmethod
    def get_name(cls) -> str:
        """The name of the class."""
        return cls.__name__

    def cc_specific_method(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The method `sm80_<func>`, `sm90_<func>` or `sm100_<func>` for the graph's architecture.

        Raises:
            NoImplementationError: the class has none.
        """
        name = f"sm{self.dag_ir.arch}_{func.__name__}"
        if not hasattr(self, name):
            raise NoImplementationError(
                f"func {func.__name__} is not overwritten for Sm{self.cc}", hint=f"write the method `{name}`"
            )
        method: Callable[..., Any] = getattr(self, name)
        return method

    def create_communication_node(self, name: str, kind: str, tensor: Tensor | None = None, **options: Any) -> CommNode:
        """A communication node for `dag_ir.add_node`; see `CommNode` for `scope`, `group` and `reduce_op`."""
        return create_communication_node(name, kind, tensor, **options)


Listed = type[EVTPassBase] | tuple[type[EVTPassBase], Mapping[str, Any]] | str
"""How a list names a pass: its class, the class with options, or its name."""


@dataclass(frozen=True)
class PassRun:
    """A pass that ran. `before` and `after` are the graph as text, empty without `views`."""

    name: str
    seconds: float
    before: str = ""
    after: str = ""

    @property
    def changed(self) -> bool:
        """True where the text of the graph changed."""
        return self.before != self.after

    def difference(self) -> str:
        """What changed, as a unified diff."""
        before, after = (f"{text}\n".splitlines(keepends=True) for text in (self.before, self.after))
        return "".join(difflib.unified_diff(before, after, f"before {self.name}", f"after {self.name}", n=1))


class EVTPassManager:
    """Runs passes on `dag_ir`, each after its dependencies, else in the order of the list. A pass listed twice runs
    twice.

    With `add_missing`, dependencies that are neither listed nor have run on the graph are added; without, they are an
    error. `views` keeps the graph before and after each pass in `runs`, beside the times.
    """

    def __init__(
        self, dag_ir: DAGIR, pass_list: Sequence[Listed], *, add_missing: bool = False, views: bool = False
    ) -> None:
        self.dag_ir = dag_ir
        self.views = views
        self.runs: list[PassRun] = []
        listed = [_resolved(item) for item in pass_list]
        self.sorted_passes = _ordered(_completed(listed, dag_ir, add_missing))

    def __call__(self) -> None:
        """Run them."""
        for cls, options in self.sorted_passes:
            self._run(cls, options)

    def _run(self, cls: type[EVTPassBase], options: Mapping[str, Any]) -> None:
        before = self.dag_ir.text() if self.views else ""
        start = time.perf_counter()
        try:
            cls(self.dag_ir, **options)()
            validate(self.dag_ir)
        except Exception as error:
            error.add_note(f"in {cls.__name__}, a pass over the epilogue's graph")
            raise
        seconds = time.perf_counter() - start
        self.runs.append(PassRun(cls.__name__, seconds, before, self.dag_ir.text() if self.views else ""))

    def report(self) -> str:
        """The passes that ran, with their times."""
        width = max((len(run.name) for run in self.runs), default=0)
        return "\n".join(f"{run.name:<{width}}  {run.seconds * 1e6:8.0f} us" for run in self.runs)


Occurrence = tuple[type[EVTPassBase], Mapping[str, Any]]


def _resolved(item: Listed) -> Occurrence:
    cls, options = item if isinstance(item, tuple) else (item, {})
    if isinstance(cls, str):
        if cls not in PASSES:
            raise PassError(f"No pass is named {cls}.", hint="import the module that defines it, then list it")
        cls = PASSES[cls]
    if not (isinstance(cls, type) and issubclass(cls, EVTPassBase)):
        raise PassError(
            f"The list of passes has a {type(cls).__name__}, which is no pass.",
            hint="list subclasses of EVTPassBase, or pairs of one and its options",
        )
    return cls, options


def _completed(listed: list[Occurrence], dag_ir: DAGIR, add_missing: bool) -> list[Occurrence]:
    """The list with the dependencies that are missing, each before what needs it.

    Raises:
        PassError: one is missing and `add_missing` is False.
    """
    made = list(listed)
    known = {cls for cls, _ in made}
    position = 0
    while position < len(made):
        cls = made[position][0]
        missing = next((d for d in cls.dependencies if d not in known and d.__name__ not in dag_ir.passes_run), None)
        if missing is None:
            position += 1
            continue
        if not add_missing:
            raise PassError(
                f"Error: Pass {cls.__name__} requires {missing.__name__} but {missing.__name__} was not run",
                hint=f"list {missing.__name__} too, or make the manager with add_missing=True",
            )
        made.insert(position, (missing, {}))
        known.add(missing)
    return made


def _ordered(listed: list[Occurrence]) -> list[Occurrence]:
    """Each pass after the first run of each of its dependencies; otherwise the order of the list.

    Raises:
        PassError: passes depend on each other in a circle.
    """
    waiting = list(listed)
    done: set[type[EVTPassBase]] = set()
    made: list[Occurrence] = []
    while waiting:
        pending = {cls for cls, _ in waiting}
        ready = next(
            (item for item in waiting if not any(d in pending and d not in done for d in item[0].dependencies)), None
        )
        if ready is None:
            raise PassError(
                f"Passes depend on each other in a circle: {' -> '.join(_circle(waiting))}",
                hint="remove one of these dependencies",
            )
        waiting.remove(ready)
        done.add(ready[0])
        made.append(ready)
    return made


def _circle(waiting: list[Occurrence]) -> list[str]:
    pending = {cls for cls, _ in waiting}
    path = [waiting[0][0]]
    while path.count(path[-1]) == 1:
        path.append(next(d for d in path[-1].dependencies if d in pending))
    return [cls.__name__ for cls in path[path.index(path[-1]) :]]
