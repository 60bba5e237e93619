"""The tuned plans that ship: each fits its chip and covers its rows; kernels take them, and the rule elsewhere."""

import json
from importlib import resources

import numpy as np
import pytest

from tests.op_cases import DTYPES, close, normal, on_emulator, wide
from tilewright import ops
from tilewright.hw.chips import chip
from tilewright.kernels import cross_entropy, layernorm, plans, rmsnorm, softmax_online, tuned_plans
from tilewright.kernels.launching import RowKernel
from tilewright.kernels.plans import RowPlan

TABLES = {file.name.removesuffix(".json"): json.loads(file.read_text())
          for file in resources.files("tilewright.kernels").joinpath("tuned").iterdir()}  # fmt: skip
ENTRIES = [(arch, entry) for arch, table in TABLES.items() for entry in table["plans"]]
MODULES = (softmax_online, rmsnorm, layernorm, cross_entropy)


def test_tables_say_where_they_were_measured():
    assert TABLES
    for table in TABLES.values():
        assert {"gpu", "torch", "cuda", "date"} <= set(table["machine"])


@pytest.mark.parametrize(("arch", "entry"), ENTRIES, ids=str)
def test_a_tuned_plan_fits_its_chip_and_covers_its_rows(arch, entry):
    plan, limits = tuned_plans.plan_of(entry), chip(arch)
    assert entry["vector"] * entry["bytes"] == plans.ACCESS_BYTES
    covered = plan.tile * plan.cluster * plan.turns
    assert covered >= entry["columns"] and plan.columns == (entry["columns"] if covered == entry["columns"] else 0)
    assert covered - entry["columns"] < plan.threads * plan.cluster * plan.vector, "an access of no use"
    assert plan.block <= limits.threads_per_block and plan.cluster <= limits.cluster_max
    assert plan.cluster == 1 or plan.rows == 1
    shared = plans.ACCESS_BYTES * plan.count * plan.block * plan.stages * entry["held"]
    assert shared <= plans.MOST_SHARED
    assert plan.resident * plan.block <= limits.threads_per_sm


def test_a_table_names_each_case_once_and_only_kernels_that_there_are():
    names = {item.name for module in MODULES for item in vars(module).values() if isinstance(item, RowKernel)}
    names |= {"rmsnorm_backward", "layernorm_backward"}
    for table in TABLES.values():
        cases = [(entry["kernel"], entry["columns"], entry["bytes"], entry["held"]) for entry in table["plans"]]
        assert len(cases) == len(set(cases))
        assert {case[0] for case in cases} <= names


def test_an_entry_gives_its_plan_back():
    plan = RowPlan(4096, 128, 1, 8, 4, stages=1, resident=2)
    entry = tuned_plans.entry_of("softmax_online", 4096, 2, 1, plan)
    assert tuned_plans.plan_of(json.loads(json.dumps(entry))) == plan
    guarded = tuned_plans.plan_of({**entry, "columns": 4000})
    assert guarded.columns == 0 and guarded.tile == plan.tile


def test_a_tuned_plan_is_for_its_chip_length_type_and_alignment_alone(monkeypatch):
    entry = tuned_plans.entry_of("softmax_online", 4096, 4, 1, RowPlan(4096, 64, 2, 4, 16))
    monkeypatch.setattr(tuned_plans, "_table", lambda arch: {
        ("softmax_online", 4096, 4, 1): tuned_plans.plan_of(entry)} if arch.startswith("sm_90") else {})  # fmt: skip
    tuned = tuned_plans.plan_of(entry)
    assert tuned_plans.tuned_plan("sm_90a", "softmax_online", 4096, 4, 1, 4) == tuned
    for other in (
        ("sm_80", "softmax_online", 4096, 4, 1, 4),
        ("sm_90a", "rmsnorm", 4096, 4, 1, 4),
        ("sm_90a", "softmax_online", 4097, 4, 1, 4),
        ("sm_90a", "softmax_online", 4096, 2, 1, 4),
        ("sm_90a", "softmax_online", 4096, 4, 2, 4),
        ("sm_90a", "softmax_online", 4096, 4, 1, 2),
    ):
        assert tuned_plans.tuned_plan(*other) is None, other
    x = np.zeros((2, 4096), np.float32)
    assert softmax_online.softmax_online.plan_for(x, x) == tuned
    longer = np.zeros((2, 4100), np.float32)
    assert softmax_online.softmax_online.plan_for(longer, longer) == plans.row_plan(4100, 4, 4)
    askew = np.zeros((2, 4100), np.float32)[:, 1:4097]  # rows of 4096 that begin between two vectors
    assert softmax_online.softmax_online.plan_for(askew, askew) != tuned


@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
def test_softmax_online_correctness_of_tuned_plans(dtype):
    size = np.dtype(DTYPES[dtype]).itemsize
    facts = ("softmax_online", size)
    lengths = [entry["columns"] for _, entry in ENTRIES if (entry["kernel"], entry["bytes"]) == facts]
    lengths = [columns for columns in lengths if columns <= 65536]
    assert lengths
    for columns in lengths:
        x = normal(columns, (3, columns), dtype, scale=3)
        powers = np.exp(wide(x) - wide(x).max(-1, keepdims=True))
        with on_emulator():
            close(ops.softmax_online(x), powers / powers.sum(-1, keepdims=True), dtype)
