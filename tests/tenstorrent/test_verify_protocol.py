"""The static checker: programs are right, and each protocol operation left out or done twice is found."""

from __future__ import annotations

import re

import pytest

from tests.tenstorrent.programs import MODULES, before, context, gemm_module, kernels
from tilewright import PassError
from tilewright.tenstorrent import Evaluate, IRMutator, SeqStmt, VerifyProtocol, calls, validate_cb_ids, walk

PROTOCOL = (
    "tt.cb.reserve_back", "tt.cb.push_back", "tt.cb.wait_front", "tt.cb.pop_front", "tt.noc.read_tile",
    "tt.noc.write_tile", "tt.noc.read_barrier", "tt.noc.write_barrier", "tt.dst.acquire", "tt.dst.commit",
    "tt.dst.wait", "tt.dst.release", "tt.pack", "tt.engine.startup", "tt.reduce.uninit", "tt.pack.relu",
    "tt.l1.fill_scaler", "tt.l1.fill",
)  # fmt: skip
INITS = ("tt.mm.init", "tt.fpu.init", "tt.reduce.init", "tt.copy.init", "tt.bcast.init", "tt.sfpu.init")


class Mutate(IRMutator):
    """Leaves one statement out, or does it twice."""

    def __init__(self, victim, twice):
        self.victim, self.twice = victim, twice

    def visit_evaluate(self, op):
        if op is not self.victim:
            return op
        return SeqStmt((op, op)) if self.twice else None


def mutants(module, names, twice):
    """Each module with one operation of these names changed, and what was changed."""
    for func in module.prim_funcs:
        for item in walk(func.body):
            if isinstance(item, Evaluate) and item.value.op.name in names:
                changed = func.with_body(Mutate(item, twice).visit_body(func.body))
                made = module.with_functions({**module.functions, func.name: changed})
                yield f"{func.name}: {item}", made


def survivors(module, names, twice):
    left = []
    for what, mutant in mutants(module, names, twice):
        try:
            VerifyProtocol(mutant)
        except PassError:
            continue
        left.append(what)
    return left


@pytest.fixture(params=MODULES)
def finished(request):
    return before("verify-protocol", MODULES[request.param]())


def test_right_programs(finished):
    text = finished.script()
    assert VerifyProtocol(finished).script() == text


def test_every_operation_that_is_left_out_is_found(finished):
    assert len(list(mutants(finished, PROTOCOL, False))) > 12
    assert survivors(finished, (*PROTOCOL, *INITS), False) == []


def test_every_operation_that_is_done_twice_is_found(finished):
    """An init done twice changes nothing: those are the equivalent mutants."""
    assert survivors(finished, PROTOCOL, True) == []
    assert len(survivors(finished, INITS, True)) == len(list(mutants(finished, INITS, True)))


def without(role, name, module=None):
    """The message for a product without one operation."""
    module = before("verify-protocol", gemm_module(), context(core_grid="1x1")) if module is None else module
    found = [made for what, made in mutants(module, (name,), False) if f"_{role}:" in what]
    with pytest.raises(PassError) as caught:
        VerifyProtocol(found[0])
    return caught.value


@pytest.mark.parametrize(
    ("role", "name", "message"),
    [
        ("reader", "tt.noc.read_barrier", "the reader of kernel pushes pages of cb_a before the data has arrived"),
        ("reader", "tt.cb.reserve_back", "the reader of kernel takes the write pointer of cb_a, of which nothing is"),
        ("reader", "tt.cb.push_back", "the reader of kernel reserves pages of cb_a again"),
        ("reader", "tt.noc.read_tile", "the reader of kernel waits for reads, and none is under way"),
        ("writer", "tt.noc.write_barrier", "the writer of kernel pops pages of cb_c before they are written to memory"),
        ("writer", "tt.cb.wait_front", "the writer of kernel takes the read pointer of cb_c, of which nothing is"),
        ("compute", "tt.cb.pop_front", "the compute of kernel waits for pages of cb_a again"),
        ("compute", "tt.cb.wait_front", "the compute of kernel uses page 0 of cb_a, of which 0 are waited for"),
        ("compute", "tt.dst.acquire", "the compute of kernel computes into DST, which is free"),
        ("compute", "tt.dst.wait", "the compute of kernel packs while DST is committed"),
        ("compute", "tt.dst.release", "the compute of kernel tt.dst.acquire while DST is with the packer"),
        ("compute", "tt.mm.init", "the compute of kernel computes mm while the engine is configured for nothing"),
        ("compute", "tt.cb.push_back", "the compute of kernel reserves pages of cb_c again|kernel: deadlock"),
    ],
)
def test_messages(role, name, message):
    assert re.search(message, str(without(role, name)))


def test_messages_name_the_users_line():
    caught = without("reader", "tt.noc.read_barrier")
    assert "tile.load" in caught.location.source() and "tt.noc.read_barrier before the push" in caught.hint


def test_a_deadlock_is_reported_by_role_and_buffer():
    """The reader pushes half of what the compute kernel waits for."""

    class Half(IRMutator):
        def visit_call(self, op):
            if op.op.name in ("tt.cb.reserve_back", "tt.cb.push_back") and str(op.args[0]) == "cb_b":
                return op.with_args([op.args[0], type(op.args[1])(1)])
            return op

        def visit_for(self, op):
            made = super().visit_for(op)
            inner = [str(item.args[0]) for item in calls(op.body, "tt.noc.read_tile")]
            return (
                made
                if op.kind != "tiles" or inner != ["acc_b"]
                else type(op)(op.loop_var, type(op.extent)(1), made.body, op.kind)
            )

    module = before("verify-protocol", gemm_module())
    reader = kernels(module)["reader"]
    changed = reader.with_body(Half().visit_body(reader.body))
    with pytest.raises(PassError, match="kernel: deadlock: every kernel of the core waits") as caught:
        VerifyProtocol(module.with_functions({**module.functions, reader.name: changed}))
    assert "waits for 2 pages of cb_b" in str(caught.value) and "writer" in str(caught.value)


def with_ids(module, numbers):
    """The module with other ids."""

    class Renumber(IRMutator):
        def visit_call(self, op):
            return (
                op
                if op.op.name != "tt.alloc_cb"
                else type(op)(op.op, op.args, op.attrs.updated({"id": numbers[op.attrs["id"]]}), op.dtype, op.location)
            )

    return [func.with_body(Renumber().visit_body(func.body)) for func in module.prim_funcs]


def test_ids_31_and_32():
    module = before("verify-protocol", gemm_module())
    assert all(map(validate_cb_ids, with_ids(module, {0: 0, 1: 1, 16: 31})))
    with pytest.raises(PassError, match=r"CB IDs exceed limit: \[32\]") as caught:
        list(map(validate_cb_ids, with_ids(module, {0: 0, 1: 1, 16: 32})))
    assert "tile.store" in caught.value.location.source()


def test_roles_must_be_complete():
    module = before("verify-protocol", gemm_module())
    kept = {name: item for name, item in module.functions.items() if "writer" not in name}
    with pytest.raises(PassError, match="kernel has kernels for reader, compute"):
        VerifyProtocol(module.with_functions(kept))
