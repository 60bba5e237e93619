"""scf-to-cf: the blocks that loops and branches become, beside those that MLIR's own conversion makes; and the time."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tilewright.ir import mlir
from tilewright.ir.context import compile_context
from tilewright.ir.walk import operations
from tilewright.passes.pipeline import PassManager
from tilewright.passes.scf_to_cf import ScfToCf

HEAD = "func.func @f(%c: i1, %a: f32, %b: f32, %n: i32, %one: i32) -> f32 {\n"
PROGRAMS = {
    "if": """
        %r = scf.if %c -> f32 { %x = arith.addf %a, %b : f32  scf.yield %x : f32 } else { scf.yield %b : f32 }
        return %r : f32""",
    "if without else": """
        scf.if %c { %x = math.sqrt %a : f32 }
        scf.if %c { } else { %x = math.sqrt %b : f32 }
        return %a : f32""",
    "ifs in ifs": """
        %r:2 = scf.if %c -> (f32, i32) {
          %s = scf.if %c -> f32 { scf.yield %a : f32 } else { scf.yield %b : f32 }
          %t = arith.addf %s, %s : f32
          scf.yield %t, %n : f32, i32
        } else {
          scf.if %c { %y = math.sqrt %b : f32 }
          scf.yield %a, %one : f32, i32
        }
        %m = arith.mulf %r#0, %r#0 : f32
        return %m : f32""",
    "for": """
        %r = scf.for %i = %one to %n step %one iter_args(%v = %a) -> (f32) : i32 {
          %w = arith.addf %v, %b : f32
          scf.yield %w : f32
        } {llvm.loop_annotation = #llvm.loop_annotation<mustProgress = true>}
        scf.for unsigned %i = %one to %n step %one : i32 { %w = arith.addi %i, %n : i32 }
        return %r : f32""",
    "nest": """
        %r = scf.for %i = %one to %n step %one iter_args(%v = %a) -> (f32) : i32 {
          %s = scf.for %j = %one to %i step %one iter_args(%w = %v) -> (f32) : i32 {
            %k = scf.if %c -> f32 { scf.yield %w : f32 } else { scf.yield %b : f32 }
            scf.yield %k : f32
          }
          %t = arith.addf %s, %v : f32
          scf.yield %t : f32
        }
        return %r : f32""",
    "while": """
        %w:2 = scf.while (%x = %n, %y = %a) : (i32, f32) -> (f32, i32) {
          %t = arith.cmpi slt, %x, %one : i32
          scf.condition(%t) %y, %x : f32, i32
        } do {
        ^bb0(%p: f32, %q: i32):
          %m = arith.addi %q, %one : i32
          scf.yield %m, %p : i32, f32
        } attributes {llvm.loop_annotation = #llvm.loop_annotation<mustProgress = true>}
        return %w#0 : f32""",
    "do while": """
        %w:2 = scf.while (%x = %a, %y = %b) : (f32, f32) -> (f32, f32) {
          %t = arith.cmpf olt, %x, %y : f32
          scf.if %t { %s = math.sqrt %x : f32 }
          scf.condition(%t) %y, %x : f32, f32
        } do {
        ^bb0(%p: f32, %q: f32):
          scf.yield %p, %q : f32, f32
        } attributes {llvm.loop_annotation = #llvm.loop_annotation<mustProgress = true>}
        return %w#1 : f32""",
    "swapped": """
        %w:2 = scf.while (%x = %a, %y = %b) : (f32, f32) -> (f32, f32) {
          %t = arith.cmpf olt, %x, %y : f32
          scf.condition(%t) %x, %y : f32, f32
        } do {
        ^bb0(%p: f32, %q: f32):
          scf.yield %q, %p : f32, f32
        }
        return %w#1 : f32""",
}


@contextmanager
def _module(text: str) -> Iterator[Any]:
    with compile_context():
        yield mlir.ir.Module.parse(text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_blocks_are_those_of_mlir(name: str) -> None:
    """MLIR puts a branch into a block of its own after each `scf.if`; `canonicalize` leaves neither compiler's."""
    text = HEAD + PROGRAMS[name] + "\n}"
    with _module(text) as ours:
        theirs = mlir.ir.Module.parse(text)
        PassManager([ScfToCf()]).run(ours.operation)
        assert ours.operation.verify()
        _upstream(theirs, "convert-scf-to-cf")
        assert "scf." not in str(ours)
        assert _annotated(str(ours), " {loop") == _annotated(str(theirs), " {llvm.loop")
        for module in (ours, theirs):
            _upstream(module, "canonicalize{region-simplify=normal}")
        assert str(ours) == str(theirs).replace("{llvm.loop_annotation", "{loop_annotation")


def _annotated(text: str, start: str) -> list[str]:
    """The operations that carry a loop's annotation; the numbers of blocks and values are left out."""
    lines = [line.partition(start) for line in text.splitlines()]
    return [re.sub(r"\^bb\d+|%\w+", "_", before) for before, found, _ in lines if found]


def _upstream(module: Any, passes: str) -> None:
    mlir.passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)


def test_other_operations_of_scf_are_left() -> None:
    text = HEAD + """
        %r = scf.execute_region -> f32 { %q = scf.if %c -> f32 { scf.yield %a : f32 } else { scf.yield %b : f32 }
          scf.yield %q : f32 }
        scf.if %c { %x = math.sqrt %a : f32 }
        return %r : f32\n}"""  # fmt: skip
    with _module(text) as module:
        PassManager([ScfToCf()]).run(module.operation)
        assert [op.name for op in operations(module.operation) if op.name.startswith("scf.")] == [
            "scf.execute_region", "scf.if", "scf.yield", "scf.yield", "scf.yield",
        ]  # fmt: skip
        _upstream(module, "convert-scf-to-cf")
        assert "scf." not in str(module)


def _seconds(kind: str, count: int) -> float:
    """Processor time of lowering `count` branches or loops in a row."""
    bodies = {
        "if": "scf.if %c { %x{} = math.sqrt %a : f32 }",
        "for": "scf.for %i{} = %one to %n step %one : i32 { %x{} = math.sqrt %a : f32 }",
    }
    text = HEAD + "\n".join(bodies[kind].replace("{}", str(place)) for place in range(count)) + "\nreturn %a : f32 }"
    with _module(text) as module:
        start = time.thread_time()
        PassManager([ScfToCf()]).run(module.operation)
        assert len(operations(module.operation)) > 3 * count
        return time.thread_time() - start


@pytest.mark.parametrize("kind", ["if", "for"])
def test_time_grows_with_the_branches(kind: str) -> None:
    """Eight times as many take eight times as long, 64 times where each costs what follows it."""
    few = min(_seconds(kind, 500) for _ in range(3))
    many = min(_seconds(kind, 4000) for _ in range(2))
    assert many < 24 * few
