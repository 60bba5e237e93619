"""Random control flow: threads that diverge give what each thread gives alone, under every seed and with checks."""

import random

import numpy as np
import pytest

from tilewright.emulate import run_ptx

REGISTERS = 8
ROUNDS = 40


def program(rng):
    """A kernel of random blocks and branches (loops, irreducible ones too), each thread with a bound on its steps."""
    count = rng.randint(4, 14)
    lines = []
    for block in range(count):
        lines.append(f"B{block}:")
        lines.append("  add.u32 %r20, %r20, 1;")
        for _ in range(rng.randint(1, 5)):
            lines.append("  " + operation(rng))
        lines.append(f"  setp.gt.u32 %p1, %r20, {ROUNDS}; @%p1 bra END;")
        lines += ["  " + line for line in ending(rng, count)]
    body = "\n".join(lines)
    return f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 first)
{{
  .reg .pred %p<9>; .reg .b32 %r<32>; .reg .b64 %d<9>;
  .local .align 4 .b8 m[64];
  ld.param.u64 %d1, [out]; ld.param.u32 %r21, [first];
  mov.u32 %r22, %tid.x; add.u32 %r22, %r22, %r21;
  mov.u32 %r20, 0;
  {" ".join(f"mad.lo.u32 %r{k}, %r22, {rng.randint(1, 99)}, {rng.randint(0, 99)};" for k in range(REGISTERS))}
  {" ".join(f"st.local.u32 [m+{4 * k}], %r{k % REGISTERS};" for k in range(16))}
{body}
END:
  mul.lo.u32 %r23, %r22, {4 * REGISTERS}; cvt.u64.u32 %d2, %r23; add.u64 %d3, %d1, %d2;
  {" ".join(f"st.global.u32 [%d3+{4 * k}], %r{k};" for k in range(REGISTERS))}
  ret;
}}
"""


def operation(rng):
    a, b, c = (f"%r{rng.randrange(REGISTERS)}" for _ in range(3))
    guard = rng.choice(["", "", f"and.b32 %r24, {c}, 3; setp.eq.u32 %p2, %r24, {rng.randrange(4)}; @%p2 "])
    address = (
        f"and.b32 %r25, {b}, 15; shl.b32 %r25, %r25, 2; cvt.u64.u32 %d5, %r25; mov.u64 %d6, m; add.u64 %d5, %d5, %d6; "
    )
    return rng.choice([
        f"{guard}add.u32 {a}, {b}, {c};",
        f"{guard}xor.b32 {a}, {b}, {c};",
        f"{guard}mul.lo.u32 {a}, {b}, 3;",
        f"{guard}shr.u32 {a}, {b}, 1;",
        f"setp.lt.u32 %p3, {b}, {c}; selp.u32 {a}, {b}, 7, %p3;",
        f"{address}ld.local.u32 {a}, [%d5];",
        f"{address}{guard}st.local.u32 [%d5], {c};",
    ])  # fmt: skip


def ending(rng, count):
    a = f"%r{rng.randrange(REGISTERS)}"
    first, second, third = (rng.randrange(count) for _ in range(3))
    kind = rng.randrange(6)
    if kind == 0:
        return [f"bra B{first};"]
    if kind == 1:
        return [
            f"and.b32 %r26, {a}, 3;",
            f"TS{rng.randrange(10**9)}: .branchtargets B{first}, B{second}, B{third}, B{first};",
        ]
    if kind == 2:
        return [f"and.b32 %r26, {a}, 1; setp.eq.u32 %p4, %r26, 0; @%p4 bra END;"]
    return [f"and.b32 %r26, {a}, {rng.choice([1, 2, 5, 7])}; setp.ne.u32 %p4, %r26, 0; @%p4 bra B{first};"]


def with_tables(text):
    """Turns each table into a table and the branch that uses it."""
    lines = []
    for line in text.splitlines():
        lines.append(line)
        if ".branchtargets" in line:
            lines.append(f"  brx.idx %r26, {line.split(':')[0].strip()};")
    return "\n".join(lines)


def run(text, threads, first, out, **options):
    run_ptx(text, "k", 1, threads, [out, first], limit=1_000_000, **options)


@pytest.mark.parametrize("seed", range(12))
def test_threads_together_are_as_threads_alone(seed):
    text = with_tables(program(random.Random(seed)))
    wanted = np.zeros((70, REGISTERS), np.uint32)
    for thread in range(70):
        run(text, 1, thread, wanted, checks=False)
    for options in ({"checks": False}, {"checks": False, "seed": 1}, {"checks": True}, {"checks": True, "seed": 2}):
        out = np.zeros_like(wanted)
        run(text, 70, 0, out, **options)
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_random_programs(seed):
    test_threads_together_are_as_threads_alone(seed)
