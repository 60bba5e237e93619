# ruff: noqa: B007  (loops whose variable is not used are what is tested)
"""What control flow refuses, and the words in which it does: user's line, what disagrees, what to do."""

from __future__ import annotations

import importlib.util
import linecache
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.lang.control.harness import compiled, trace
from tests.lang.control.programs import State
from tilewright.base.errors import CompileError
from tilewright.lang import control
from tilewright.lang.control import ConstantConditionWarning, const_expr, range_constexpr
from tilewright.lang.numbers.numeric import Float32, Int32, Int64
from tilewright.lang.rewrite import capture, rewrite


def refused(fn: Callable[..., Any], *dtypes: Any) -> CompileError:
    """The error of compiling `fn`; the line marked `# here` must be the one that it names."""
    with pytest.raises(CompileError) as caught:
        trace(fn, *dtypes)
    error = caught.value
    lines, first = linecache.getlines(__file__), fn.__code__.co_firstlineno
    marked = next(n for n in range(first, first + 40) if "# here" in lines[n - 1])
    assert error.location is not None
    assert (error.location.file, error.location.line) == (__file__, marked)
    assert error.hint
    for word in ("scf.", "arith.", "%"):
        assert word not in str(error)
    return error


def assigned(error: CompileError) -> list[object]:
    """The lines that an error says assign what it is about."""
    return [text for row, text in error.values.items() if row.startswith("line ")]


def test_break_in_a_runtime_loop():
    def f(n):
        for i in range(n):
            break  # here

    error = refused(f)
    assert "`break` in a runtime `for` loop" in str(error)
    assert "keep a Boolean" in error.hint and "range_constexpr" in error.hint


def test_break_under_a_runtime_if_in_a_static_loop():
    def f(n):
        for i in range_constexpr(4):
            if n > i:
                break  # here

    assert "`break` under a runtime `if`" in str(refused(f))


def test_continue_in_a_runtime_while():
    def f(n):
        while n > 0:
            n -= 1
            if const_expr(True):
                continue  # here

    error = refused(f)
    assert "`continue` in a runtime `while` loop" in str(error) and "opposite condition" in error.hint


def test_return_under_a_runtime_if():
    def f(n):
        if n > 0:
            return 1  # here
        return 2

    error = refused(f)
    assert "`return` under a runtime `if`" in str(error) and "once at the end" in error.hint
    assert error.values["`if`"].line == f.__code__.co_firstlineno + 1


def test_return_in_a_runtime_loop_from_a_static_if():
    def f(n):
        for i in range(n):
            if const_expr(True):
                return i  # here

    assert "`return` in a runtime `for` loop" in str(refused(f))


def test_raise_under_a_runtime_if():
    def f(n):
        if n > 0:
            raise ValueError("x")  # here

    error = refused(f)
    assert "`raise` under a runtime `if`" in str(error) and "cute.testing.assert_" in error.hint


def test_assert_on_a_runtime_value():
    def f(n):
        assert n > 0, "positive"  # here

    error = refused(f)
    assert "`assert` on a value known only at run time" in str(error) and "cute.testing.assert_" in error.hint


def test_name_defined_in_one_branch_only():
    def f(n):
        if n > 0:
            x = n
        return x + 1  # here

    error = refused(f)
    assert "`x` is used, but only one branch of a runtime `if` gives it a value" in str(error)
    assert error.values["`if`"].line == f.__code__.co_firstlineno + 1
    assert "before the `if` or in both branches" in error.hint


@pytest.mark.parametrize("use", ["isinstance(x, int)", "x.value", "x()", "[*x]", "x == 1", "f'{x}'", "x and True"])
def test_every_use_of_an_undefined_name(use):
    text = f"def f(n):\n    if n > 0:\n        x = n\n    y = {use}\n    return n\n"
    name = f"<undefined {use}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {}
    exec(compile(text, name, "exec"), scope)
    with pytest.raises(CompileError, match="`x` is used") as caught:
        trace(scope["f"])
    assert caught.value.location.line == 4


def test_name_defined_in_a_loop_that_may_not_run():
    def f(n):
        for i in range(n):
            last = i
        return last + 0  # here

    error = refused(f)
    assert "`last` is used, but it has no value if the `for` loop runs zero times" in str(error)


def test_type_change_across_a_branch():
    def f(n, y):
        x = n
        if n > 0:  # here
            x = y
        return x

    error = refused(f, Int32, Float32)
    assert "`x` has different types in the branches of a runtime `if`" in str(error)
    assert assigned(error) == ["x = y"]
    assert error.values.items() >= {"before": "Int32", "then": "Float32", "else": "Int32"}.items()


def test_different_types_of_a_new_name():
    def f(n, y):
        if n > 0:
            x = y
        else:
            x = n
        return x + 1  # here

    error = refused(f, Int32, Float32)
    assert error.values["then"] == "Float32" and error.values["else"] == "Int32"
    assert assigned(error) == ["x = y", "x = n"]


