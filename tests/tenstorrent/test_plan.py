"""plan.json, host.py, and the files that the command line writes."""

from __future__ import annotations

import ast
import json

import pytest

import tilewright.cute as cute
from examples.tenstorrent import gemm, softmax
from tests.tenstorrent.programs import MODULES, before, context, zeros
from tilewright import CompileError
from tilewright.targets.tenstorrent.emit.host import host_text
from tilewright.targets.tenstorrent.plan import SCHEMA, make_plan
from tilewright.tools.commands.compile import command


def plan(name="gemm", **options):
    ctx = context(**options)
    return make_plan(before("verify-protocol", MODULES[name](), ctx), ctx)


def keys_of_schema(schema, found):
    """Compare objects with the properties of their schema, level by level."""
    if schema.get("type") == "object" and "properties" in schema:
        assert set(schema["required"]) <= set(found) <= set(schema["properties"]), (
            set(found),
            set(schema["properties"]),
        )
        for key, item in found.items():
            keys_of_schema(schema["properties"][key], item)
    elif schema.get("type") == "array":
        for item in found:
            keys_of_schema(schema["items"], item)
    elif "enum" in schema:
        assert found in schema["enum"]


@pytest.mark.parametrize("name", MODULES)
def test_plans_follow_the_schema(name):
    made = plan(name)
    assert json.loads(json.dumps(made)) == made
    keys_of_schema(SCHEMA, made)


@pytest.mark.parametrize("name", MODULES)
def test_plans_against_jsonschema(name):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(plan(name), SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**plan(name), "version": 2}, SCHEMA)


def test_what_a_plan_says():
    made = plan(core_grid="2x1", dst="bf16")
    (launch,) = made["launches"]
    assert (made["profile"], made["arch"], made["function"]) == ("ttnn-0.81", "wormhole_b0", "main")
    assert [part["count"] for part in launch["cores"]] == [2, 2] and launch["core_grid"] == [2, 1]
    assert launch["compute"] == {"dst": "bf16", "dst_tiles": 8, "fidelity": "HiFi4", "sfpu": False}
    assert [item["usage"] for item in launch["tensors"]] == ["read", "read", "written"]
    assert launch["arguments"] == {name: {"parameter": name} for name in "abc"}
    assert plan("softmax")["launches"][0]["compute"]["sfpu"]
    assert plan("softmax")["launches"][0]["tensors"][0]["pad"] == "-inf"


def test_the_plan_of_an_executor_and_the_host_script():
    a = zeros(64, 64)
    compiled = cute.compile(gemm.main, a, a, a, target="tenstorrent")
    assert compiled.plan["launches"][0]["kernel"] == "kernel"
    tree = ast.parse(host_text(compiled.plan))
    assert {"run", "upload", "descriptor", "kernel"} <= {item.name for item in tree.body if hasattr(item, "name")}
    assert "host.run(device, a=a, b=b, c=c)" in ast.get_docstring(tree)


def test_no_plan_elsewhere():
    @cute.jit
    def nothing():
        pass

    with pytest.raises(CompileError, match="nvidia has no plan"):
        cute.compile(nothing, target="emu").plan


def test_the_command_line(tmp_path, capsys):
    arguments = ["bf16[64,96]", "bf16[96,64]", "bf16[64,64]"]
    command("examples/tenstorrent/gemm.py:main", arg=arguments, target="tenstorrent", out=tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["compute.cpp", "host.py", "plan.json", "reader.cpp", "writer.cpp"]
    assert json.loads((tmp_path / "plan.json").read_text())["function"] == "main"
    assert "matmul_tiles(" in (tmp_path / "compute.cpp").read_text()
    command(
        "examples/tenstorrent/gemm.py:main", arg=arguments, emit="cute,tt", target="tenstorrent", out=tmp_path / "ir"
    )
    texts = {path.name: path.read_text() for path in (tmp_path / "ir").iterdir() if path.suffix == ".mlir"}
    assert sorted(texts) == ["main.wormhole_b0.cute.mlir", "main.wormhole_b0.tt.mlir"]
    assert '"tt.mm_mma"' in texts["main.wormhole_b0.tt.mlir"]
    assert "reader.cpp" in capsys.readouterr().out


def test_the_same_source_gives_the_same_files():
    x = zeros(64, 100)
    texts = [cute.compile(softmax.main, x, x, target="tenstorrent") for _ in range(2)]
    assert texts[0].stages["cpp"] == texts[1].stages["cpp"] and texts[0].stages["tt"] == texts[1].stages["tt"]
