"""From a function to the graph of an epilogue: `trace`.

Three ways to write one: EVT's (assign to variables, return their names), a function that returns a dict of outputs, and
a lambda, whose value is D.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from tilewright.base.errors import EpilogueError, EpilogueSyntaxError
from tilewright.base.location import SourceLocation
from tilewright.lang.locations import ErrorsLocated, place_of, user_location
from tilewright.lang.numbers.numeric import Float32
from tilewright.lib.epilogue.authoring import Authored, authored, from_text, unbound
from tilewright.lib.epilogue.builder import GraphBuilder
from tilewright.lib.epilogue.capability import ARCHITECTURES, architecture_of
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.nodes import CommNode, Element
from tilewright.lib.epilogue.passes import DEFAULT_PASSES, PassFixElementD
from tilewright.lib.epilogue.passes.pass_manager import EVTPassManager, Listed
from tilewright.lib.epilogue.proxies import Value

NEWEST = 90
"""The capability for which epilogues are traced where none is given."""


def trace(
    fn: Callable[..., Any] | str,
    examples: Mapping[str, Any],
    cc: int | None = None,
    additional_passes: Sequence[Listed] = (),
    *,
    element_compute: Element = Float32,
) -> DAGIR:
    """The graph of an epilogue after the default passes and `additional_passes`.

    Those run, as far as their dependencies let them, when the graph is in the accumulator's shape and before
    implementations are chosen, so that nodes that they add get one too.

    Args:
        fn: the epilogue, or its source text.
        examples: arrays, tensors or numbers by name, of operands and of outputs; None for an operand that is absent.
        cc: compute capability of the device.
        additional_passes: classes of passes, or pairs of a class and its options.
        element_compute: the type in which the epilogue computes.

    Raises:
        EpilogueError: the epilogue is wrong; see docs/epilogues.md for the rules.
    """
    dag = parse(fn, examples, cc, element_compute=element_compute)
    place = DEFAULT_PASSES.index(PassFixElementD)
    EVTPassManager(dag, [*DEFAULT_PASSES[:place], *additional_passes, *DEFAULT_PASSES[place:]])()
    return dag


def parse(
    fn: Callable[..., Any] | str,
    examples: Mapping[str, Any],
    cc: int | None = None,
    *,
    element_compute: Element = Float32,
) -> DAGIR:
    """The graph as it was written, before any pass."""
    capability = NEWEST if cc is None else cc
    architecture_of(capability)
    plain, passed = (from_text(fn), {}) if isinstance(fn, str) else unbound(fn)
    recorder = _Recorder(examples)
    function = authored(plain, recorder)
    reserved = {*function.variables, *inspect.signature(plain).parameters}
    recorder.builder = GraphBuilder(capability, element_compute, reserved)
    returned = _trace_root(function, {**passed, **_parameters(plain, recorder, passed)})
    recorder.finish(returned, function)
    return recorder.builder.dag


def _trace_root(function: Authored, parameters: dict[str, Any]) -> Any:
    """Run the user's function; frames outside this one are no part of the epilogue.

    Raises:
        EpilogueSyntaxError: it reads a name that nothing defines.
    """
    with ErrorsLocated():
        try:
            return function.fn(**parameters)
        except NameError as error:
            quoted = re.search("'(.+?)'", str(error))  # an UnboundLocalError has no name of its own
            if quoted is None:
                raise
            raise EpilogueSyntaxError(
                f"Variable '{quoted[1]}' is undefined.",
                location=place_of(error),
                hint="it is neither an argument, nor assigned before, nor known to the function's module",
            ) from error


def _parameters(fn: FunctionType, recorder: _Recorder, passed: Mapping[str, Any]) -> dict[str, Any]:
    """What each parameter is while tracing: a value, or Python's own where its example is None or it has a default."""
    place = SourceLocation(fn.__code__.co_filename, fn.__code__.co_firstlineno)
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(fn).parameters.items():
        if name in passed:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise EpilogueSyntaxError(
                f"Parameter '{name}' of the epilogue has no name that examples could use.",
                location=place,
                hint="give each operand a parameter of its own, without *, ** and /",
            )
        if name not in recorder.examples and parameter.default is not parameter.empty:
            continue
        if name not in recorder.examples:
            raise missing_example(name, place)
        found[name] = recorder.operand(name, place)
    if "accum" not in found:
        raise EpilogueSyntaxError(
            "Cannot find 'accum' in the argument list.",
            location=place,
            hint="accum is the product that the epilogue follows, or the first operand where there is no product",
        )
    return found


