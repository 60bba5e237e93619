"""Copies between tensors.

A copy stays one operation over whole tensors, mode 0 of which is what one instruction moves; its atom says how.
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import atom_text, build
from tilewright.lang.atoms.copy_atom import BulkAtom, CopyAtom
from tilewright.lang.atoms.copy_hints import NAMES, CopyHints
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean
from tilewright.lang.tensors.element_limits import check_unrolled
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import product, size


def copy(atom: Any, src: Tensor, dst: Tensor, *, pred: Tensor | None = None, **others: Any) -> None:
    """Copy `src` to `dst` with an atom or tiled copy.

    Mode 0 of both holds the values of the thread's instructions, further modes repeat it; they must agree in number.
    `pred` has the modes of `src` without the values of one instruction, `(rest values, rests...)`, or one entry for
    each element; fewer entries in mode 0 stand for equally many instructions each. Where it is false nothing is read
    and the destination stays as it is, but asynchronous copies to shared memory write zeros there. Bulk copies (TMA)
    take other options, see their operations.

    Hints of `make_copy_atom` given here win over those of the atom.

    Raises:
        CompileError: numbers of elements, element widths or the predicate's shape disagree, or the atom cannot copy
            between these memories.
    """
    if not isinstance(atom, CopyAtom):
        raise CompileError(
            f"cute.copy takes a copy atom or tiled copy first, not {type(atom).__name__}", location=user_location()
        )
    _need_tensors("copy", src, dst)
    if isinstance(atom, BulkAtom):
        atom.issue(src, dst, pred, others)
        return
    _refuse(others, "copy")
    atom.op.check(src, dst)
    _check_widths(src, dst)
    if atom.num_bits == 0 and atom.values == 1:
        _check_elements(src, dst)
    else:
        _check_values(atom, src, dst)
    hints = CopyHints.of(others).over(atom.hints)
    _emit(src, dst, hints.effective(atom.text, src, dst).written(atom.text), _predicate(atom, src, pred))


def copy_atom_call(atom: Any, src: Tensor, dst: Tensor, *, pred: Tensor | None = None, **others: Any) -> None:
    """Copy with a single instruction: `copy` for tensors of one mode."""
    copy(atom, src, dst, pred=pred, **others)


def autovec_copy(src: Tensor, dst: Tensor, **others: Any) -> None:
    """Copy `src` to `dst` with the widest vectors possible; `others` are hints of `make_copy_atom`."""
    _refuse(others, "autovec_copy")
    _need_tensors("autovec_copy", src, dst)
    _check_elements(src, dst)
    text = atom_text.write("universal")
    _emit(src, dst, CopyHints.of(others).effective(text, src, dst).written(text), None)


def basic_copy(src: Tensor, dst: Tensor, *, loc: object = None, ip: object = None) -> None:
    """Copy `src` to `dst` element by element."""
    _need_tensors("basic_copy", src, dst)
    _check_elements(src, dst)
    _emit(src, dst, atom_text.write("universal", bits=src.element_type.width), None)


def basic_copy_if(pred: Tensor, src: Tensor, dst: Tensor, *, loc: object = None, ip: object = None) -> None:
    """Copy the elements of `src` whose predicate is true to `dst`, element by element."""
    if size(pred.layout) != size(src.layout):
        raise _predicate_error(src, pred, 1)
    _check_elements(src, dst)
    _emit(src, dst, atom_text.write("universal", bits=src.element_type.width), pred)


def _need_tensors(function: str, *sides: object) -> None:
    for side in sides:
        if not isinstance(side, Tensor):
            raise CompileError(
                f"cute.{function} copies between tensors, and this is a {type(side).__name__}",
                location=user_location(3),
                hint="`t.store(values)` writes a TensorSSA to a tensor",
            )


def _refuse(others: dict[str, Any], function: str) -> None:
    unknown = [name for name, value in others.items() if name not in (*NAMES, "loc", "ip") and value is not None]
    if unknown:
        raise CompileError(f"{function} has no option {unknown[0]!r}", location=user_location(3))


def _check_values(atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
    """Mode 0 must hold whole instructions, and both sides equally many; further modes must agree."""
    counts = []
    for name, tensor, layout in (("source", src, atom.layout_src_tv), ("destination", dst, atom.layout_dst_tv)):
        first, *rest = tensor.shape if isinstance(tensor.shape, tuple) and tensor.shape else (tensor.shape,)
        held, taken = product(first), int(size(layout, mode=[1]))
        held = held * tensor.element_type.width // atom.value_type.width if isinstance(held, int) else held
        if not isinstance(held, int) or held % taken:
            raise CompileError(
                f"the copy takes {taken} values a thread of the {name} at a time, and its first mode has {held}",
                location=user_location(3),
                values={name: tensor.layout, "atom": atom.text},
                hint="partition both tensors with the thread's slice of the tiled copy",
            )
        counts.append([held // taken, *_static_extents(tensor, rest)])
    if counts[0] != counts[1]:
        raise CompileError(
            "copy source and destination disagree on the number of instructions",
            location=user_location(3),
            values={"source": f"{src.layout}   {counts[0]}", "destination": f"{dst.layout}   {counts[1]}"},
            hint="partition both sides with the same thr_copy, and retile register fragments",
        )


def _static_extents(tensor: Tensor, modes: list[Any]) -> list[int]:
    extents = [product(mode) for mode in modes]
    if not all(isinstance(extent, int) for extent in extents):
        raise CompileError(
            "a copy of a tensor whose size is known only at run time",
            location=user_location(4),
            values={"tensor": tensor},
            hint="tile it first, so that each thread moves a static number of elements",
        )
    return extents


def _check_elements(src: Tensor, dst: Tensor) -> None:
    """Both sides must have equally many elements, of the same width."""
    _check_widths(src, dst)
    counts = [size(tensor.layout) for tensor in (src, dst)]
    if not all(isinstance(count, int) for count in counts) or counts[0] != counts[1]:
        raise CompileError(
            "copy source and destination disagree on the number of elements",
            location=user_location(3),
            values={
                "source": f"{src.layout}   {counts[0]} elements",
                "destination": f"{dst.layout}   {counts[1]} elements",
            },
            hint="partition both sides with the same thr_copy",
        )


def _check_widths(src: Tensor, dst: Tensor) -> None:
    if src.element_type.width != dst.element_type.width:
        raise CompileError(
            f"copy from {src.element_type} to {dst.element_type}",
            location=user_location(3),
            hint="load, convert with .to(), and store",
        )


def _predicate(atom: CopyAtom, src: Tensor, pred: Tensor | None) -> Tensor | None:
    """The predicate, checked: each entry stands for an equal run of values."""
    if pred is None:
        return None
    if pred.is_coordinates or pred.element_type is not Boolean:
        raise CompileError(
            "a copy's predicate is a tensor of Booleans", location=user_location(3), values={"pred": pred}
        )
    one = int(size(atom.layout_src_tv, mode=[1]))
    shape, given = (item if isinstance(item, tuple) else (item,) for item in (src.shape, pred.shape))
    first, entries = product(shape[0]), product(given[0]) if given else 1
    by_value = entries == first and not atom.num_bits
    by_instructions = first % (entries * one) == 0
    if len(given) != len(shape) or not (by_value or by_instructions) or _extents(given[1:]) != _extents(shape[1:]):
        raise _predicate_error(src, pred, one)
    return pred


def _extents(shape: tuple[Any, ...]) -> list[Any]:
    return [product(mode) for mode in shape]


def _predicate_error(src: Tensor, pred: Tensor, one: int) -> CompileError:
    return CompileError(
        "the copy's predicate does not fit its source",
        location=user_location(3),
        values={"predicate": pred.layout, "source": src.layout, "values of one instruction": one},
        hint="its shape is (values of a thread / values of one instruction, further modes of the source)",
    )


def _emit(src: Tensor, dst: Tensor, atom: str, pred: Tensor | None) -> None:
    if atom.startswith("universal"):  # what other instructions move is bounded by the memory they move it to
        check_unrolled(int(size(src.layout)), "a copy", src)
    groups = ((src.value,), (dst.value,), (pred.value,) if pred is not None else ())
    build.cute("copy", (), groups, atom=build.string(atom))
