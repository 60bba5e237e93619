from __future__ import annotations

from tests.tenstorrent.programs import before, gemm_module, kernels
from tilewright.tenstorrent import For, LowerDataflow, calls, walk


def names(body):
    return [item.op.name for item in calls(body) if item.op.name.startswith(("tt.cb.", "tt.noc."))]


def test_reads_and_writes_have_their_protocol(applied):
    given, made = applied("lower-dataflow")
    reader, compute, writer = (kernels(made)[role] for role in ("reader", "compute", "writer"))
    for func in (reader, compute, writer):
        assert not calls(func.body, "tt.read_to_cb", "tt.write_from_cb", "tt.consume", "tt.fill", "tt.fill_scaler")
    reads = len(calls(kernels(given)["reader"].body, "tt.read_to_cb"))
    assert len(calls(reader.body, "tt.noc.read_barrier")) == reads
    pushes = len(calls(reader.body, "tt.cb.push_back"))
    assert pushes == len(calls(reader.body, "tt.cb.reserve_back")) >= reads
    assert names(writer.body) == [
        "tt.cb.wait_front", "tt.cb.read_ptr", "tt.noc.write_tile", "tt.noc.write_barrier", "tt.cb.pop_front",
    ]  # fmt: skip
    waits = len(calls(compute.body, "tt.cb.wait_front"))
    assert waits == len(calls(compute.body, "tt.cb.pop_front")) > 0


def test_the_reader_of_a_product():
    made = kernels(LowerDataflow(before("lower-dataflow", gemm_module(128))))
    one = ["tt.cb.reserve_back", "tt.cb.write_ptr", "tt.noc.read_tile", "tt.noc.read_barrier", "tt.cb.push_back"]
    assert names(made["reader"].body) == one * 2
    (inner,) = [item for item in walk(made["compute"].body) if isinstance(item, For) and item.kind == "serial"]
    found = [item.op.name for item in calls(inner)]
    assert found[:2] == ["tt.cb.wait_front"] * 2 and found[-2:] == ["tt.cb.pop_front"] * 2
    assert "tt.mm.mma" in found[2:-2]
