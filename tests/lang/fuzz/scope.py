"""The names that a random program finds when plain Python runs it: threads, `cute`, `range`, math."""

from __future__ import annotations

import builtins
import dataclasses
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from tests.lang.fuzz import tensors
from tests.lang.fuzz.model import ALL_TYPES, BOOLEAN, INT32, Num, encode, lift, promote
from tests.lang.fuzz.tensors import Layout, Tensor

LANES = 32

# How far from the exact value a result may be, in units of its last place: the bounds that the CUDA C++ Programming
# Guide gives for single and double precision ("Mathematical Functions"), with a unit for rounding the exact value.
ULPS = {
    "Float32": {
        "exp": 2, "exp2": 2, "log": 1, "log2": 1, "log10": 2, "sin": 2, "cos": 2, "tan": 4, "tanh": 2, "rsqrt": 2,
        "erf": 2, "atan": 2, "asin": 4, "acos": 3, "atan2": 3, "pow": 4,
    },
    "Float64": {
        "exp": 1, "exp2": 1, "log": 1, "log2": 1, "log10": 1, "sin": 2, "cos": 2, "tan": 2, "tanh": 2, "rsqrt": 1,
        "erf": 2, "atan": 2, "asin": 2, "acos": 2, "atan2": 2, "pow": 2,
    },
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., float]] = {
    "exp": math.exp, "exp2": math.exp2, "log": math.log, "log2": math.log2, "log10": math.log10, "sin": math.sin,
    "cos": math.cos, "tan": math.tan, "tanh": math.tanh, "rsqrt": lambda x: 1 / math.sqrt(x), "erf": math.erf,
    "atan": math.atan, "asin": math.asin, "acos": math.acos, "atan2": math.atan2, "pow": math.pow,
}  # fmt: skip
EXACT: dict[str, Callable[[float], float]] = {
    "absf": abs, "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "floor": lambda x: math.copysign(math.floor(x), x) if math.isfinite(x) else x,
    "ceil": lambda x: math.copysign(math.ceil(x), x) if math.isfinite(x) else x,
}  # fmt: skip


class Warp:
    """What the threads of a warp do together; each runs in a thread of Python's. `printed` is what they printed."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(LANES)
        self.slots: list[Any] = [None] * LANES
        self.shared: dict[int, Tensor] = {}
        self.local = threading.local()
        self.printed: list[str] = []

    def gather(self, value: Any) -> list[Any]:
        """The values of all threads."""
        self.slots[self.local.lane] = value
        self.barrier.wait()
        found = list(self.slots)
        self.barrier.wait()
        return found

    def exchange(self, value: Num, source: Callable[[int], int]) -> Num:
        """The value of thread `source(lane)`; one's own where there is no such thread."""
        lane = self.local.lane
        chosen = source(lane)
        found = self.gather(value)
        return found[chosen if 0 <= chosen < LANES else lane]

    def reduction(self, fold: Callable[[Sequence[Any]], Any]) -> Callable[..., Num]:
        def reduce(value: Num, threads_in_group: int = LANES) -> Num:
            first = self.local.lane // threads_in_group * threads_in_group
            group = self.gather(value)[first : first + threads_in_group]
            return value.type(fold([item.value for item in group]))

        return reduce

    def allocate(self, make: Callable[[], Tensor]) -> Tensor:
        """Shared memory: the n-th allocation of each thread is the same memory."""
        number = self.local.allocations = self.local.allocations + 1
        return self.shared.setdefault(number, make())

    def printf(self, form: str, *arguments: Num) -> None:
        pieces = form.replace("%d", "{}").split("{}")
        texts = [str(item.value) for item in map(_printable, arguments)]
        self.printed.append("".join(part for pair in zip(pieces, [*texts, ""], strict=True) for part in pair))


def _printable(number: Any) -> Num:
    number = lift(number)
    return INT32(number) if number.type == BOOLEAN else number


def _range(*bounds: Any) -> Iterator[Num]:
    numbers = [lift(bound) for bound in bounds]
    type_ = numbers[0].type
    for number in numbers[1:]:
        type_ = promote(type_, number.type)
    return (type_(item) for item in builtins.range(*(int(number.value) for number in numbers)))


def _pick(better: Callable[[Num, Num], Num]) -> Callable[..., Num]:
    def pick(first: Any, *rest: Any) -> Num:
        result = first
        for item in rest:
            type_ = promote(result.type, item.type) if result.type != item.type else item.type
            result = type_(item) if better(item, result) else type_(result)
        return result

    return pick


def _identity(function: Any) -> Any:
    return function


def check_type(value: Any, name: str) -> Any:
    """The value, if it is a number of type `name`."""
    assert value.type.name == name, f"{value} is no {name}"
    return value


