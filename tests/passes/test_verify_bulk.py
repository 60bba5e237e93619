"""The verifiers of bulk copies: what each refuses, in which words, and that what is right passes."""

import pytest

from tilewright import PassError
from tilewright.ir import mlir
from tilewright.ir.context import compile_context
from tilewright.passes.verify import verify

_MAP = '!cute.tensor_map<f16, "64,64", 128 : i32>'
_BOX = '!cute.tensor<f16, "smem", "S<3,3,3> o 0 o (64,64):(64,1)", 1024 : i32>'
_SHARED = '!cute.tensor<f16, "smem", "(64):(1)", 16 : i32>'
_GLOBAL = '!cute.tensor<f16, "gmem", "(64):(1)", 16 : i32>'
_WHOLE = '!cute.tensor<f16, "gmem", "(?,?):(?{i64},1)", 16 : i32>'
_BARRIER = '!cute.ptr<i64, "smem", 8 : i32>'


def _verify(name, operands, attributes, results=()):
    """Verify `cute.<name>`; operands are types, a list is a group of any number."""
    groups = [item if isinstance(item, list) else [item] for item in operands]
    types = [type_ for group in groups for type_ in group]
    names = [f"%v{number}" for number in range(len(types))]
    if sum(isinstance(item, list) for item in operands) > 1:
        sizes = ", ".join(str(len(group)) for group in groups)
        attributes = [*attributes, f"operandSegmentSizes = array<i32: {sizes}>"]
    made = f"%x:{len(results)} = " if results else ""
    operation = f'{made}"cute.{name}"({", ".join(names)}) {{{", ".join(attributes)}}} : '
    operation += f"({', '.join(types)}) -> ({', '.join(results)})"
    given = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    text = f'func.func @f({given}) {{\n{operation} loc("user.py":7:3)\nreturn\n}}'
    with compile_context():
        verify(mlir.ir.Module.parse(text).operation, "pass mine")


def _make(source=_WHOLE, modes="1, 0", type_="f16", result=_MAP):
    _verify("make_tensor_map", [source], [f"modes = array<i32: {modes}>", f'type = "{type_}"'], [result])


def _load(map_=_MAP, target=_BOX, barrier=_BARRIER, coord=("i32", "i32"), mask=(), cache=()):
    _verify("tma_load", [map_, target, barrier, list(coord), list(mask), list(cache)], [])


def _store(map_=_MAP, source=_BOX, coord=("i32", "i32"), cache=(), kind=""):
    _verify("tma_store", [map_, source, list(coord), list(cache)], [f'kind = "{kind}"'])


def _bulk_load(source=_GLOBAL, target=_SHARED, barrier=_BARRIER, mask=()):
    _verify("bulk_load", [source, target, barrier, list(mask), []], [])


def _bulk_store(source=_SHARED, target=_GLOBAL, kind=""):
    _verify("bulk_store", [source, target, []], [f'kind = "{kind}"'])


def _wait(groups=0, read=1):
    _verify("bulk_wait", [], [f"groups = {groups} : i32", f"read = {read} : i32"])


def _prefetch(map_=_MAP, coord=()):
    _verify("tma_prefetch", [map_, list(coord)], [])


@pytest.mark.parametrize(
    "check",
    (
        _make, _load, _store, _bulk_load, _bulk_store, _wait, _prefetch,
        lambda: _make(_WHOLE.replace("f16", "f32"), "1, 0", "tf32", '!cute.tensor_map<f32, "32,64", 128 : i32>'),
        lambda: _load('!cute.ptr<i64, "gmem", 64 : i32>'), lambda: _load(mask=["i16"], cache=["i64"]),
        lambda: _store(kind="add"), lambda: _bulk_store(kind="max"), lambda: _prefetch(coord=["i32", "i32"]),
    ),
)  # fmt: skip
def test_what_is_right_passes(check):
    check()


@pytest.mark.parametrize(
    ("check", "message"),
    (
        (lambda: _make(_SHARED), "a tensor map is of a tensor in global memory"),
        (lambda: _make(_WHOLE.replace("f16", "f32")), "the map's elements are as wide as the tensor's"),
        (lambda: _make(modes="1, 1"), "modes are different leaves of the layout, one for each mode of the box"),
        (lambda: _make(modes="1"), "modes are different leaves of the layout, one for each mode of the box"),
        (lambda: _make(type_="f32"), "a tensor map of type 'f32' does not hold these elements"),
        (lambda: _make(result=_MAP.replace("64,64", "64,512")), "each extent of a box is 1 to 256"),
        (lambda: _make(result=_MAP.replace("64,64", "128,64")), "at most 128 bytes with that swizzle"),
        (lambda: _make(result=_MAP.replace("64,64", "6,64")), "a multiple of 16 bytes"),
        (lambda: _make(result=_MAP.replace("64,64", "a")), "a box is numbers between commas"),
        (lambda: _make(result=_MAP.replace("64,64", "8,8").replace("128", "16")), "a swizzle is of 0, 32, 64 or 128"),
        (lambda: _load(_GLOBAL), "the map is a tensor map, or a pointer to one in global memory"),
        (lambda: _load(_BARRIER), "the map is a tensor map, or a pointer to one in global memory"),
        (lambda: _load(target=_GLOBAL), "the box lies in shared memory"),
        (lambda: _load(target=_SHARED), "a box is aligned to 128 bytes"),
        (lambda: _load(target=_BOX.replace("(64,64)", "(64,32)")), "the tensor in shared memory holds one box"),
        (
            lambda: _load(target=_BOX.replace("S<3,", "S<2,")),
            "the map and the tensor in shared memory have one swizzle",
        ),
        (lambda: _load(coord=["i32"]), "a coordinate has a number for each mode of the box"),
        (lambda: _load(barrier='!cute.ptr<i64, "gmem", 8 : i32>'), "an mbarrier lies in shared memory"),
        (lambda: _load(mask=["i16", "i16"]), "a copy has at most one mask"),
        (lambda: _store(kind="mul"), "kind 'mul' is not known"),
        (lambda: _store(cache=["i64", "i64"]), "a copy has at most one cache"),
        (lambda: _prefetch(coord=["i32"]), "a coordinate has a number for each mode of the box"),
        (lambda: _bulk_load(_SHARED), "a bulk copy is between global and shared memory"),
        (lambda: _bulk_load(_GLOBAL.replace("64", "32")), "a bulk copy moves as many elements as it fills"),
        (lambda: _bulk_load(_GLOBAL.replace("16 : i32", "2 : i32")), "multiples of 16 bytes"),
        (lambda: _bulk_load(barrier='!cute.ptr<i64, "smem", 4 : i32>'), "aligned to 8 bytes"),
        (lambda: _bulk_store(_GLOBAL), "a bulk copy is between global and shared memory"),
        (lambda: _bulk_store(kind="mul"), "kind 'mul' is not known"),
        (lambda: _wait(-1), "the number of unfinished groups is negative"),
        (lambda: _wait(read=2), "read is 0 or 1"),
    ),
)
def test_what_breaks_a_rule_is_refused(check, message):
    with pytest.raises(PassError) as caught:
        check()
    assert message in str(caught.value) and "user.py:7" in str(caught.value)
