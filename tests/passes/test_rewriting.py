"""Rules: what they change, what a rewriter offers, where they end, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright import PassError, passes
from tilewright.ir import mlir
from tilewright.ir.context import compile_context

FLOATS = """
func.func @f(%x: f32, %v: vector<4xf32>, %n: i32, %p: i1) -> (f32, vector<4xf32>, i32) {
  %two = arith.constant 2.0 : f32
  %twos = arith.constant dense<2.0> : vector<4xf32>
  %mixed = arith.constant dense<[2.0, 2.0, 2.0, 3.0]> : vector<4xf32>
  %int = arith.constant 2 : i32
  %a = arith.mulf %x, %two : f32
  %b = arith.mulf %v, %twos : vector<4xf32>
  %c = arith.mulf %b, %mixed : vector<4xf32>
  %d = arith.muli %n, %int : i32
  %e = scf.if %p -> (f32) {
    %g = arith.mulf %a, %two : f32
    scf.yield %g : f32
  } else {
    scf.yield %a : f32
  }
  return %e, %c, %d : f32, vector<4xf32>, i32
}
"""


@passes.rule("arith.mulf", "arith.muli")
def double_by_adding(op, rewriter):
    x, factor = op.operands
    if passes.is_constant(factor, 2):
        return rewriter.build(op.name.replace("mul", "add"), x.type, x, x)


@pytest.fixture
def module():
    with compile_context():
        yield mlir.ir.Module.parse(FLOATS).operation


def names(module):
    return [op.name for op in passes.operations(module)]


def test_numbers_vectors_and_what_is_in_regions(module):
    assert passes.rewrite(module, [double_by_adding]) == 4
    assert module.verify()
    found = names(module)
    assert found.count("arith.addf") == 3 and found.count("arith.addi") == 1
    assert found.count("arith.mulf") == 1, "the vector of 2, 2, 2, 3 is no 2"
    assert found.count("arith.constant") == 1, "constants that nothing uses are gone"


def test_once_or_until_nothing_changes(module):
    @passes.rule("arith.addf")
    def subtract_negative(op, rewriter):
        x, y = op.operands
        return rewriter.build("arith.subf", x.type, x, rewriter.build("arith.negf", x.type, y))

    assert passes.rewrite(module, [double_by_adding, subtract_negative], greedy=False) == 4
    assert names(module).count("arith.subf") == 0, "what rules make is not visited"
    assert passes.rewrite(module, [subtract_negative]) == 3
    assert names(module).count("arith.subf") == 3 and module.verify()


def test_what_uses_a_replaced_value_is_visited_again(module):
    @passes.rule("arith.mulf")
    def fold(op, rewriter):
        left, right = (passes.constant_of(value) for value in op.operands)
        if left is not None and right is not None:
            return rewriter.constant(left * right, op.results[0].type)

    with mlir.ir.InsertionPoint(module.regions[0].blocks[0]), module.location:
        chain = mlir.ir.Operation.parse(
            "func.func @g() -> f32 { %a = arith.constant 1.5 : f32 "
            + " ".join(f"%m{n} = arith.mulf %{f'm{n - 1}' if n else 'a'}, %a : f32" for n in range(6))
            + " return %m5 : f32 }"
        ).operation
    assert passes.rewrite(chain, [fold]) == 6
    (constant,) = [op for op in passes.operations(chain) if op.name == "arith.constant"]
    assert passes.constant_of(constant.results[0]) == 1.5**7


def test_erasing_with_what_is_inside(module):
    seen = []

    @passes.rule("*")
    def drop_branches(op, rewriter):
        seen.append(op.name)
        if op.name == "scf.if":
            rewriter.replace(op, op.operands[0].owner.arguments[0])

    passes.rewrite(module, [drop_branches], greedy=False)
    assert "scf.yield" not in seen and "scf.if" not in names(module) and module.verify()


def test_inserting_elsewhere(module):
    @passes.rule("arith.muli")
    def around(op, rewriter):
        with rewriter.at(after=op):
            rewriter.build(
                "arith.negf",
                op.parent.regions[0].blocks[0].arguments[0].type,
                op.parent.regions[0].blocks[0].arguments[0],
            )
        with rewriter.at(before=op.operands[1].owner):
            rewriter.build("math.absi", op.operands[0].type, op.operands[0])
        return True

    assert passes.rewrite(module, [around], greedy=False) == 1
    found = names(module)
    assert found[found.index("arith.muli") + 1] != "math.absi"
    assert found.index("math.absi") < found.index("arith.muli") and module.verify()


def test_results_that_are_wrapped():
    """Each load is squared; the load itself stays."""

    class Squared(passes.Rewrite):
        name = "squared"
        greedy = False

        @passes.rule("cute.load", "cute.load_tensor")
        def squared(self, op, rewriter):
            return rewriter.wrap(op, lambda x: rewriter.build("arith.mulf", x.type, x, x))

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        value = x[i]
        y[i] = value + value
        cute.local_tile(y, (4,), (i + 2,)).store(cute.local_tile(x, (4,), (i,)).load())

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=1, block=8)

    x, y = np.arange(32, dtype=np.float32), np.zeros(40, np.float32)
    item = Squared()
    cute.compile(host, x, y, passes=item)(x, y)
    assert item.changes == 2 and np.array_equal(y, np.concatenate([2 * x[:8] ** 2, x**2]))


@pytest.mark.parametrize("by_mlir", [False, True])
def test_locations_are_those_of_the_operation(by_mlir):
    class Negate(passes.Rewrite):
        name = "negate"

        @passes.rule("arith.addf")
        def negate(self, op, rewriter):
            x, y = op.operands
            if by_mlir:
                return mlir.arith.SubFOp(x, mlir.arith.NegFOp(y).result)
            return rewriter.build("arith.subf", x.type, x, rewriter.build("arith.negf", x.type, y))

    lines = []

    def note(item, module):
        if item.name == "negate":
            lines.extend(
                passes.source_location(op.location).line
                for op in passes.operations(module)
                if op.name in ("arith.subf", "arith.negf")
            )

    x, out = floats()
    cute.compile(double, x, out, passes=Negate, after_pass=note)(x, out)
    assert len(lines) == 2 and len(set(lines)) == 1 and (out == 2 * x).all()
    source = Path(double.function.__code__.co_filename).read_text().splitlines()
    assert "+" in source[lines[0] - 1]


def compiled(rule, **fields):
    cls = type("Wrong", (passes.Rewrite,), {"name": "wrong", "rule": rule, **fields})
    return cute.compile(double, *floats(), passes=cls)


def swap(self, op, rewriter):
    return rewriter.build("arith.addf", op.results[0].type, op.operands[1], op.operands[0])


def grow(self, op, rewriter):
    x, y = op.operands
    return rewriter.build(
        "arith.addf", x.type, rewriter.build("arith.addf", x.type, x, y), rewriter.constant(0.0, x.type)
    )


def swap_by_mlir(self, op, rewriter):
    return mlir.arith.AddFOp(op.operands[1], op.operands[0])


def says_it_changed(self, op, rewriter):
    return True


@pytest.mark.parametrize("rule", [swap, grow, swap_by_mlir, says_it_changed])
def test_rules_without_an_end(rule):
    with pytest.raises(
        PassError, match=f"rule {rule.__name__} finds no end: .* changes, the last of arith.addf"
    ) as caught:
        compiled(passes.rule("arith.addf")(rule))
    assert "greedy = False" in caught.value.hint
    assert caught.value.location.file == double.function.__code__.co_filename
    compiled(passes.rule("arith.addf")(rule), greedy=False)


def test_two_rules_that_undo_each_other(module):
    @passes.rule("arith.mulf")
    def there(op, rewriter):
        return rewriter.build("arith.divf", op.results[0].type, *op.operands)

    @passes.rule("arith.divf")
    def back(op, rewriter):
        return rewriter.build("arith.mulf", op.results[0].type, *op.operands)

    with pytest.raises(PassError, match=r"rule (there|back) finds no end"):
        passes.rewrite(module, [there, back])


def other_type(self, op, rewriter):
    return rewriter.build("arith.extf", mlir.ir.F64Type.get(), op.operands[0])


def two_values(self, op, rewriter):
    return list(op.operands)


def no_value(self, op, rewriter):
    return 3


def fails(self, op, rewriter):
    return op.operands[7]


def erases_what_is_used(self, op, rewriter):
    rewriter.erase(op)


def erases_and_gives(self, op, rewriter):
    zero = rewriter.constant(0.0, op.results[0].type)
    rewriter.replace(op, op.operands[0])
    return zero


def made_from_itself(self, op, rewriter):
    return rewriter.build("arith.negf", op.results[0].type, op.results[0])


def wraps_in_another_type(self, op, rewriter):
    return rewriter.wrap(op, lambda x: rewriter.build("arith.extf", mlir.ir.F64Type.get(), x))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (made_from_itself, "arith.addf is replaced by a value that is made from its own result"),
        (wraps_in_another_type, "the result of arith.addf is changed to another type"),
        (other_type, "arith.addf is replaced by values of other types"),
        (two_values, "arith.addf is replaced by values of other types"),
        (no_value, "a rule gives values, not int"),
        (fails, "rule fails failed at arith.addf"),
        (erases_what_is_used, "arith.addf is erased while its result is used"),
        (erases_and_gives, "rule erases_and_gives erases arith.addf and gives a value for it"),
    ],
)
def test_wrong_rules_are_named_with_the_line(rule, words):
    with pytest.raises(PassError, match=words) as caught:
        compiled(passes.rule("arith.addf")(rule))
    assert caught.value.location.file == double.function.__code__.co_filename
    if rule is fails:
        assert caught.value.values["reason"].startswith("IndexError")
        assert caught.value.values["raised at"] == f"{__file__}:{fails.__code__.co_firstlineno + 1}"


def test_what_has_no_result_is_not_wrapped():
    class Wrap(passes.Rewrite):
        name = "wrap"

        @passes.rule("cute.store")
        def wrap(self, op, rewriter):
            return rewriter.wrap(op, lambda x: x)

    with pytest.raises(PassError, match=r"cute\.store has 0 results, and one is wrapped"):
        cute.compile(double, *floats(), passes=Wrap)


def test_passes_without_rules_and_rules_without_names():
    class Empty(passes.Rewrite):
        name = "empty"

    with pytest.raises(PassError, match="pass empty has no rules"):
        cute.compile(double, *floats(), passes=Empty)
    with pytest.raises(PassError, match="a rule needs the names of its operations"):

        @passes.rule
        def bare(op, rewriter):
            return None


def test_rules_of_a_base_class_and_overridden_ones():
    class Base(passes.Rewrite):
        name = "base"

        @passes.rule("arith.addf")
        def zero(self, op, rewriter):
            return rewriter.constant(self.number, op.results[0].type)

    class Sub(Base):
        name = "sub"
        number = 7.0

    x, out = floats()
    cute.compile(double, x, out, passes=Sub)(x, out)
    assert (out == 7).all()

    class Other(Sub):
        name = "other"

        def zero(self, op, rewriter):
            return rewriter.constant(9.0, op.results[0].type)

    item = Other()
    cute.compile(double, x, out, passes=item)(x, out)
    assert (out == 9).all() and item.changes == 1, "the method in its place has the names of the rule"


def test_many_operations_take_little_time():
    """The list of what is left to visit is not searched from its beginning each time."""
    lines = "\n".join(f"%m{n} = arith.mulf %{f'm{n - 1}' if n else 'x'}, %two : f32" for n in range(20000))
    text = f"func.func @f(%x: f32) -> f32 {{ %two = arith.constant 2.0 : f32\n{lines}\nreturn %m19999 : f32 }}"
    with compile_context():
        module = mlir.ir.Module.parse(text).operation
        assert passes.rewrite(module, [double_by_adding]) == 20000
        assert names(module).count("arith.addf") == 20000


@pytest.mark.parametrize("dtype", [cutlass.Float32, cutlass.Float16, cutlass.Int32, cutlass.Uint8, cutlass.Float64])
def test_strength_reduction_by_values(dtype):
    class Reduce(passes.Rewrite):
        name = "reduce-strength"
        rule = passes.rule("arith.mulf", "arith.muli")(lambda self, op, rewriter: double_by_adding(op, rewriter))

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        y[i] = x[i] * dtype(2)
        part = cute.local_tile(x, (4,), (i,)).load()
        cute.local_tile(y, (4,), (i + 2,)).store(dtype(2) * part * dtype(2))

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=1, block=8)

    numpy = {
        cutlass.Float32: "f4",
        cutlass.Float16: "f2",
        cutlass.Int32: "i4",
        cutlass.Uint8: "u1",
        cutlass.Float64: "f8",
    }
    x = np.arange(32).astype(numpy[dtype])
    y = np.zeros(40, x.dtype)
    item = Reduce()
    cute.compile(host, x, y, passes=item)(x, y)
    assert item.changes >= 2 and (y[:8] == 2 * x[:8]).all() and (y[8:] == 4 * x).all()


def test_the_operation_that_made_a_value(module):
    products = [op for op in passes.operations(module) if op.name == "arith.mulf"]
    of_products = products[2]  # %c, of %b and a constant
    left, right = of_products.operands
    assert passes.defining_op(left).results[0] == products[1].results[0]
    assert passes.defining_op(left, "arith.addf", "arith.mulf").name == "arith.mulf"
    assert passes.defining_op(left, "arith.addf") is None
    assert passes.defining_op(right).name == "arith.constant"
    assert passes.defining_op(products[0].operands[0]) is None, "an argument of the function"