def missing_example(name: str, place: SourceLocation | None) -> EpilogueError:
    """The error for an operand or output without an example."""
    return EpilogueError(
        f"Example input for {name} is not provided.",
        location=place,
        hint="examples has an array, a tensor or a number for every operand and every output",
    )


class _Recorder:
    """What the rewritten function calls: it turns assignments into stores, and the return into outputs."""

    builder: GraphBuilder

    def __init__(self, examples: Mapping[str, Any]) -> None:
        self.examples = examples
        self.names: Any = None
        self.place: SourceLocation | None = None

    def operand(self, name: str, place: SourceLocation) -> Value | None:
        """The value of a parameter; None where the operand is absent."""
        example = self.examples[name]
        return None if example is None else Value(self.builder, self.builder.load(name, example, place))

    def assigned(self, names: Any, value: Any) -> Any:
        """The value that the variable, or the variables, get."""
        if isinstance(names, tuple):
            values = tuple(value)
            return tuple(map(self.assigned, names, values)) if len(names) == len(values) else values
        if names is None or not isinstance(value, Value):
            return value
        return Value(self.builder, self.builder.store(names, value.name))

    def returned(self, names: Any, value: Any) -> Any:
        """Remember how the value was written."""
        self.names, self.place = names, user_location(2)
        return value

    def finish(self, value: Any, function: Authored) -> None:
        """Make what was returned outputs.

        Raises:
            EpilogueSyntaxError: it names none, or breaks EVT's rules of D.
        """
        if isinstance(value, dict):
            for name, item in value.items():
                self._output(name, item)
            return
        if function.is_lambda and isinstance(value, Value):
            self._output("D", value)
            return
        names = (self.names,) if isinstance(self.names, str) else self.names
        values = value if isinstance(value, tuple | list) else (value,)
        if value is None or not function.named or names is None or len(names) != len(values):
            raise self._not_named(value, function)
        for name, item in zip(names, values, strict=True):
            self._output(name, item)
        self._check_d()

    def _not_named(self, value: Any, function: Authored) -> EpilogueSyntaxError:
        if value is None:
            return EpilogueSyntaxError(
                "The epilogue returns nothing.", location=self.place, hint="return its outputs: `return D, F`"
            )
        if not function.named:
            return EpilogueSyntaxError(
                "The epilogue's outputs have no names, since its source is not available.",
                hint="return a dict of outputs by name",
            )
        return EpilogueSyntaxError(
            "Return value cannot be an expression",
            location=self.place,
            hint="assign it to a variable, here D, and return that; or return a dict of outputs by name",
        )

    def _output(self, name: Any, value: Any) -> None:
        if not isinstance(name, str) or not isinstance(value, Value):
            raise EpilogueSyntaxError(
                f"Output {name} of the epilogue is a {type(value).__name__}, which is no value of it.",
                location=self.place,
                hint="return values that are computed from the arguments",
            )
        if name not in self.examples:
            raise missing_example(name, self.place)
        if value.name != name:
            value = Value(self.builder, self.builder.store(name, value.name, value.node.location or self.place))
        self.builder.output(name, self.examples[name])

    def _check_d(self) -> None:
        """EVT's rules for Sm90 and newer: D is stored in the place of C, so it is there, and nothing reads it."""
        dag = self.builder.dag
        if ARCHITECTURES[dag.cc] < 90:
            return
        if "D" not in dag.return_names:
            raise EpilogueSyntaxError(
                "Sm90+ EVT requires the epilogue to have a returned tensor D, "
                "but the variable 'D' is not found in the return values.",
                location=self.place,
                hint="name the main output D, or return a dict, whose outputs may have any names",
            )
        users = [user for user in dag.get_users("D") if not isinstance(dag.get_node_meta(user), CommNode)]
        if users:
            raise EpilogueError(
                "On SM90 or higher, D is expected to be a output node with 0 users "
                f"to enable smem reuse between C and D, but got {len(users)}",
                location=dag.get_node_meta(users[0]).location,
                hint="compute the value under another name and assign it to D last",
            )
