"""Pass lists and passes: as text, as objects, in a compilation."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright import Pass, PassError, PassManager
from tilewright.ir import mlir
from tilewright.ir.context import compile_context
from tilewright.ir.walk import operations
from tilewright.passes.pipeline import REGISTRY, make, register
from tilewright.passes.place_shared_memory import PlaceSharedMemory


class CountLoads(Pass):
    """Counts `cute.load`."""

    name = "count-loads"
    options = {"scale": 1, "label": "loads", "quiet": False}  # noqa: RUF012

    def run(self, module):
        self.count = 0

        def visit(op):
            self.count += self["scale"] * (op.name == "cute.load")
            return mlir.ir.WalkResult.ADVANCE

        module.walk(visit)


@pytest.fixture
def registered():
    register(CountLoads)
    yield CountLoads
    del REGISTRY["count-loads"]


def compiled(*passes, **given):
    return cute.compile(double, *floats(), passes=list(passes), **given)


def test_a_pass_of_twenty_lines_counts_loads():
    counter = CountLoads(scale=10)
    executor = compiled(counter)
    assert counter.count == 10 * executor.stages["cute"].count('"cute.load"') == 20
    assert executor.pipeline.startswith(
        "builtin.module(expand-tiles,vectorize-loops,promote-register-tensors,pipeline-loops,annotate-loops,"
        "place-shared-memory,count-loads{scale=10},"
        "expand-views,cute-to-nvvm{"
    )
    assert "count-loads{scale=10}" in [name for name, _ in executor.pass_timings]


def test_places_in_the_list():
    seen = []

    class Look(Pass):
        name = "look"
        options = {"at": ""}  # noqa: RUF012

        def run(self, module):
            seen.append((self["at"], any(op.operation.name == "gpu.module" for op in module.regions[0].blocks[0])))

    first = cutlass.before("place-shared-memory", Look(at="first"))
    last = cutlass.after("cute-to-nvvm", Look(at="last"))
    text = compiled(first, last).pipeline
    assert seen == [("first", True), ("last", True)]
    assert text.index("look{at=first}") < text.index("place-shared-memory") < text.index("look{at=last}")
    with pytest.raises(PassError, match="no pass 'nothing' to insert look at") as caught:
        compiled(cutlass.before("nothing", Look()))
    assert "cute-to-nvvm" in caught.value.hint


def test_lists_as_text(registered):
    for text in (
        "builtin.module(count-loads)",
        "builtin.module(count-loads{scale=3 label=all quiet=true},place-shared-memory)",
        "builtin.module(gpu.module(canonicalize,cse),count-loads{scale=2})",
        "builtin.module()",
    ):
        assert str(PassManager.parse(text)) == text
    manager = PassManager.parse("builtin.module( count-loads{scale=3 quiet} , place-shared-memory )")
    first = manager.passes[0]
    assert (first["scale"], first["label"], first["quiet"]) == (3, "loads", True)
    assert isinstance(manager.passes[1], PlaceSharedMemory)
    built = PassManager().add_pass("count-loads", {"scale": 4}).build_pipeline("builtin.module(place-shared-memory)")
    assert built == "builtin.module(count-loads{scale=4},place-shared-memory)"


def test_a_registered_pass_by_its_name(registered):
    text = "builtin.module(count-loads{scale=7},cute-to-nvvm)"
    executor = cute.compile(double, *floats(), pipeline=text)
    x, out = floats()
    executor(x, out)
    assert (out == 2 * x).all() and "count-loads{scale=7}" in executor.pipeline


@pytest.mark.parametrize(
    "text, words",
    [
        ("count-loads", "not a pipeline"),
        ("builtin.module(count-loads{size=1})", "pass count-loads has no option 'size'"),
        ("builtin.module(count-loads{scale=x})", "'x' is not an integer"),
        ("builtin.module(a(b)", "brackets do not match"),
    ],
)
def test_texts_that_are_no_list(registered, text, words):
    with pytest.raises(PassError, match=words):
        PassManager.parse(text)


def test_unknown_passes_are_named_when_they_run():
    with pytest.raises(PassError, match="unknown pass 'no-such-pass'") as caught:
        cute.compile(double, *floats(), pipeline="builtin.module(no-such-pass)")
    assert "cute-to-nvvm" in caught.value.hint


def test_a_missing_requirement():
    class Late(Pass):
        name = "late"
        requires = ("early",)

        def run(self, module):
            raise AssertionError

    with pytest.raises(PassError, match=r"^Error: Pass late requires early but early was not run") as caught:
        compiled(Late())
    assert caught.value.hint == "put early before late" and caught.value.location.file == __file__

    class Early(Pass):
        name = "early"

        def run(self, module):
            pass

    class Fine(Late):
        def run(self, module):
            pass

    compiled(Early(), Fine())


def make_operation(name):
    class Maker(Pass):
        """Puts an operation at the start of each kernel."""

        def run(self, module):
            for op in module.regions[0].blocks[0]:
                if op.operation.name == "gpu.module":
                    function = op.operation.regions[0].blocks[0].operations[0].operation
                    start = mlir.ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0])
                    with start, mlir.ir.Location.file("made.py", 12, 5):
                        mlir.ir.Operation.create(name)

    Maker.name = "maker"
    return Maker()


@pytest.mark.parametrize("name", ["custom.my_op", "cute.no_such_op", "arith.frobnicate"])
def test_an_operation_of_no_dialect(name):
    """Where MLIR would end the process."""
    with pytest.raises(PassError, match=f"^Error: unknown operation '{name}'") as caught:
        compiled(make_operation(name))
    assert caught.value.values == {"made by": "pass maker"} and "@dsl_user_op" in caught.value.hint
    assert (caught.value.location.file, caught.value.location.line) == ("made.py", 12)
    x, out = floats()
    compiled()(x, out)
    assert (out == 2 * x).all()


@pytest.mark.parametrize("place", ["place-shared-memory", "expand-views"])
def test_an_operation_that_may_not_be_left(place):
    class Leave(Pass):
        name = "leave"

        def run(self, module):
            with (
                mlir.ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]),
                mlir.ir.Location.file("made.py", 3, 1),
            ):
                mlir.ir.Operation.create(
                    "memref.global",
                    attributes={
                        "sym_name": mlir.ir.StringAttr.get("g"),
                        "type": mlir.ir.TypeAttr.parse("memref<4xi32>"),
                    },
                )

    with pytest.raises(PassError, match=r"operation 'memref\.global' is left after stage cute") as caught:
        compiled(cutlass.before(place, Leave()))
    assert caught.value.location.line == 3 and "dialects allowed" in caught.value.values


def test_a_module_that_is_not_valid():
    class Break(Pass):
        name = "break"

        def run(self, module):
            for op in module.regions[0].blocks[0]:
                if op.operation.name == "gpu.module":
                    function = op.operation.regions[0].blocks[0].operations[0].operation
                    list(function.regions[0].blocks[0])[-1].operation.erase()

    with pytest.raises(PassError, match="pass break left a module that is not valid") as caught:
        compiled(Break())
    assert caught.value.nvvm_error


@pytest.mark.parametrize("in_walk", [False, True])
def test_an_exception_in_a_pass(in_walk):
    class Fail(Pass):
        name = "fail"

        def run(self, module):
            def visit(op):
                raise ValueError("mine")

            module.walk(visit) if in_walk else visit(module)

    with pytest.raises(PassError, match="pass fail failed") as caught:
        compiled(Fail())
    assert caught.value.values["reason"] == "ValueError: mine"
    line = Fail.run.__code__.co_firstlineno + 2
    assert caught.value.values["raised at"] == f"{__file__}:{line}"


@pytest.mark.parametrize("in_walk", [False, True])
def test_erasing_what_is_used_is_an_error_and_no_end_of_the_process(in_walk):
    class Erase(Pass):
        name = "erase-loads"

        def run(self, module):
            found = []

            def visit(op):
                if op.name == "cute.load":
                    op.erase() if in_walk else found.append(op)
                return mlir.ir.WalkResult.ADVANCE

            module.walk(visit)
            for op in found:
                op.erase()

    with pytest.raises(PassError) as caught:
        compiled(Erase())
    text = str(caught.value)
    assert "cute.load is erased while its result is used" in text and "replace_all_uses_with" in text


def test_what_is_not_used_is_erased():
    class Erase(Pass):
        name = "erase-stores"

        def run(self, module):
            stores = [op for op in operations(module) if op.name == "cute.store"]
            for op in stores:
                op.erase()
            self.erased = len(stores)

    erasing = Erase()
    assert "st.global" not in compiled(erasing).stages["ptx"] and erasing.erased == 1


def test_passes_as_classes_and_as_text(registered):
    executor = compiled(CountLoads, "count-loads{scale=3 quiet=true}")
    assert "count-loads,count-loads{scale=3 quiet=true},expand-views,cute-to-nvvm" in executor.pipeline


@pytest.mark.parametrize("wrong", [3, print, PassManager])
def test_what_is_no_pass_is_refused(wrong):
    with pytest.raises(PassError, match="a pass is expected, not"):
        compiled(wrong)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("scale=many", "option scale of count-loads: 'many' is not an integer"),
        ("quiet=maybe", "neither true nor false"),
    ],
)
def test_options_of_the_wrong_type_are_named(registered, option, words):
    with pytest.raises(PassError, match=words):
        PassManager.parse(f"builtin.module(count-loads{{{option}}})")


def test_the_module_after_each_pass():
    seen = {}
    compiled(CountLoads(), after_pass=lambda item, module: seen.setdefault(str(item).partition("{")[0], str(module)))
    names = [
        "expand-tiles", "vectorize-loops", "promote-register-tensors", "pipeline-loops", "annotate-loops",
        "place-shared-memory", "count-loads",
    ]  # fmt: skip
    assert list(seen)[:7] == names
    assert "cute.load" in seen["count-loads"] and "cute.load" not in seen["cute-to-nvvm"]


def test_errors_of_our_own_pass_through():
    class Refuse(Pass):
        name = "refuse"

        def run(self, module):
            raise PassError("too many loads", hint="use fewer")

    with pytest.raises(PassError, match=r"^too many loads") as caught:
        compiled(Refuse())
    assert caught.value.hint == "use fewer" and caught.value.location.file == __file__


def test_conditions_before_and_after():
    order = []

    class Careful(Pass):
        name = "careful"

        def check(self, module):
            order.append("check")

        def run(self, module):
            order.append("run")

        def ensures(self, module):
            order.append("ensures")
            raise PassError("the promise is broken")

    with pytest.raises(PassError, match="the promise is broken"):
        compiled(Careful())
    assert order == ["check", "run", "ensures"]


def test_passes_without_a_name_or_a_body():
    class Nameless(Pass):
        pass

    class Bodiless(Pass):
        name = "bodiless"

    with pytest.raises(PassError, match="Nameless has no name"):
        register(Nameless)
    with pytest.raises(PassError, match=r"pass bodiless has no run\(module\)"):
        compiled(Bodiless())
    with pytest.raises(PassError, match="pass bodiless has no option 'x'"):
        Bodiless(x=1)


def test_passes_run_on_any_module():
    body = "%c = arith.constant 0 : i32 %b = arith.addi %a, %c : i32 return %b : i32"
    text = f"module {{ func.func @f(%a: i32) -> i32 {{ {body} }} }}"
    with compile_context():
        module = mlir.ir.Module.parse(text)
        seen = []
        manager = PassManager.parse("builtin.module(canonicalize,cse)")
        manager.run(module.operation, after_each=lambda item, _: seen.append(str(item)))
        assert "addi" not in str(module) and seen == ["canonicalize", "cse"]
        assert [run.name for run in manager.runs] == seen and all(run.seconds >= 0 for run in manager.runs)


def test_options_keep_their_types():
    made = make("cute-to-nvvm", {"opt-level": "1", "preserve_line_info": "true", "cubin_chip": "sm_80"})
    assert (made["opt-level"], made["preserve-line-info"], made["cubin-chip"]) == (1, True, "sm_80")
    assert str(made) == "cute-to-nvvm{cubin-chip=sm_80 opt-level=1 preserve-line-info=true}"


# Passes that change code.


class LoadsToConstant(Pass):
    """Replaces each float load by a constant: a rewrite that a user might write."""

    name = "loads-to-constant"
    options = {"value": 1}  # noqa: RUF012

    def run(self, module):
        found = []

        def visit(op):
            if op.name == "cute.load":
                found.append(op)
            return mlir.ir.WalkResult.ADVANCE

        module.walk(visit)
        for op in found:
            with mlir.ir.InsertionPoint(op), op.location:
                constant = mlir.arith.ConstantOp(op.results[0].type, float(self["value"]))
            op.results[0].replace_all_uses_with(constant.result)
            op.erase()


def test_a_pass_that_rewrites():
    executor = compiled(LoadsToConstant(value=21))
    x, out = floats()
    executor(x, out)
    assert (out == 42).all()
    assert '"cute.load"' not in executor.stages["cute"] and "ld.global" not in executor.stages["ptx"]


def test_shared_memory_is_placed_by_alignment():
    @cute.kernel
    def kernel(out: cute.Tensor):
        allocator = cutlass.utils.SmemAllocator()
        first = allocator.allocate_tensor(cute.Int8, cute.make_layout(3))
        second = allocator.allocate_tensor(cute.Float32, cute.make_layout(5), byte_alignment=64)
        third = allocator.allocate_tensor(cute.Float64, cute.make_layout(1))
        first[0], second[0], third[0] = cute.Int8(1), 2.0, cute.Float64(3)
        out[0] = first[0] + second[0] + cute.Float32(third[0])

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=1, block=1)

    out = np.zeros(1, np.float32)
    executor = cute.compile(host, out)
    executor(out)
    assert out[0] == 6
    text = executor.stages["cute"]
    assert [f"offset = {n} : i32" in text for n in (0, 64, 88)] == [True] * 3
    assert executor.smem_bytes() == 96


@cute.kernel
def two_arrays_kernel(x: cute.Tensor):
    smem = cutlass.utils.SmemAllocator()
    first = smem.allocate_tensor(cutlass.Float32, cute.make_layout(32))
    second = smem.allocate_tensor(cutlass.Float32, cute.make_layout(32), byte_alignment=128)
    t = cute.arch.thread_idx()[0]
    first[t], second[t] = x[t], 2.0 * x[t]
    cute.arch.sync_threads()
    x[t] = first[31 - t] + second[t]


@cute.jit
def two_arrays(x: cute.Tensor):
    two_arrays_kernel(x).launch(grid=1, block=32)


def test_shared_memory_that_is_placed_stays_placed():
    twice = "builtin.module(place-shared-memory,place-shared-memory,cute-to-nvvm)"
    x = np.arange(32, dtype=np.float32)
    once, again = cute.compile(two_arrays, x), cute.compile(two_arrays, x, pipeline=twice)
    assert again.stages["ptx"] == once.stages["ptx"] and again.smem_bytes() == once.smem_bytes() == 256
    again(x)
    assert (x == (31 - np.arange(32)) + 2 * np.arange(32)).all()
