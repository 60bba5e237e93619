"""An error can be printed, kept and pickled after the compilation it speaks of is gone."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest

import tilewright.cute as cute
from tilewright.base.errors import CompileError, TilewrightError
from tilewright.base.location import SourceLocation


class Fleeting:
    """A value whose text changes when what it refers to is gone."""

    text = "alive"

    def __str__(self):
        return self.text


def test_values_keep_the_text_that_they_had():
    value = Fleeting()
    error = TilewrightError("no", values={"one": value, "both": (1, value), "plain": (1, 2), "number": 3})
    value.text = "gone"
    assert error.values["one"] == "alive"
    assert "alive" in str(error) and "gone" not in str(error)
    assert error.values["plain"] == (1, 2) and error.values["number"] == 3


def test_locations_stay_objects():
    place = SourceLocation("file.py", 3)
    assert TilewrightError("no", values={"place": place}).values["place"] is place


@cute.jit
def copies_wide(x: cute.Tensor):
    copies_wide_kernel(x).launch(grid=1, block=1)


@cute.kernel
def copies_wide_kernel(x: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((1, 1)), cute.make_layout((1, 4)))
    part = tiled.get_slice(0).partition_S(x)
    cute.copy(atom, part, part)


def test_an_error_about_runtime_values_is_printed_after_other_compilations():
    """The values named are MLIR's; the context that they were in is used again, and its module is freed."""
    errors = []
    for columns in range(3, 9):
        try:
            copies_wide(np.zeros((columns, 2 * columns), np.float32))
        except TilewrightError as error:
            errors.append(error.with_traceback(None))
    gc.collect()
    assert len(errors) == 6
    assert all("?" in str(error) for error in errors), str(errors[0])
    assert all(isinstance(value, str | int | tuple) for error in errors for value in error.values.values())


@pytest.mark.parametrize("kind", [KeyError, IndexError, AttributeError, ZeroDivisionError])
def test_errors_of_two_classes_are_pickled(kind):
    @cute.jit
    def fails():
        {
            KeyError: lambda: {}["a"],
            IndexError: lambda: [][1],
            AttributeError: lambda: (1).missing,
            ZeroDivisionError: lambda: 1 // 0,
        }[kind]()

    with pytest.raises(kind) as caught:
        cute.compile(fails)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, kind) and isinstance(again, CompileError)
    assert str(again) == str(caught.value) and again.location == caught.value.location