def test_unused_type_change_is_allowed():
    def f(n, y):
        x = n
        z = x
        if n > 0:
            x = y
        return z

    assert compiled(f, Int32, Float32)(3, 1.0) == 3


def test_type_change_in_a_loop():
    def f(n, y):
        x = n
        for i in range(n):  # here
            x = x + y
        return x

    error = refused(f, Int32, Float32)
    assert "`x` changes its type in a runtime `for` loop" in str(error)
    assert error.values.items() >= {"before": "Int32", "after an iteration": "Float32"}.items()
    assert assigned(error) == ["x = x + y"]


def test_type_change_names_the_line_that_assigns():
    def f(n, y):
        box, last = State(n + 0), n
        for i in range(n):
            last = i
            if i > 2:  # here
                box.count = y
            elif i > 1:
                box.count += 1
        return box.count + last

    assert assigned(refused(f, Int32, Float32)) == ["box.count = y", "box.count += 1"]

    def g(n, y):
        x = n
        while n > 0:  # here
            n -= 1
            if n > 2:
                x = n + 1
            x: object = x * y
            for k in range(2):
                (x, _z) = (x + k, 1)
        return x

    error = refused(g, Int32, Float32)
    assert assigned(error) == ["x = n + 1", "x: object = x * y", "(x, _z) = (x + k, 1)"]
    first = g.__code__.co_firstlineno
    assert [row for row in error.values if row.startswith("line")] == [f"line {first + n}" for n in (5, 6, 8)]


def test_type_change_inside_a_tuple_names_the_item():
    def f(n, y):
        pair = (1, (n, 2))
        while n > 0:  # here
            n -= 1
            pair = (1, (y, 2))
        return pair[1][0]

    assert "`pair[1][0]` changes its type in a runtime `while` loop" in str(refused(f, Int32, Float32))


def test_none_to_value():
    def f(n):
        x = None
        if n > 0:  # here
            x = n
        return 0 if x is None else x

    error = refused(f)
    assert error.values["then"] == "Int32" and error.values["else"] == "None"


def test_objects_of_compile_time_that_differ():
    def f(n):
        name = "a"
        if n > 0:  # here
            name = "b"
        return n if name == "a" else 0

    assert "`name` has different values of compile time in the branches" in str(refused(f))


def test_ternary_of_two_types():
    def f(n, y):
        return n if n > 0 else y  # here

    error = refused(f, Int32, Float32)
    assert "the conditional expression has different types" in str(error)


def test_list_rebound_under_a_runtime_if():
    def f(n):
        xs = [1, 2]
        if n > 0:  # here
            xs = [3, 4]
        return xs[0]

    error = refused(f)
    assert "the Python list `xs`" in str(error) and "const_expr" in error.hint


def test_list_that_grows_in_a_runtime_region():
    def f(n):
        xs = [1, 2]
        for i in range(n):  # here
            xs.append(i)
        return xs[0]

    assert "the Python list `xs` changes its length inside a runtime region" in str(refused(f))

    def g(n):
        xs = [1, 2]
        if n > 0:  # here
            xs.append(7)
        return len(xs)

    assert "the Python list `xs` changes its length" in str(refused(g))


def test_a_string_that_changes_in_a_loop():
    def f(n):
        name = "a"
        for i in range(n):  # here
            name = name + "b"
        return n if name == "ab" else 0

    assert "`name` changes in a runtime `for` loop, but it exists at compile time only" in str(refused(f))


def test_an_object_that_is_assigned_and_changed_in_place():
    def f(n):
        state = State(n + 0)
        alias = state
        for i in range(n):  # here
            state.advance(1)
            state = State(state.count + 1)
        return state.count, alias.count

    error = refused(f)
    assert "`state` gets another object in a runtime `for` loop that also changes" in str(error)
    assert assigned(error) == ["state = State(state.count + 1)"]
    assert "to give it new values assign `state.count = ...`" in error.hint


class Plain:
    def __init__(self, count):
        self.count = count

    def advance(self, by):
        self.count += by


def test_a_name_that_becomes_an_alias_of_what_the_loop_changes():
    def f(n):
        total, recent = Plain(n + 0), Plain(n + 1)
        for i in range(n):  # here
            recent = total
            recent.advance(1)
        return total.count + recent.count

    error = refused(f)
    assert "`recent` gets another object in a runtime `for` loop that also changes its object" in str(error)
    assert assigned(error) == ["recent = total"]
    assert error.hint == (
        "in the loop use `total` itself or a new name for it in place of `recent`, or assign `recent.count = ...`"
    )


def test_a_failed_region_leaves_nothing_behind():
    def f(n):
        x = 0
        try:
            for i in range(n):
                if i > 2:
                    x += 1
                    while x > 5:
                        raise_value_error()
        except ValueError:
            x = 7
        try:
            if n > 0:
                raise_value_error()
        except ValueError:
            x += n
        return x

    assert compiled(f)(3) == 10
    assert "scf" not in trace(f)


