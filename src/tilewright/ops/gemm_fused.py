"""`gemm` with an epilogue: how the operator `tilewright::_gemm_fused` finds the user's function, and what it runs.

An operator of PyTorch takes no functions. It takes the function's key, a digest of its code and of what it captures, so
that graphs which `torch.compile` keeps between processes name the same epilogue.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.kernels.epilogue_plans import is_array, memory_of
from tilewright.kernels.gemm_calls import GemmEpilogue, numpy_of
from tilewright.kernels.gemm_sm90_plans import accumulator_of
from tilewright.kernels.views import dtype_of
from tilewright.lib.epilogue.authoring import from_text, unbound
from tilewright.lib.epilogue.bits import Bits
from tilewright.lib.epilogue.elements import numpy_dtype
from tilewright.ops.frameworks import is_torch, on_emulator, torch
from tilewright.ops.registration import LIBRARY, NAMESPACE
from tilewright.torch import dtype as torch_dtype

NAME = "_gemm_fused"
_STAND_INS = (100003, 100019, 100043, 100049, 100057, 100069, 100103, 100109, 100129, 100151, 100153, 100169)  # primes
_NO_BITS = -1  # for tensors whose elements are no bits
_known: dict[str, GemmEpilogue] = {}


def key_of(epilogue: Callable[..., Any] | str) -> str:
    """The key under which the operator finds an epilogue, which is kept from now on.

    Functions are the same where their code, defaults and captured values are, those of captured functions included;
    globals are read when they are traced.
    """
    if isinstance(epilogue, str):
        return _key_of_text(epilogue)
    return _key_of_function(epilogue)


@functools.lru_cache(maxsize=256)
def _key_of_text(epilogue: str) -> str:
    return _key_of_function(from_text(epilogue))


def _key_of_function(fn: Callable[..., Any]) -> str:
    plain, passed = unbound(fn)
    parts = (_text(plain), *map(_text, passed.values()))
    key = f"{plain.__name__}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:24]}"
    if key not in _known:
        _known[key] = GemmEpilogue(fn)
    return key


def _code_text(code: CodeType) -> str:
    constants = (_code_text(item) if isinstance(item, CodeType) else repr(item) for item in code.co_consts)
    return repr((code.co_filename, code.co_firstlineno, code.co_code, code.co_names, *constants))


def _text(value: Any, within: tuple[Any, ...] = ()) -> str:
    """What tells a value from others: of a function, its code and what it captures. Recursive ones end by their name.

    `within` are the functions that lead here.
    """
    if is_torch(value):
        value = numpy_of(value.cpu())
    if isinstance(value, np.ndarray):  # whose own text leaves elements out
        return repr((value.dtype, value.shape, hashlib.sha256(value.tobytes()).hexdigest()))
    if not inspect.isfunction(value):
        return repr(value)
    if value in within:
        return value.__qualname__
    captured = [cell.cell_contents for cell in value.__closure__ or ()]
    values = [*captured, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    return repr((_code_text(value.__code__), *(_text(item, (*within, value)) for item in values)))


def tensors_of(operands: Mapping[str, Any]) -> list[Any]:
    """The tensors of the operands: masks of bits are in one, too."""
    return [memory_of(item) for item in operands.values() if is_array(item)]


def fused(key: str, a: Any, b: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of the epilogue by name: those that are among `given`, filled, and new ones."""
    epilogue = _known[key]
    outputs = epilogue.outputs(a, b, given)
    arrays = {name: item for name, item in given.items() if name not in outputs}
    arrays |= {name: given[name] if name in given else _empty(a, example) for name, example in outputs.items()}
    if getattr(a, "is_cuda", False) or on_emulator():
        epilogue.run(a, b, arrays)
    else:
        _refer(epilogue, a, b, arrays)
    return {name: arrays[name] for name in outputs}


def _refer(epilogue: GemmEpilogue, a: Any, b: Any, arrays: Mapping[str, Any]) -> None:
    wide = numpy_dtype(accumulator_of(dtype_of(a)))
    product = numpy_of(a).astype(wide) @ numpy_of(b).astype(wide)
    given = {name: numpy_of(item) for name, item in arrays.items()}
    for name, made in epilogue.refer(product, numpy_of(a), numpy_of(b), given).items():
        target = arrays[name]
        if isinstance(target, Bits):
            made = np.packbits(made, axis=-1, bitorder="little")
            target = target.array[..., : made.shape[-1]]
        if is_torch(target):
            exact = torch.from_numpy(np.ascontiguousarray(made.astype(np.float64)))
            target.copy_(exact.reshape(target.shape))
        else:
            target[...] = made.reshape(target.shape)


def _empty(like: Any, example: Any) -> Any:
    if isinstance(like, np.ndarray):
        return np.empty(example.shape, numpy_dtype(example.element))
    return like.new_empty(example.shape, dtype=torch_dtype(example.element))


