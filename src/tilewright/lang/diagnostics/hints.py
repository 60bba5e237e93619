"""What to do about an error that Python itself raised while a function was traced."""

from __future__ import annotations

import builtins
import difflib
import re

from tilewright.lang.diagnostics import cuda_names

_OF_TENSORS = "a tensor is memory: `t.load()` gives its elements as a value, `t[i]` one of them"
_OF_ITEMS = "it is one number and has no items: index the tensor or tuple that it comes from"
_NUMBER = r"\b(U?Int\d+|T?Float\d\w*|BFloat16|Boolean)\b"

_BY_CLASS: dict[type[Exception], str] = {
    KeyError: "keys are known while tracing: give the dictionary the key before it is read",
    IndexError: "lists and tuples have the length that they have while tracing: compare the index with `len`",
    UnboundLocalError: "give the variable a value before this line",
    RecursionError: "calls are inlined, so a recursion must end while the function is compiled",
}

_BY_WORDS: tuple[tuple[type[Exception], str, str], ...] = (
    (
        ValueError,
        r"values to unpack",
        "both sides of `=` need equally many: thread_idx(), block_idx() and their kind give three, a shape one for each"
        " mode; `_` takes what is not needed",
    ),
    (TypeError, r"(unsupported operand|not supported between|bad operand).*'Tensor'", _OF_TENSORS),
    (TypeError, r"'Tensor' has no len", "`cute.size(t)` counts the elements of a tensor, `t.shape` has its extents"),
    (TypeError, r"^copy\(\) missing", "cute.copy(atom, source, destination); cute.autovec_copy(source, destination)"
     " needs no atom"),
    (IndexError, r"only integers, slices", "an array of NumPy is indexed while the program is compiled: pass it to the"
     " kernel as a `cute.Tensor`, which runtime indices reach"),
    (TypeError, r"loop of ufunc", "NumPy computes while the kernel is compiled; `cute.math` has functions of runtime"
     " values"),
    (TypeError, r"'TensorSSA' object does not support item assignment", "a TensorSSA is a value: write to a tensor,"
     " `t[i] = x`, and load it again, or choose elements with `cute.where`"),
    (TypeError, r"'tuple' object does not support item assignment", "a tuple stays as it is: keep values in a list, or"
     " in `cute.make_rmem_tensor`, which runtime indices reach too"),
    (TypeError, _NUMBER + r".*item assignment", "`t[i][j]` is an item of the number `t[i]`: `t[i, j] = x` writes one"
     " element of a tensor, `t[i, None]` is a view of a row"),
    (TypeError, _NUMBER + r".*(subscript|has no len|iterable)|iterable.*" + _NUMBER, _OF_ITEMS),
    (TypeError, r"(unsupported operand|not supported between).*" + _NUMBER, "numbers compute with numbers: convert the"
     " other operand"),
    (TypeError, _NUMBER, "`cute.math` has functions of runtime values; `.to(T)` and `T(x)` convert"),
)  # fmt: skip


def hint_for(error: Exception) -> str | None:
    """How to mend what `error` complains of: by its class, by its words, or a name that was meant; None if unknown."""
    for kind, pattern, hint in _BY_WORDS:
        if isinstance(error, kind) and re.search(pattern, str(error)):
            return hint
    return _BY_CLASS[type(error)] if type(error) in _BY_CLASS else _on_name(error)


def for_number(text: str) -> str:
    """How to write the expression `text`, in which Python needed a number and got one of run time."""
    if re.match(r"(float|int|complex|(np|numpy)\.(u?int|float)\w*)\(", text):
        return "convert it by a type of the language, such as `cutlass.Float32(x)` or `cutlass.Int32(x)`"
    called = re.match(r"(\w+\.)?(\w+)\(", text)
    if called and (called[1] in ("math.", "np.", "numpy.") or called[2] in _MATH or called[2] in _INSTEAD_OF_MATH):
        return _on_math(called[2])
    if text.endswith("]"):
        return _INDEX
    return "pass it as Constexpr, or keep it in operations of the language"


_INDEX = (
    "lists, tuples and texts are indexed while the program is compiled: put the numbers into a tensor, in registers by "
    "`cute.make_rmem_tensor`, which runtime indices reach too; `a if i == 0 else b` chooses one of a few"
)
_MATH = frozenset((
    "acos", "asin", "atan", "atan2", "ceil", "copysign", "cos", "erf", "exp", "exp2", "floor", "log", "log10", "log2",
    "sin", "sqrt", "tan", "tanh",
))  # fmt: skip
_INSTEAD_OF_MATH = {
    "pow": "`x ** y` or `cute.math.pow(x, y)`", "power": "`x ** y`", "fabs": "`abs(x)`", "abs": "`abs(x)`",
    "isnan": "`x != x`", "fmod": "`cute.math`", "trunc": "`cutlass.Int32(x)`", "arctan2": "`cute.math.atan2(y, x)`",
    "hypot": "`cute.math.sqrt(x * x + y * y)`", "prod": "`*`", "maximum": "`max(x, y)`", "minimum": "`min(x, y)`",
}  # fmt: skip


def _on_math(name: str) -> str:
    known = f"`cute.math.{name}`" if name in _MATH else _INSTEAD_OF_MATH.get(name, "`cute.math`, or arithmetic")
    return f"Python's functions compute while the program is compiled: for runtime values write {known}"


def _on_name(error: Exception) -> str | None:
    """A name that was meant, of Python or of CUDA."""
    name = getattr(error, "name", None)
    if not isinstance(error, AttributeError | NameError) or not isinstance(name, str):
        return None
    on_tuple = isinstance(error, AttributeError) and isinstance(error.obj, tuple)
    meant = cuda_names.hint_on_tuple(name) if on_tuple else cuda_names.hint(name)
    return meant or _close_name(error, name)


def _close_name(error: AttributeError | NameError, name: str) -> str | None:
    known = dir(error.obj) if isinstance(error, AttributeError) else _names_at(error)
    close = difflib.get_close_matches(name, [item for item in known if not item.startswith("_")], 1)
    return f"did you mean {close[0]!r}?" if close else None


def _names_at(error: Exception) -> list[str]:
    """The names that the code which raised `error` sees."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return []
    return [*trace.tb_frame.f_locals, *trace.tb_frame.f_globals, *dir(builtins)]
