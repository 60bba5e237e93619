"""`Router`: to which of several native functions a call goes, and what that is shown of the tensors."""

import threading

import numpy as np
import pytest

from tests.host.programs import ONE, RUNTIME, Recorder, dyn, tensor
from tilewright.base.signature import ScalarParam
from tilewright.targets.host.router import (
    COLUMNS,
    CONSTANT,
    FREE_MATRIX,
    MATRIX,
    MOST_FUNCTIONS,
    NUMBER,
    STRIDED,
    Router,
)

STEP = dyn(width=64)


def matrix(name="x"):
    return tensor(name, shape=(RUNTIME, RUNTIME), stride=(STEP, *ONE))


def floats(*shape):
    return np.zeros(shape, np.float32)


def recorder(*params):
    return Recorder(*params or (matrix(),))


def routed(kinds, function, *arguments):
    router = Router(kinds)
    assert router.call(*arguments)  # nothing was added: the call is not done
    assert router.add(function.function, arguments)
    return router


@pytest.mark.parametrize(
    ("x", "rows", "columns", "step"),
    [
        (floats(5, 8), 5, 8, 8),
        (floats(8), 1, 8, 8),
        (floats(2, 3, 8), 6, 8, 8),
        (floats(2, 1, 3, 8), 6, 8, 8),
        (floats(5, 12)[:, :8], 5, 8, 12),
        (floats(2, 3, 12)[..., :8], 6, 8, 12),
        (floats(1, 12)[:, :8], 1, 8, 8),
        (floats(4, 6, 8)[:, 2], 4, 8, 48),
        (np.lib.stride_tricks.as_strided(floats(8), (3, 8), (0, 4)), 3, 8, 0),
    ],
    ids=lambda value: str(getattr(value, "shape", value)),
)
def test_tensors_of_any_rank_are_shown_as_matrices(x, rows, columns, step):
    function = recorder()
    router = routed([MATRIX], function, x)
    assert router.call(x) is None
    address, *numbers = function.calls[-1]
    assert address == x.ctypes.data and numbers == [rows, columns, step if rows > 1 else 0]


@pytest.mark.parametrize(
    "x", [floats(8, 5).T, floats(3, 4, 8).transpose(1, 0, 2), floats(5, 16)[:, ::2], floats(4, 4, 8)[:, :2]], ids=str
)
def test_what_is_no_matrix_in_memory_is_not_routed(x):
    function = recorder()
    router = Router([MATRIX])
    assert not router.add(function.function, [x])
    assert router.add(function.function, [floats(5, 8)])
    assert router.call(x) is True and not function.calls