def dispatched(key: str, a: Any, b: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """`fused` by way of the operator, which `torch.compile` traces; given outputs are filled by a copy."""
    tensors = {name: item for name, item in given.items() if is_array(item)}
    numbers = {name: float(item) for name, item in given.items() if not is_array(item)}
    bits = [item.shape[-1] if isinstance(item, Bits) else _NO_BITS for item in tensors.values()]
    operator = getattr(getattr(torch.ops, NAMESPACE), NAME).default
    made = operator(a, b, tensors_of(tensors), list(tensors), bits, list(numbers.values()), list(numbers), key)
    found = dict(zip(names_of(key), made, strict=True))
    for name, value in found.items():
        if name in given:
            tensors_of({name: given[name]})[0].copy_(value)
            found[name] = given[name]
    return found


def names_of(key: str) -> tuple[str, ...]:
    """The names of the outputs of an epilogue, once its shapes have been worked out."""
    return _known[key].names


def _run(a: Any, b: Any, tensors: Any, names: Any, bits: Any, numbers: Any, others: Any, key: str) -> list[Any]:
    seen = map(_as_bits, tensors, bits)
    given = dict(zip((*names, *others), (*seen, *numbers), strict=True))
    return tensors_of(fused(key, a, b, _as_new(key, a, b, given)))


def _fake(a: Any, b: Any, tensors: Any, names: Any, bits: Any, numbers: Any, others: Any, key: str) -> list[Any]:
    symbols: dict[int, Any] = {}
    left, right, *plain = (_with_numbers(tensor, symbols) for tensor in (a, b, *tensors))
    seen = (_with_bits(tensor, _plain_number(extent, symbols)) for tensor, extent in zip(plain, bits, strict=True))
    outputs = _known[key].outputs(left, right, dict(zip((*names, *others), (*seen, *numbers), strict=True)))
    given = dict(zip(names, tensors, strict=True))
    return [
        torch.empty_like(given[name])
        if name in given
        else a.new_empty([symbols.get(extent, extent) for extent in each.shape], dtype=torch_dtype(each.element))
        for name, each in outputs.items()
    ]


def _with_numbers(tensor: Any, symbols: dict[int, Any]) -> Any:
    """A tensor like this one with a number in the place of each extent that is a symbol; `symbols` gets them back.

    A number stands for one symbol alone, and divides no other: shapes are worked out with it as with any.
    """
    shape = [_plain_number(extent, symbols) for extent in tensor.shape]
    return torch.empty(shape, dtype=tensor.dtype, device="meta")


def _with_bits(tensor: Any, extent: int) -> Any:
    """`_as_bits` with as many bytes as a number in the place of a symbol needs."""
    return _as_bits(tensor if extent == _NO_BITS else tensor.new_empty((*tensor.shape[:-1], -(-extent // 8))), extent)


def _plain_number(extent: Any, symbols: dict[int, Any]) -> int:
    return _number_of(extent, symbols) if isinstance(extent, torch.SymInt) else extent


def _number_of(extent: Any, symbols: dict[int, Any]) -> int:
    """The number of a symbol. Those that are equal now are taken for one, which `torch.compile` checks at each call."""
    for number, symbol in symbols.items():
        if extent.node.hint == symbol.node.hint and bool(extent == symbol):
            return number
    number = next(each for each in _STAND_INS if each not in symbols)
    symbols[number] = extent
    return number


def _as_new(key: str, a: Any, b: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Operands, and new tensors in place of given outputs: the operator changes none of its arguments."""
    outputs = _known[key].outputs(a, b, given)
    return {name: _empty_like(item) if name in outputs else item for name, item in given.items()}


def _empty_like(item: Any) -> Any:
    return Bits(torch.empty_like(item.array), item.shape[-1]) if isinstance(item, Bits) else torch.empty_like(item)


def _as_bits(tensor: Any, extent: int) -> Any:
    """A tensor as the epilogue sees it: a mask of `extent` bits in a row, or itself."""
    return tensor if extent == _NO_BITS else Bits(tensor, extent)


if LIBRARY is not None:
    key_of = torch.compiler.assume_constant_result(key_of)
    names_of = torch.compiler.assume_constant_result(names_of)
    LIBRARY.define(
        f"{NAME}(Tensor a, Tensor b, Tensor[] tensors, str[] names, SymInt[] bits, float[] numbers, str[] others,"
        " str epilogue) -> Tensor[]",
        tags=[torch.Tag.pt2_compliant_tag],
    )
    for _device in ("CUDA", "CPU"):
        LIBRARY.impl(NAME, _run, _device)
    torch.library.register_fake(f"{NAMESPACE}::{NAME}", _fake, lib=LIBRARY)


def check_operands(operands: Mapping[str, Any], a: Any) -> None:
    """Refuse operands that are neither tensors where `a` lies nor numbers.

    Raises:
        ArgumentError: it names the operand.
    """
    for name, given in operands.items():
        item = memory_of(given)
        if is_array(item) and (is_torch(item) != is_torch(a) or (is_torch(a) and item.device != a.device)):
            raise ArgumentError(
                f"gemm: operand {name} lies elsewhere than a",
                values={name: getattr(item, "device", "NumPy"), "a": getattr(a, "device", "NumPy")},
                hint="move it to where a and b lie",
            )
