"""The verifiers of collectives: what each refuses, in which words, and that what is right passes."""

import pytest

from tilewright import PassError
from tilewright.ir import mlir
from tilewright.ir.context import compile_context
from tilewright.passes.verify import verify

_RIGHT = {
    "allreduce": {"op": "add", "types": "f32", "scope": "block", "group": 0, "mode": "auto"},
    "broadcast": {"types": "f32", "scope": "warp", "group": 8, "source": 3},
    "scan": {"op": "max", "types": "f32", "scope": "auto", "group": 0, "exclusive": 1},
}


def _attribute(value):
    return f'"{value}"' if isinstance(value, str) else f"{value} : i32"


def _verify(name, values="f32", results=None, workspaces=0, **changes):
    """Verify one collective of values of these types."""
    types = values.split(",")
    given = [f"%v{number}: {type_}" for number, type_ in enumerate(types)]
    pointer = '!cute.ptr<i32, "gmem", 8 : i32>'
    given += [f"%w{number}: {pointer}" for number in range(workspaces)]
    names = ", ".join(item.partition(":")[0] for item in given)
    attributes = [f"{key} = {_attribute(value)}" for key, value in (_RIGHT[name] | changes).items()]
    if name != "scan":
        attributes.append(f"operandSegmentSizes = array<i32: {len(types)}, {workspaces}>")
    results = types if results is None else results.split(",")
    operation = (
        f'%x:{len(results)} = "cute.{name}"({names}) {{{", ".join(attributes)}}} : '
        f"({', '.join(types + [pointer] * workspaces)}) -> ({', '.join(results)})"
    )
    text = f'func.func @f({", ".join(given)}) {{\n{operation} loc("user.py":7:3)\nreturn\n}}'
    with compile_context():
        verify(mlir.ir.Module.parse(text).operation, "pass mine")


@pytest.mark.parametrize(
    ("name", "options"),
    (
        ("allreduce", {}), ("broadcast", {}), ("scan", {}), ("allreduce", {"workspaces": 1, "scope": "grid"}),
        ("allreduce", {"values": "f32,f32", "op": "add,max", "types": "f32,f32"}),
        ("allreduce", {"values": "i32,i32,i32", "op": "add,max,or", "types": "f32,bf16,bool"}),
        ("allreduce", {"values": "i64,i64", "op": "add,xor", "types": "f64,u8"}),
        ("allreduce", {"scope": "cluster", "mode": "pull"}), ("allreduce", {"scope": "thread"}),
        ("scan", {"values": "i16", "types": "u16", "op": "xor", "scope": "block", "group": 64}),
    ),
)  # fmt: skip
def test_what_is_right_passes(name, options):
    _verify(name, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    (
        ("allreduce", {"results": "f64"}, "each value has a result of its type"),
        ("allreduce", {"types": "f32,f32"}, "types names the type of each value"),
        ("allreduce", {"types": "tf32"}, "collectives take no 'tf32'"),
        ("allreduce", {"types": "f16"}, "types does not fit the value"),
        ("allreduce", {"values": "i32", "types": "f64"}, "types does not fit the value"),
        ("allreduce", {"op": "add,add"}, "op names an operation for each value"),
        ("allreduce", {"op": "sum"}, "no collective folds with 'sum'"),
        ("allreduce", {"op": "and"}, "and of a f32"),
        ("allreduce", {"values": "i1", "types": "bool"}, "add of a bool"),
        ("allreduce", {"scope": "node"}, "scope 'node' is not known"),
        ("allreduce", {"mode": "pull"}, "push and pull are ways through a cluster"),
        ("allreduce", {"mode": "fast"}, "mode 'fast' is not known"),
        ("allreduce", {"group": -1}, "a group has threads"),
        ("allreduce", {"scope": "warp", "group": 12}, "groups of a warp have 1, 2, 4, 8, 16 or 32 lanes"),
        ("allreduce", {"group": 48}, "groups of a block are whole warps"),
        ("allreduce", {"scope": "cluster", "group": 64}, "scope cluster has no groups"),
        ("allreduce", {"workspaces": 2}, "a collective has one workspace"),
        ("broadcast", {"source": 8}, "the source of a broadcast is one of its threads"),
        ("broadcast", {"source": -1}, "the source of a broadcast is one of its threads"),
        ("scan", {"scope": "grid"}, "there is no scan over a grid"),
        ("scan", {"exclusive": 2}, "exclusive is 0 or 1"),
    ),
)
def test_what_is_wrong_is_refused_with_its_line(name, options, message):
    with pytest.raises(PassError) as raised:
        _verify(name, **options)
    assert f"pass mine left cute.{name} against the rules of the dialect: {message}" in str(raised.value)
    assert (raised.value.location.file, raised.value.location.line) == ("user.py", 7)
