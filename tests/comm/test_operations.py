"""Collectives as operations of the program: what the passes choose, do less of, refuse and say."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.comm import cases
from tilewright import CompileError, Float32, Int32, Int64, PassError, passes
from tilewright.passes import CommunicationWarning
from tilewright.passes.communication_analysis import CommunicationAnalysis
from tilewright.passes.communication_optimization import CommunicationOptimization

arch = cute.arch


def program(body, threads=128, count=1, dtype=np.float32, out=None, **options):
    """The rows of a program, and its remarks without places."""
    blocks = options.get("grid", (1, 1, 1))[0]
    x = np.random.default_rng(1).integers(-40, 40, threads * blocks).astype(dtype)
    block = options.pop("block", (threads, 1, 1))
    found, compiled = cases.rows(lambda v, _: body(v), x, count, out, block=block, **options)
    said = [line.partition(": ")[2] for kernel in compiled.report().kernels for line in kernel.communication]
    return x, found, said, compiled


def scopes(said):
    return [line.partition("scope ")[2].partition(",")[0] for line in said]


# The scope


@pytest.mark.parametrize(
    ("threads", "group", "scope"),
    (
        (1, None, []), (32, None, ["warp"]), (20, None, ["warp"]), (128, None, ["block"]), (300, None, ["block"]),
        (128, 1, []), (128, 4, ["warp of 4"]), (128, 32, ["warp of 32"]), (128, 64, ["block of 64"]),
        (96, 96, ["block"]), (300, 300, ["block"]),
    ),
)  # fmt: skip
def test_the_least_scope_is_chosen(threads, group, scope):
    x, found, said, _ = program(lambda v: [cute.allreduce(v, "add", group=group)], threads)
    size = group or threads
    wanted = np.repeat(x.reshape(-1, size).sum(1), size)
    np.testing.assert_array_equal(found[0], wanted)
    assert scopes(said) == scope


def test_a_launch_of_one_cluster_and_of_one_grid():
    options = {"grid": (4, 1, 1), "cluster": (4, 1, 1)}
    x, found, said, _ = program(
        lambda v: [cute.allreduce_sum(v), cute.allreduce(v, "max", group=512)], count=2, **options
    )
    assert (found[0] == x.sum()).all() and (found[1] == x.max()).all()
    assert scopes(said) == ["cluster"]  # one exchange for both

    def over_the_grid(v, work):
        return [cute.allreduce_sum(v, workspace=work), cute.broadcast(v, 2, "grid", workspace=work)]

    x = np.arange(384, dtype=np.float32)
    with pytest.warns(CommunicationWarning):
        found, compiled = cases.rows(
            over_the_grid, x, 2, grid=(3, 1, 1), block=(128, 1, 1), cooperative=True, work=cute.grid_workspace(3)
        )
    assert (found[0] == x.sum()).all() and (found[1] == 256).all()
    assert scopes(compiled.report().kernels[0].communication) == ["grid", "grid"]


@pytest.mark.filterwarnings("ignore::tilewright.passes.CommunicationWarning")
@pytest.mark.parametrize("scope", ("warp", "block", "cluster"))
def test_a_scope_that_the_program_names(scope):
    def body(v):
        return [
            cute.allreduce(v, "max", scope), cute.scan(v, "add", False, scope), cute.scan(v, "min", True, scope),
            cute.broadcast(v, 1, scope),
        ]  # fmt: skip

    x, found, said, _ = program(body, 64, 4, np.int32, grid=(4, 1, 1), cluster=(2, 1, 1))
    size = {"warp": 32, "block": 64, "cluster": 128}[scope]
    for first in range(0, 256, size):
        group, place = x[first : first + size], slice(first, first + size)
        cases.check("max", np.int32, found[0, place], group)
        cases.check_scan("add", np.int32, found[1, place], group, False)
        cases.check_scan("min", np.int32, found[2, place], group, True)
        assert (found[3, place] == group[64 if scope == "cluster" else 1]).all()
    assert set(scopes(said)) == {scope}


def test_a_cluster_of_one_block_is_a_block():
    _, _, said, _ = program(lambda v: [cute.allreduce(v, scope="cluster")])
    assert scopes(said) == ["block"]


# Fewer of them


def barriers(compiled):
    return compiled.stages["ptx"].count("bar.sync")


def test_neighbours_share_barriers_whatever_their_types():
    def body(v):
        total = cute.allreduce(v)
        square = v * v
        most = cute.allreduce(Int32(square), "max")
        some = cute.allreduce(v > 39, "or")
        wide = cute.allreduce((Int64(v), cutlass.Float64(v)), ("add", "min"))
        return [total, Float32(most), Float32(Int32(some)), Float32(wide[0]), Float32(wide[1]), square + total]

    x, found, said, compiled = program(body, count=6)
    np.testing.assert_array_equal(found[:5, 0], [x.sum(), (x * x).max(), (x > 39).any(), x.sum(), x.min()])
    np.testing.assert_array_equal(found[5], x * x + x.sum())
    assert len(said) == 1 and "all-reduce add max or min of f32, i32, bool, i64, f64" in said[0]
    assert barriers(compiled) == 1


def test_what_depends_on_the_first_or_lies_behind_memory_is_not_merged():
    def body(v):
        total = cute.allreduce(v)
        return [cute.allreduce(v * total, "max")]

    _, _, said, compiled = program(body)
    assert len(said) == 2 and barriers(compiled) == 2

    def with_a_barrier(v):
        total = cute.allreduce(v)
        arch.sync_threads()
        return [total + cute.allreduce(v, "max")]

    assert len(program(with_a_barrier)[2]) == 2


def test_what_does_not_change_leaves_the_loop():
    @cute.jit
    def body(v):
        total = v * 0
        for i in cutlass.range(5, unroll=1):
            for _ in cutlass.range(2, unroll=1):
                total = total + cute.allreduce(v) + cute.allreduce(v * Float32(i), "max")
        return [total]

    x, found, said, compiled = program(body)
    np.testing.assert_array_equal(found[0], 10 * x.sum() + 2 * sum((x * i).max() for i in range(5)))
    # The first needs no loop, the second no inner one, whose barrier would be two.
    assert [line.split("barrier")[0].split()[-1] for line in said] == ["1", "2"]
    assert compiled.stages["ptx"].count("bar.sync") == 3


@pytest.mark.parametrize(
    ("op", "value", "wanted"),
    (("add", 3, 384), ("min", 3, 3), ("max", 3, 3), ("xor", 3, 0), ("and", 3, 3), ("or", 3, 3)),
)
def test_equal_values_need_no_communication(op, value, wanted):
    """Constants, arguments, places of the block, results of other collectives."""

    def body(v):
        mine = Int32(value) + arch.block_idx()[0]
        return [cute.allreduce(value, op) + v * 0, cute.allreduce(mine, op, "block")]

    _, found, said, compiled = program(body, count=2, dtype=np.int32)
    assert (found == wanted).all()
    assert not said and barriers(compiled) == 0 and "shfl" not in compiled.stages["ptx"]


def test_a_sum_of_equal_values_is_a_product_in_each_type():
    def body(v):
        return [
            cute.allreduce(v.to(kind) * 0 + kind(1.5 if kind.is_float else 3)).to(Float32)
            for kind in (cutlass.Float16, cutlass.BFloat16, Float32, cutlass.Float64, cutlass.Int8, Int64)
        ] + [cute.allreduce(kind(1.5)).to(Float32) for kind in (cutlass.Float16, cutlass.BFloat16, cutlass.Float64)] + [
            cute.allreduce(kind(3)).to(Float32) for kind in (cutlass.Int8, Int64)
        ]  # fmt: skip

    _, found, said, _ = program(body, count=11)
    np.testing.assert_array_equal(found[:, 0], [192, 192, 192, 192, 384, 384, 192, 192, 192, -128, 384])
    assert len(said) == 1


def test_a_second_all_reduce_and_a_broadcast_behind_one_are_dropped():
    def body(v):
        total = cute.allreduce(v)
        return [
            cute.allreduce(total),
            cute.allreduce(total, "max"),
            cute.broadcast(total, 5),
            cute.allreduce(v, "min", "warp"),
        ]

    x, found, said, _ = program(body, count=4, dtype=np.int32)
    np.testing.assert_array_equal(found[:3, 0], [x.sum() * 128, x.sum(), x.sum()])
    assert len(said) == 2
    # A product, a smaller scope's result and a result of another group stay.
    kept = program(
        lambda v: [cute.allreduce(cute.allreduce(v), "mul"), cute.allreduce(cute.allreduce(v, scope="warp"))], count=2
    )
    assert len(kept[2]) == 4


def test_only_what_is_used_is_sent():
    def body(v):
        vector = cute.allreduce(cute.TensorSSA.from_elements([v, v + 1, v + 2, v + 3]))
        cute.allreduce(v * 5)
        return [vector[2]]

    x, found, said, _ = program(body)
    assert (found[0] == (x + 2).sum()).all()
    assert len(said) == 1 and "all-reduce add of f32:" in said[0]


def test_what_the_first_thread_alone_reads_is_left_to_it():
    @cute.jit
    def body(v):
        total = cute.allreduce(v)
        shown = v
        if arch.thread_idx()[0] == 0:
            shown = total
        return [shown]

    x, found, said, _ = program(body)
    assert found[0, 0] == x.sum() and (found[0, 1:] == x[1:]).all()
    assert "slots to the first thread" in said[0]

    @cute.jit
    def by_two(v):
        total = cute.allreduce(v)
        shown = v
        if arch.thread_idx()[0] < 2:
            shown = total
        return [shown]

    assert "first thread" not in program(by_two)[2][0]


# What is refused


def refused(body, error=PassError, **options):
    with pytest.raises(error) as raised:
        program(body, **options)
    assert raised.value.location.file == __file__
    return raised.value


@cute.jit
def in_a_branch_of_values(v):
    total = v
    if v > 0:
        total = cute.allreduce(v)
    return [total]


@cute.jit
def in_a_branch_of_threads(v):
    total = v
    if arch.thread_idx()[0] < 100:
        total = cute.allreduce(v)
    return [total]


@cute.jit
def in_a_loop_of_threads(v):
    total = v
    for _ in cutlass.range(arch.thread_idx()[0] % 3):
        total = total + cute.allreduce(total)
    return [total]


@cute.jit
def in_a_while(v):
    total = v
    while total < 100:
        total = total + cute.allreduce(total, "max") * 0 + 1
    return [total]


@cute.jit
def behind_an_inner_branch(v):
    total = v
    if arch.block_idx()[0] < 1:
        if arch.lane_idx() == 3:
            total = cute.allreduce(v)
    return [total]


@pytest.mark.parametrize(
    ("body", "line", "what"),
    (
        (in_a_branch_of_values, "if v > 0:", "branch whose condition differs from thread to thread"),
        (in_a_branch_of_threads, "if arch.thread_idx()[0] < 100:", "branch whose condition"),
        (in_a_loop_of_threads, "for _ in cutlass.range(arch.thread_idx()[0] % 3):", "loop whose bound"),
        (in_a_while, "while total < 100:", "loop whose condition"),
        (behind_an_inner_branch, "if arch.lane_idx() == 3:", "branch whose condition"),
    ),
)
def test_divergent_control_flow_is_refused_with_its_line(body, line, what):
    error = refused(body)
    assert what in error.message
    assert error.location.source().strip() == line
    assert "let all threads call it" in error.hint


def test_blocks_and_clusters_that_stay_away():
    @cute.jit
    def of_some_blocks(v):
        total = v
        if arch.block_idx_in_cluster() == 0:
            total = cute.allreduce(v, scope="cluster")
        return [total]

    error = refused(of_some_blocks, grid=(4, 1, 1), cluster=(2, 1, 1))
    assert "differs from block to block" in error.message

    @cute.jit
    def of_some_clusters(v):
        total = v
        if arch.cluster_idx()[0] == 0:
            total = cute.allreduce(v, scope="cluster")
        return [total]

    x, found, _, _ = program(of_some_clusters, grid=(4, 1, 1), cluster=(2, 1, 1))
    assert (found[0, :256] == x[:256].sum()).all() and (found[0, 256:] == x[256:]).all()


def test_control_flow_that_is_the_same_for_all_who_take_part():
    @cute.jit
    def body(v):
        total = v * 0
        if arch.thread_idx()[0] // 32 == 1:
            total = cute.allreduce(v, scope="warp")
        if arch.thread_idx()[0] // 64 != 0:
            total = total + cute.allreduce(v, "max", group=64)
        if arch.block_idx()[0] == 1:
            total = total + cute.allreduce(v, "min", "block")
        if cute.allreduce(v, "max", "block") > -100:
            total = total + cute.allreduce(v, "add", "block")
        while cute.allreduce(total, "max", "block") < 1000:
            total = total + 500
        return [total]

    x, found, _, _ = program(body, dtype=np.int32, grid=(2, 1, 1))
    for number, part in enumerate(x.reshape(2, 128)):
        wanted = np.zeros(128, np.int64)
        wanted[32:64] += part[32:64].sum()
        wanted[64:] += part[64:].max()
        wanted += (part.min() if number else 0) + part.sum()
        while wanted.max() < 1000:
            wanted += 500
        np.testing.assert_array_equal(found[0, number * 128 : number * 128 + 128], wanted)


@pytest.mark.parametrize(
    ("body", "options", "text"),
    (
        (lambda v: [cute.allreduce(v)], {"grid": (2, 1, 1)}, "over the grid, in a launch that is not cooperative"),
        (lambda v: [cute.allreduce(v, scope="grid")], {"cooperative": True}, "over the grid takes global memory"),
        (lambda v: [cute.scan(v)], {"grid": (3, 1, 1)}, "a scan over the grid cannot be done"),
        (lambda v: [cute.allreduce(v, group=48)], {}, "an all-reduce over groups of 48 threads cannot be done"),
        (lambda v: [cute.allreduce(v, group=64)], {"threads": 1024}, "16 groups of 64 threads in a block of 1024 need"),
    ),
)  # fmt: skip
def test_scopes_that_the_launch_does_not_have(body, options, text):
    error = refused(body, **options)
    assert text in error.message and error.hint


def test_a_cluster_on_a_chip_without_them():
    error = refused(lambda v: [cute.allreduce(v)], grid=(2, 1, 1), cluster=(2, 1, 1), arch="sm_80")
    assert "over a cluster on sm_80, which has no clusters" in error.message


def test_a_cluster_meets_in_global_memory_where_the_chip_has_none():
    def body(v, work):
        total, most = cute.allreduce((v, v), ("add", "max"), "cluster", workspace=work)
        return [total, most, cute.broadcast(v, 1, "cluster", workspace=work)]

    x = np.random.default_rng(8).integers(-40, 40, 6 * 64).astype(np.int32)
    options = {"grid": (6, 1, 1), "block": (64, 1, 1), "cluster": (2, 1, 1), "cooperative": True}
    words = cute.grid_workspace(6, 2, groups=3)
    for arch_name, scope in (("sm_80", "2 blocks of the grid"), ("sm_90a", "cluster")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CommunicationWarning)
            found, compiled = cases.rows(
                body, x, 3, work=words, arch=arch_name, run=cases.OnEmulator(range(4)), **options
            )
        for first in range(0, len(x), 128):
            group = x[first : first + 128]
            seen = found[:, first : first + 128]
            assert (seen == np.array([[group.sum()], [group.max()], [group[64]]])).all()
        said = compiled.report().kernels[0].communication
        assert scopes([line.partition(": ")[2] for line in said]) == [scope] * 2


@pytest.mark.parametrize(
    ("body", "text"),
    (
        (lambda v: [cute.allreduce(v, "mean")], "no collective folds with 'mean'"),
        (lambda v: [cute.allreduce(v, scope="node")], "there is no scope 'node'"),
        (lambda v: [cute.allreduce(v, group=0)], "group is a number of threads"),
        (lambda v: [cute.allreduce(v, scope="warp", group=64)], "groups of 64 threads of scope warp"),
        (lambda v: [cute.allreduce(v, scope="block", group=48)], "groups of 48 threads of scope block"),
        (lambda v: [cute.broadcast(v, scope="cluster", group=32)], "groups of 32 threads of scope cluster"),
        (lambda v: [cute.scan(v, scope="grid")], "there is no scan over a grid"),
        (lambda v: [cute.broadcast(v, arch.lane_idx())], "the source of a broadcast is known while compiling"),
        (lambda v: [cute.allreduce(v, workspace=5)], "workspace is a tensor or a pointer in global memory"),
        (lambda v: [cute.scan("v")], "a collective takes numbers, not a str"),
    ),
)
def test_wrong_arguments(body, text):
    error = refused(body, CompileError)
    assert text in error.message and error.hint


def test_a_type_that_nobody_knows():
    with pytest.raises(PassError, match="communication-analysis looks at no collectives of type 'gather'"):
        program(
            lambda v: [cute.allreduce(v)], pipeline="builtin.module(communication-analysis{type=gather},cute-to-nvvm)"
        )


def test_optimization_needs_the_analysis():
    with pytest.raises(PassError, match="communication-optimization requires communication-analysis"):
        program(lambda v: [v], pipeline="builtin.module(communication-optimization,cute-to-nvvm)")


# What is said


def test_the_passes_stand_in_the_list_where_there_are_collectives():
    def body(v):
        return [cute.allreduce(v)]

    _, _, _, compiled = program(body)
    names = [part.partition("{")[0] for part in compiled.pipeline.split(",")]
    place = names.index("communication-analysis")
    assert names[place : place + 4] == [
        "communication-analysis", "communication-optimization", "expand-communication", "expand-views",
    ]  # fmt: skip
    assert "communication" not in program(lambda v: [v])[3].pipeline
    again = program(body, pipeline=compiled.pipeline)[3]
    assert again.pipeline == compiled.pipeline and again.stages["ptx"] == compiled.stages["ptx"]


def test_findings_and_remarks():
    analysis, optimization = CommunicationAnalysis(chip="sm_90a"), CommunicationOptimization(chip="sm_90a")
    program(lambda v: [cute.allreduce(v), cute.scan(v)], count=2, passes=[analysis, optimization])
    line = test_findings_and_remarks.__code__.co_firstlineno + 2
    assert analysis.findings == [
        f"{__file__}:{line}: all-reduce over 128 threads", f"{__file__}:{line}: scan over 128 threads",
    ]  # fmt: skip
    assert [remark.rpartition(", about")[0] for remark in optimization.remarks] == [
        f"test_operations.py:{line}: all-reduce add of f32: scope block, slots, 1 barrier, 16 bytes",
        f"test_operations.py:{line}: scan add of f32: scope block, slots, 1 barrier, 16 bytes",
    ]
    assert all(0 < float(remark.split()[-2]) < 1 for remark in optimization.remarks)


def test_communication_that_outweighs_computation():
    def over_the_grid(v, work):
        return [cute.allreduce_sum(v, workspace=work)]

    options = {"grid": (4, 1, 1), "block": (64, 1, 1), "cooperative": True, "work": cute.grid_workspace(4)}
    with pytest.warns(CommunicationWarning, match="^Warning: Communication overhead exceeds computation") as seen:
        cases.rows(over_the_grid, np.ones(256, np.float32), 1, **options)
    assert (seen[0].filename, seen[0].lineno) == (__file__, over_the_grid.__code__.co_firstlineno + 1)

    @cute.jit
    def busy(v, work):
        for _ in cutlass.range(5000, unroll=1):
            v = v * 0.99 + 1
        return [cute.allreduce_sum(v, workspace=work)]

    with warnings.catch_warnings():
        warnings.simplefilter("error", CommunicationWarning)
        cute.compile(
            cases.launch_rows, *cases.arrays(256, 9), busy, (4, 1, 1), (64, 1, 1), None, True
        )  # compiled only: the loop is long
        program(lambda v: [cute.allreduce(v)])


# Passes of users


@cutlass.register_pass
class AllReduceStores(passes.Rewrite):
    """Fold what is stored over the block: as a pass for gradients would."""

    name = "all-reduce-stores"
    greedy = False

    @passes.rule(*passes.STORES)
    def fold(self, op, rewriter):
        def folded(value):
            return rewriter.build(
                "cute.allreduce", value.type, [value], [], op="add", types="f32", scope="block", group=0, mode="auto"
            )

        return passes.change_stored(op, folded)


def test_a_pass_of_the_user_may_add_collectives():
    x, found, said, _ = program(lambda v: [v], passes=AllReduceStores)
    assert (found[0] == x.sum()).all() and len(said) == 1


def test_passes_see_one_operation():
    seen = []

    class Count(cutlass.Pass):
        name = "count-collectives"

        def run(self, module):
            seen.extend(op.name for op in passes.operations(module) if op.name == "cute.allreduce")

    program(lambda v: [cute.allreduce((v, v), ("add", "max"))[0]], passes=cutlass.before("annotate-loops", Count()))
    assert seen == ["cute.allreduce"]


def test_blocks_whose_extents_come_at_run_time():
    x = np.arange(200, dtype=np.float32)
    found, _ = cases.rows(lambda v, _: [cute.allreduce(v, scope="block"), cute.allreduce(v, "max", group=8)], x, 2,
                          block=(200, 1, 1), dynamic=True)  # fmt: skip
    assert (found[0] == x.sum()).all()
    np.testing.assert_array_equal(found[1], np.arange(200) // 8 * 8 + 7)


def test_the_report_has_a_line_for_each_collective():
    _, _, said, compiled = program(lambda v: [cute.allreduce(v), cute.scan(v)], count=2)
    printed = [line for line in str(compiled.report()).splitlines() if line.startswith("communication")]
    assert len(said) == len(printed) == 2
    assert all(line.startswith("communication test_operations.py:") for line in printed)
    assert "communication" not in str(program(lambda v: [v])[3].report())


_TWO_PROCESSES = """
import sys
sys.path.insert(0, {root!r})
import numpy as np
import tilewright.cute as cute
from tests.comm import cases

def body(v, work):
    total, most = cute.allreduce((v, v * v), ("add", "max"))
    return [total + most + cute.allreduce(cute.Int32(v), "xor").to(cute.Float32), cute.cluster_allreduce(v)]

compiled = cute.compile(cases.launch_rows, *cases.arrays(256), body, (2, 1, 1), (128, 1, 1), (2, 1, 1), False)
print(compiled.stages["cute"], compiled.stages["ptx"])
"""


def test_two_processes_make_the_same_text():
    root = str(Path(__file__).parents[2])
    texts = []
    for seed in ("1", "2"):
        environment = dict(os.environ, PYTHONHASHSEED=seed, TILEWRIGHT_TARGET="emu", TILEWRIGHT_ARCH="sm_90a")
        command = [sys.executable, "-c", _TWO_PROCESSES.format(root=root)]
        texts.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert texts[0] == texts[1] and "tilewright.communication" in texts[0] and "st.async" in texts[0]
