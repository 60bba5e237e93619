"""How the arguments of a call become one value for each parameter of a compiled function."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, cast

from tilewright.arguments.aggregates import Keywords, check_constant, check_fixed, is_aggregate, members
from tilewright.arguments.binding import BoundCall, converted
from tilewright.arguments.dlpack import refuse_lazy
from tilewright.arguments.objects import adapted
from tilewright.arguments.runtime_tensor import RuntimeTensor
from tilewright.base.errors import ArgumentError
from tilewright.base.signature import Signature, TensorParam, TupleParam
from tilewright.lang.calls.parameters import evaluated_annotations, gathering, is_constexpr
from tilewright.lang.diagnostics.tracebacks import OnlyUserFrames
from tilewright.lang.locations import ErrorsLocated

_DATA = (bool, int, float, str, bytes, tuple, list, type, type(None))


class CallForm:
    """The parameters of a compiled function, and what it was compiled for.

    Attributes:
        params: what a call passes.
        constants: the arguments that are baked in.
        takes_native: whether native code may take the arguments of a call as they are.
    """

    def __init__(self, signature: Signature, call: BoundCall, function: FunctionType) -> None:
        self.name = signature.name
        self.params = [param for param in signature.params if not getattr(param, "env", False)]
        self._from_environment = {param.name for param in signature.params} - {param.name for param in self.params}
        self._function = function
        self.constants = call.constants
        self._count = len(call.passed())
        self._bound = call.bound
        kinds = {kind: name for name, kind in gathering(function).items()}
        self._gathers = kinds.get(inspect.Parameter.VAR_POSITIONAL, "")
        self._keywords = kinds.get(inspect.Parameter.VAR_KEYWORD, "")
        self._fixed = call.fixed()
        self._names = [name for name, value in call.runtime.items()]
        self._compiled_keywords: dict[str, Any] = (call.runtime | call.constants).get(self._keywords, {})
        self._lengths = {name: len(value) for name, value in call.runtime.items() if isinstance(value, (tuple, list))}
        self.takes_native = _native_check(self.params)

    def ordered(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call as one value for each parameter.

        Raises:
            ArgumentError: they are not those of the compiled function.
        """
        if not kwargs and len(args) == self._count and not self._gathers:
            return args
        with OnlyUserFrames(), ErrorsLocated():
            return tuple(self._bind(args, kwargs))

    def check(self, values: Sequence[Any]) -> None:
        """Refuse values whose baked-in parts are others than those compiled for."""
        for param, value in zip(self.params, values, strict=False):
            if param.name in self._lengths:
                self._check_length(param.name, value)
            if param.name in self._fixed:
                check_fixed(cast(TupleParam, param), value, self._fixed[param.name])

    def converted(self, values: Sequence[Any]) -> list[Any]:
        """The values as a device takes them."""
        return [converted(value, param) for value, param in zip(values, self.params, strict=True)]

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Arguments by name and with defaults, in the order of the signature.

        A call may give those that are not annotated `Constexpr` (the ones compiled as None among them), all of them, or
        only those of run time.
        """
        parameters = inspect.signature(self._function).parameters
        left_out = self._from_environment | {self._keywords}
        every = [name for place, name in enumerate(parameters) if place >= self._bound and name not in left_out]
        kinds = evaluated_annotations(self._function)
        orders = [
            [name for name in every if not is_constexpr(kinds.get(name))],
            every,
            [name for name in every if name in self._names],
        ]
        refusals: list[ArgumentError] = []
        for order in orders:
            try:
                return self._ordered(order, args, kwargs, parameters)
            except ArgumentError as error:
                refusals.append(error)
        # The longest form that the arguments do not exceed is the one that was meant.
        meant = max(range(3), key=lambda form: (len(orders[form]) <= len(args), -abs(len(orders[form]) - len(args))))
        raise refusals[meant]

    def _ordered(
        self, order: list[str], args: tuple[Any, ...], kwargs: Mapping[str, Any], parameters: Mapping[str, Any]
    ) -> list[Any]:
        """The values of run time, where `args` are those of the parameters in `order`."""
        if self._gathers in order:
            place = order.index(self._gathers)
            args = (*args[:place], tuple(args[place:]))
        if len(args) > len(order):
            raise ArgumentError(
                f"{self.name} takes {self._count} arguments, got {len(args)}", values={"parameters": ", ".join(order)}
            )
        given = dict(zip(order, args, strict=False)) | dict(kwargs)
        unknown = given.keys() - parameters.keys()
        if self._keywords:
            taken = {name: given.pop(name) for name in kwargs if name in unknown}
            self._take_keywords(taken, given)
            unknown = set()
        if unknown:
            raise ArgumentError(f"{self.name} has no parameter {sorted(unknown)[0]!r}")
        for name, constant in self.constants.items():
            # Functions and objects have no equality to rely on; a thing where there was nothing is another program.
            if name in given and (isinstance(given[name], _DATA) or constant is None):
                check_constant(name, constant, adapted(given[name]))
        return [self._value(name, given, parameters) for name in self._passed_names()]

    def _take_keywords(self, taken: dict[str, Any], given: dict[str, Any]) -> None:
        """What `**kwargs` of the function gets: the names that it was compiled for, compile-time ones if repeated."""
        compiled = self._compiled_keywords
        passed = self._keywords in self._names
        if taken.keys() - compiled.keys() or (passed and compiled.keys() != taken.keys()):
            raise ArgumentError(
                f"{self.name} was compiled for other keywords of `**{self._keywords}`",
                values={"compiled for": ", ".join(compiled) or "none", "passed": ", ".join(taken) or "none"},
                hint="compile again for these keywords",
            )
        if passed:
            given[self._keywords] = Keywords({name: taken[name] for name in compiled})
            return
        for name, value in taken.items():
            if isinstance(value, _DATA):
                check_constant(f"{self._keywords}.{name}", compiled[name], adapted(value))

    def _check_length(self, name: str, value: Any) -> None:
        if isinstance(value, (tuple, list)) and len(value) != self._lengths[name]:
            raise ArgumentError(
                f"{name} of {self.name} has {len(value)} items",
                values={"compiled for": f"{self._lengths[name]} items"},
                hint="compile again for another number of items",
            )

    def _passed_names(self) -> list[str]:
        known = {param.name for param in self.params}
        return [name for name in self._names if name in known]

    def _value(self, name: str, given: dict[str, Any], parameters: Mapping[str, Any]) -> Any:
        if name in given:
            return given[name]
        if parameters[name].default is not parameters[name].empty:
            return parameters[name].default
        raise ArgumentError(
            f"{self.name} needs an argument for {name!r}", values={"parameters": ", ".join(self._passed_names())}
        )


_IS_NEG = operator.methodcaller("is_neg")  # this way it takes a third of the time of a loop


def _native_check(params: Sequence[Any]) -> Callable[[tuple[Any, ...]], bool]:
    """A function that says whether native code may take arguments as they are: none was wrapped by `from_dlpack`.

    It refuses torch's lazily negated tensors; native code does not see that they are.
    """
    # Where torch tensors may stand, in tuples too.
    pick = _picker([place for place, item in enumerate(params) if isinstance(item, TensorParam | TupleParam)])

    def takes_native(args: tuple[Any, ...]) -> bool:
        try:
            if not any(map(_IS_NEG, pick(args))):
                return True
        except (AttributeError, IndexError):  # not torch's: ask each
            if any(isinstance(value, RuntimeTensor) for value in args):
                return False
            if "torch" not in sys.modules:
                return True
        with OnlyUserFrames(), ErrorsLocated():
            for value in args:
                _refuse_lazy_parts(value)
        return True

    return takes_native


def _picker(places: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """A function that gives the arguments at these places."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda args: tuple(args[place] for place in places)


def _refuse_lazy_parts(value: Any) -> None:
    if is_aggregate(value):
        for member in members("", value, None):
            _refuse_lazy_parts(member.value)
    else:
        refuse_lazy(value)
