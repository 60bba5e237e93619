"""Kernels of many basic blocks: the first run takes time in proportion to them, and gives what each thread computes."""

import gc
import time

import numpy as np
import pytest

from tests.emu.test_instructions import HEAD
from tilewright.emulate import run_ptx
from tilewright.targets.emu.cfg import Nest, weak_order

THREADS = np.arange(32, dtype=np.uint32)


def kernel(body: str, extra: str = "") -> str:
    return f"""{HEAD}
.visible .entry k(.param .u64 out)
{{ .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %d<4>; {extra}
  ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1; mov.u32 %r2, 0;
  {body}
  st.global.u32 [%d1], %r2; ret;
}}
"""


def branches(n):
    """if, else, one after another."""
    parts = [f"setp.gt.u32 %p1, %r1, {i % 32}; @%p1 bra A{i}; add.u32 %r2, %r2, 1; bra B{i};\n"
             f"A{i}: add.u32 %r2, %r2, 3;\nB{i}:" for i in range(n)]  # fmt: skip
    return "\n".join(parts), sum(np.where(i % 32 < THREADS, 3, 1) for i in range(n))


def chain(n):
    """A switch as a chain of comparisons."""
    tests = [f"setp.eq.u32 %p1, %r1, {i}; @%p1 bra C{i};" for i in range(n)]
    cases = [f"C{i}: add.u32 %r2, %r2, {i + 7}; bra E;" for i in range(n)]
    return "\n".join([*tests, "bra E;", *cases, "E:"]), THREADS + 7


def table(n):
    """A switch as a table."""
    labels = ", ".join(f"C{i}" for i in range(n))
    cases = [f"C{i}: add.u32 %r2, %r2, {i + 5}; bra E;" for i in range(n)]
    return "\n".join([f"T: .branchtargets {labels};\n brx.idx %r1, T;", *cases, "E:"]), THREADS + 5


def loops(n):
    """Loops one after another, each with one inside."""
    parts = [f"mov.u32 %r3, 0;\nL{i}: mov.u32 %r4, 0;\nM{i}: add.u32 %r2, %r2, 1; add.u32 %r4, %r4, 1; "
             f"setp.lt.u32 %p1, %r4, 3; @%p1 bra M{i};\n add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 2; @%p1 bra L{i};"
             for i in range(n)]  # fmt: skip
    return "\n".join(parts), np.full(32, 6 * n)


GRAPHS = {"branches": branches, "chain": chain, "table": table, "loops": loops}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_first_run_is_linear_in_blocks(name):
    def seconds(n):
        text, expected = GRAPHS[name](n)
        best = float("inf")
        for round_ in range(3):  # another text each time, so that nothing is kept from the last
            out = np.zeros(32, np.uint32)
            gc.disable()  # its cost depends on what the tests before have left
            start = time.process_time()
            run_ptx(kernel(f"// {n} {round_}\n{text}"), "k", 1, 32, [out])
            best = min(best, time.process_time() - start)
            gc.enable()
            assert (out == expected).all()
        return best

    small, large = seconds(150), seconds(600)
    assert large < 7 * small  # quadratic work would make it 16 times


def test_values_that_live_across_many_blocks():
    n = 120
    text = [f"mov.u32 %c{i}, {i}; setp.gt.u32 %p1, %r1, {i % 32}; @%p1 bra A{i}; add.u32 %c{i}, %c{i}, 1;\nA{i}:"
            for i in range(n)]  # fmt: skip
    text += [f"add.u32 %r2, %r2, %c{i};" for i in range(n)]
    out = np.zeros(32, np.uint32)
    run_ptx(kernel("\n".join(text), f".reg .b32 %c<{n}>;"), "k", 1, 32, [out])
    assert (out == sum(i + (i % 32 >= THREADS) for i in range(n))).all()


def test_loops_in_loops_in_loops():
    n = 40
    head = [f"mov.u32 %c{i}, 0;\nL{i}:" for i in range(n)]
    tail = [f"add.u32 %c{i}, %c{i}, 1; setp.lt.u32 %p1, %c{i}, {2 if i in (3, 17, 31) else 1}; @%p1 bra L{i};"
            for i in reversed(range(n))]  # fmt: skip
    out = np.zeros(32, np.uint32)
    run_ptx(kernel("\n".join([*head, "add.u32 %r2, %r2, 1;", *tail]), f".reg .b32 %c<{n}>;"), "k", 1, 32, [out])
    assert (out == 8).all()


# The loops of a graph.


def test_loops_of_a_graph():
    # 0 -> 1 <-> 2, 2 -> 3 (its own loop) -> 1, 3 -> 4 -> 5 <-> 6, 7 is not reached
    nest = Nest([[1], [2], [1, 3], [3, 1, 4], [5], [6], [5], [0]])
    assert nest.order == weak_order([[1], [2], [1, 3], [3, 1, 4], [5], [6], [5], [0]]) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert [nest.loops_at(n) for n in range(8)] == [[], [1], [1], [3, 1], [], [5], [5], []]


def test_a_loop_with_two_entries():
    nest = Nest([[1, 2], [2], [1, 3], []])
    assert sorted(nest.order[1:3]) == [1, 2] and nest.order[3] == 3
    assert nest.loops_at(1) == nest.loops_at(2) and len(nest.loops_at(1)) == 1 and nest.loops_at(3) == []


def brute_loops(successors):
    """For each node, the sizes of the loops around it: strongly connected parts, with their heads taken off in turn."""
    found = {n: [] for n in range(len(successors))}

    def reach(a, nodes):
        seen, work = set(), [a]
        while work:
            for t in successors[work.pop()]:
                if t in nodes and t not in seen:
                    seen.add(t)
                    work.append(t)
        return seen

    def split(nodes, nest):
        reached = {n: reach(n, nodes) for n in nodes}
        for n in nodes:
            part = frozenset(m for m in reached[n] if n in reached[m])
            if n in reached[n] and n == min(part, key=nest.order.index):
                for m in part:
                    found[m].append(len(part))
                split(part - {n}, nest)

    return found, split


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_against_brute_force(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 14))
    successors = [
        sorted({int(t) for t in random.integers(0, n, random.integers(0, 3))} | {i + 1} - {n}) for i in range(n)
    ]
    nest = Nest(successors)
    assert sorted(nest.order) == list(range(n)) and nest.order[0] == 0
    found, split = brute_loops(successors)
    split(frozenset(range(n)), nest)
    for node in range(n):
        sizes = [sum(head in nest.loops_at(other) for other in range(n)) for head in nest.loops_at(node)]
        assert sizes == found[node][::-1]
    for head in nest.around:  # a loop's nodes stand side by side, its head first
        places = [nest.order.index(node) for node in range(n) if head in nest.loops_at(node)]
        assert max(places) - min(places) == len(places) - 1 and nest.order[min(places)] == head
