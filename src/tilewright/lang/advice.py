"""What to do about an error that Python itself raised while a function was traced."""

from __future__ import annotations

import builtins
import difflib
import re

from tilewright.lang import cuda_names

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


def advice(error: Exception) -> str | None:
    """How to mend what `error` complains of: by its class, by its words, or a name that was meant; None if unknown."""
    if type(error) in _BY_CLASS:
        return _BY_CLASS[type(error)]
    for kind, pattern, hint in _BY_WORDS:
        if isinstance(error, kind) and re.search(pattern, str(error)):
            return hint
    return _on_name(error)


def _on_name(error: Exception) -> str | None:
    """A name that was meant, of Python or of CUDA."""
    name = getattr(error, "name", None)
    if not isinstance(error, AttributeError | NameError) or not isinstance(name, str):
        return None
    on_tuple = isinstance(error, AttributeError) and isinstance(error.obj, tuple)
    meant = cuda_names.advice_on_tuple(name) if on_tuple else cuda_names.advice(name)
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