def test_a_failed_region_gives_variables_their_values_back():
    def f(n):
        x, state, items = n, State(n + 0), [n]
        try:
            if n > 0:
                x = n + 1
                items[0] = x * 2
                state.advance(x)
                for i in range(n):
                    x += i
                    state.advance(i)
                    raise_value_error()
        except ValueError:
            pass
        return x, state.count, items[0]

    assert compiled(f)(3) == (3, 3, 3)


def raise_value_error():
    raise ValueError("at trace time")


def test_a_log_outside_the_program_is_no_part_of_it():
    log = []

    def f(n):
        for i in range(n):
            log.append("turn")
        return n

    assert compiled(f)(3) == 3
    assert log == ["turn"]


def test_constexpr_of_a_runtime_value():
    def f(n):
        if const_expr(n > 0):  # here
            n += 1
        return n

    assert "`const_expr` of a value known only at run time" in str(refused(f))

    def g(n):
        for i in range_constexpr(n):  # here
            n += 1
        return n

    assert "`range_constexpr` of a value" in str(refused(g))


def test_range_of_wrong_things():
    def f(n):
        for i in range(1.5):  # here
            n += 1

    with pytest.raises(CompileError, match="range takes integers, got float"):
        trace(f)

    def g(n):
        for i in range(0, n, 0):  # here
            n += 1

    assert "the step of `range` is zero" in str(refused(g))

    def h(n):
        for i in range(n):  # here
            pass

    assert "`range` takes integers, got Float32" in str(refused(h, Float32))


def test_a_loop_variable_of_another_type():
    def f(n, m):
        i = n
        for i in range(m):  # here
            pass
        return i

    assert "`i` changes its type" in str(refused(f, Int32, Int64))


def test_global_and_underscore():
    def f(n):
        global something  # here
        something = n

    assert "`global something` in a compiled function" in str(refused(f))

    def g(n):
        for _ in range(n):
            n = _ + 1  # here

    assert "`_` is read" in str(refused(g))


KEPT: list[Any] = []


def test_a_runtime_value_that_leaks_into_a_list_outside():
    def f(n):
        for i in range(n):  # here
            KEPT.append(i)
        return n

    assert "the Python list `KEPT` changes its length" in str(refused(f))
    assert KEPT == []


def test_introspection_in_a_body():
    def f(n):
        if n is not None:
            x = locals()["n"]  # here
        return x

    assert "`locals` inside an `if`, loop or `with`" in str(refused(f))


def test_an_endless_while_of_python(monkeypatch):
    monkeypatch.setattr(sys.modules["tilewright.lang.control.dispatch"], "_TRACED_ITERATIONS", 50)

    def f(n):
        i = 0
        while i >= 0:  # here
            i += 1
        return i

    assert "50 iterations" in str(refused(f))


def test_a_dynamic_loop_in_code_that_is_only_traced():
    def helper(n):
        for i in control.range(n):
            n += 1
        return n

    with pytest.raises(CompileError, match="only traced"):
        trace(lambda n: helper(n))


def test_a_constant_condition_warns_once_a_line():
    def f(n):
        x = Int32(5)
        if x > 3:
            n += 1
        if const_expr(x > 3):
            n += 1
        if 5 > 3:
            n += 1
        return n

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        trace(f)
    found = [w for w in caught if w.category is ConstantConditionWarning]
    assert len(found) == 1
    assert (found[0].filename, found[0].lineno) == (__file__, f.__code__.co_firstlineno + 2)


def load(path: Any, text: str, name: str) -> Any:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_file_edited_after_import(tmp_path):
    path = tmp_path / "edited_kernel.py"
    fn = load(path, "def f(n):\n    return n + 1\n", "edited_kernel").f
    source = capture(fn)
    path.write_text("# new\n\ndef f(n):\n    return n + 2\n")
    linecache.checkcache(str(path))
    with pytest.raises(CompileError, match="is not the one that was imported") as caught:
        rewrite(fn)
    assert str(path) in str(caught.value)
    assert rewrite(fn, source)(1) == 2


def test_an_edit_in_place_is_noticed(tmp_path):
    path = tmp_path / "edited_constant.py"
    fn = load(path, "def f(n):\n    return n + 1\n", "edited_constant").f
    path.write_text("def f(n):\n    return n + 27\n")
    with pytest.raises(CompileError, match="edited after the import"):
        rewrite(fn)
    path.write_text("def f(n:\n")
    with pytest.raises(CompileError, match="can no longer be parsed"):
        rewrite(fn)


def test_source_that_is_not_there():
    scope: dict[str, Any] = {}
    exec("def f(n):\n    return n\n", scope)
    with pytest.raises(CompileError, match="the source of `f` is not available") as caught:
        rewrite(scope["f"])
    assert "preprocess=False" in caught.value.hint


def test_async_functions_are_refused():
    async def f(n):
        return n

    with pytest.raises(CompileError, match="async functions"):
        rewrite(f)