def test_types_lengths_strides_and_alignment_choose_the_function():
    functions = {}
    router = Router([MATRIX])
    memory = floats(64)
    aligned = memory[(-memory.ctypes.data // 4) % 4 :]
    cases = {
        "plain": aligned[:16].reshape(2, 8),
        "shorter": aligned[:14].reshape(2, 7),
        "apart": aligned[:20].reshape(2, 10)[:, :8],
        "off by 4 bytes": aligned[1:17].reshape(2, 8),
        "one row": aligned[:8].reshape(1, 8),
    }
    for name, x in cases.items():
        assert router.call(x) is (None if name == "one row" else True)  # which is like "plain"
        functions[name] = recorder()
        router.add(functions[name].function, [x])
    for name, x in cases.items():
        before = {each: len(function.calls) for each, function in functions.items()}
        assert router.call(x) is None
        chosen = [each for each, function in functions.items() if len(function.calls) > before[each]]
        assert chosen == ["plain" if name == "one row" else name]
    assert router.call(np.zeros((2, 8), np.float64)) is True


def test_more_rows_take_the_same_function():
    function = recorder()
    router = routed([MATRIX], function, floats(2, 8))
    assert router.call(floats(70, 8)) is None and function.calls[-1][1] == 70


def test_matrices_of_other_rows_are_not_routed():
    function = recorder(matrix("x"), matrix("y"))
    router = routed([MATRIX, MATRIX], function, floats(4, 8), floats(4, 8))
    assert router.call(floats(4, 8), floats(1, 8)) is True
    assert router.call(floats(5, 8), floats(4, 8)) is True
    assert router.call(floats(2, 2, 8), floats(4, 8)) is None
    free = routed([MATRIX, FREE_MATRIX], function, floats(4, 8), floats(3, 8))
    assert free.call(floats(9, 8), floats(3, 8)) is None


def test_numbers_of_rows_are_shown_as_vectors():
    function = recorder(matrix(), tensor("numbers", stride=(STEP,)))
    x, numbers = floats(2, 3, 8), floats(2, 3)
    router = routed([MATRIX, STRIDED], function, x, numbers)
    assert router.call(x, numbers) is None and function.calls[-1][-2:] == [6, 1]
    assert router.call(x, floats(6, 4)[:, 0]) is None and function.calls[-1][-2:] == [6, 4]
    assert router.call(x, floats(7)) is True
    assert router.call(floats(1, 8), np.zeros((), np.float32)) is None


def test_columns_are_vectors():
    function = recorder(matrix(), tensor("weight"))
    router = routed([MATRIX, COLUMNS], function, floats(4, 8), floats(8))
    assert router.call(floats(4, 8), floats(8)) is None
    for wrong in (floats(7), floats(1, 8), floats(16)[::2], floats()):
        assert router.call(floats(4, 8), wrong) is True


def test_what_is_absent_constant_or_a_number():
    function = recorder(matrix(), ScalarParam("eps", "f64"))
    router = routed([MATRIX, COLUMNS, NUMBER, CONSTANT], function, floats(4, 8), None, 0.5, True)
    assert router.call(floats(4, 8), None, 0.25, True) is None and function.calls[-1][-1] == 0.25
    assert router.call(floats(4, 8), None, 0.25, False) is True
    assert router.call(floats(4, 8), floats(8), 0.25, True) is True
    assert router.call(floats(4, 8), None, 0.25) is True


@pytest.mark.parametrize("shape", [(0, 8), (4, 0), (2, 0, 8), (0,)])
def test_empty_matrices_are_not_routed(shape):
    function = recorder()
    router = routed([MATRIX], function, floats(4, 8))
    assert router.call(floats(*shape)) is True and not function.calls
    assert not router.add(function.function, [floats(*shape)])


def test_other_arguments_are_not_routed():
    function = recorder()
    router = routed([MATRIX], function, floats(4, 8))
    for wrong in (3, 1.5, "x", None, (floats(4, 8),)):
        assert router.call(wrong) is True
    assert router.call() is True and not function.calls


def test_errors_of_the_function_come_out():
    function = recorder(tensor("x", shape=(RUNTIME, RUNTIME), stride=(dyn(divisibility=8), *ONE)))
    router = Router([MATRIX])
    assert router.add(function.function, [floats(4, 12)])
    with pytest.raises(Exception, match="stride 12 of mode 0 is not a multiple of 8"):
        router.call(floats(4, 12))


def test_no_more_functions_than_there_is_room_for():
    function = recorder()
    router = Router([MATRIX])
    added = [router.add(function.function, [floats(2, columns)]) for columns in range(1, MOST_FUNCTIONS + 3)]
    assert added == [True] * MOST_FUNCTIONS + [False] * 2
    assert router.call(floats(2, MOST_FUNCTIONS)) is None and router.call(floats(2, MOST_FUNCTIONS + 1)) is True


def test_threads_add_and_call_at_once():
    router, wrong = Router([MATRIX]), []

    def work(first):
        for columns in range(first, MOST_FUNCTIONS, 4):
            function = recorder() if columns < 8 else shared
            router.add(function.function, [floats(2, columns + 1)])
            if router.call(floats(2, columns + 1)) is not None:
                wrong.append(columns)

    shared = recorder()
    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