def _function(name: str) -> Callable[..., Num]:
    """A function that keeps the exact result, for `near`."""

    def function(*arguments: Num) -> Num:
        type_ = arguments[0].type
        return Num(type_, float(FUNCTIONS[name](*(item.value for item in arguments))))

    return function


EXACT_FUNCTIONS = {
    name: lambda number, function=function: number.type(function(number.value)) for name, function in EXACT.items()
}


def put_near(near: Tensor, lane: Any, column: int, value: Num, name: str) -> None:
    """Leave a result of `cute.math.<name>` in `near`: its exact value, how far off it may be, whose sign counts."""
    unit = 2.0 ** max(math.frexp(value.value)[1] - value.type.precision, value.type.least) if value.value else 0.0
    ulps = ULPS.get(value.type.name, ULPS["Float32"])[name] + 1
    near[lane, column] = ALL_TYPES["Float64"](value.value)
    near[lane, column + 1] = ALL_TYPES["Float64"](ulps * unit)


def _arch(warp: Warp) -> SimpleNamespace:
    def bits(fold: Callable[[int, int], int]) -> Callable[[Num], Num]:
        return lambda value: INT32(fold(encode(value), value.type.width))

    def reverse(value: Num) -> Num:
        return value.type(int(f"{encode(value):0{value.type.width}b}"[::-1], 2))

    return SimpleNamespace(
        thread_idx=lambda: (INT32(warp.local.lane), INT32(0), INT32(0)),
        lane_idx=lambda: INT32(warp.local.lane),
        warp_idx=lambda: INT32(0),
        sync_threads=warp.barrier.wait,
        sync_warp=warp.barrier.wait,
        shuffle_sync_bfly=lambda value, offset: warp.exchange(value, lambda lane: lane ^ offset),
        shuffle_sync_up=lambda value, offset: warp.exchange(value, lambda lane: lane - offset),
        shuffle_sync_down=lambda value, offset: warp.exchange(value, lambda lane: lane + offset),
        shuffle_sync=lambda value, lane: warp.exchange(value, lambda _: int(lane)),
        warp_reduction_sum=warp.reduction(sum),
        warp_reduction_max=warp.reduction(max),
        warp_reduction_min=warp.reduction(min),
        vote_any_sync=lambda value: BOOLEAN(any(warp.gather(value))),
        vote_all_sync=lambda value: BOOLEAN(all(warp.gather(value))),
        vote_ballot_sync=lambda value: INT32(sum(1 << lane for lane, item in enumerate(warp.gather(value)) if item)),
        popc=bits(lambda value, _: value.bit_count()),
        clz=bits(lambda value, width: width - value.bit_length()),
        brev=reverse,
    )


def _shared(warp: Warp) -> Callable[..., Tensor]:
    return lambda type_, shape: warp.allocate(lambda: Tensor.rows(type_, shape))


def scope(warp: Warp) -> dict[str, Any]:
    """The names of a program, for plain Python."""
    cute = SimpleNamespace(
        jit=_identity, arch=_arch(warp), where=tensors.where, printf=warp.printf,
        ReductionOp=SimpleNamespace(ADD="add", MUL="mul", MAX="max", MIN="min", AND="and", OR="or", XOR="xor"),
        math=SimpleNamespace(**{name: _function(name) for name in FUNCTIONS}, **EXACT_FUNCTIONS),
        make_layout=lambda shape, stride=None: Layout(shape, stride),
        make_swizzle=lambda *_: None, make_composed_layout=lambda _, offset, layout: layout,
        make_rmem_tensor=lambda layout, type_: Tensor.new(type_, layout),
        make_rmem_tensor_like=lambda tensor: Tensor.new(tensor.type, tensor.shape),
        local_tile=tensors.local_tile, zipped_divide=tensors.zipped_divide, flat_divide=tensors.flat_divide,
        logical_divide=tensors.logical_divide, composition=tensors.composition, make_tensor=tensors.make_tensor,
        recast_tensor=tensors.recast_tensor, autovec_copy=tensors.copy, basic_copy=tensors.copy,
        copy=lambda _, source, target: tensors.copy(source, target), make_copy_atom=lambda *_: None,
        nvgpu=SimpleNamespace(CopyUniversalOp=lambda: None), size=lambda tensor: tensors.size(tensor.shape),
    )  # fmt: skip
    return {
        **ALL_TYPES, "cute": cute, "range": _range, "range_constexpr": builtins.range, "const_expr": _identity,
        "min": _pick(lambda item, best: item < best), "max": _pick(lambda item, best: item > best),
        "check_type": check_type, "registers": lambda type_, count: Tensor.new(type_, (count,)),
        "shared": _shared(warp), "shared_like": lambda type_, layout: warp.allocate(lambda: Tensor.new(type_, layout)),
        "put_near": put_near, "NamedTuple": NamedTuple, "dataclass": dataclasses.dataclass,
        "replace": dataclasses.replace,
    }  # fmt: skip
