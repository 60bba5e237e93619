"""Random programs are the same by seed, legal, and of every form that the table has."""

import hashlib
import os
import random
import subprocess
import sys

import numpy as np
import pytest

from tests.tools.fuzzing.drawn import one_of_each, steps_of
from tilewright.targets.nvidia.toolkit import toolchain
from tilewright.tools.fuzzing.assemblers import Assembler, Failure
from tilewright.tools.fuzzing.drawing import bits_of, integer, literal
from tilewright.tools.fuzzing.exchanges import EXCHANGES
from tilewright.tools.fuzzing.forms import families
from tilewright.tools.fuzzing.generator import generate
from tilewright.tools.fuzzing.inputs import outputs_of, records
from tilewright.tools.fuzzing.machines import emulated
from tilewright.tools.fuzzing.program import OUT_BYTES, OUTPUTS, SLOT_OF, THREADS, Program, Step, module

TEXT_OF_SEEDS = """
from tilewright.tools.fuzzing.generator import generate
from tilewright.tools.fuzzing.program import module
from tilewright.tools.fuzzing.inputs import records
import hashlib
print(hashlib.sha256(module(generate(seed) for seed in range(40)).encode() + records(3).tobytes()).hexdigest())
"""


def ptxas():
    tool = toolchain.locate("ptxas")
    if tool is None:
        pytest.skip("ptxas is not installed")
    return Assembler(str(tool.path), "any", 0)


def test_a_seed_gives_the_same_program_in_every_process():
    here = hashlib.sha256(module(generate(seed) for seed in range(40)).encode() + records(3).tobytes()).hexdigest()
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", TEXT_OF_SEEDS], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == here, done.stderr


def test_other_seeds_give_other_programs():
    assert len({module([generate(seed)]) for seed in range(50)}) == 50


@pytest.mark.parametrize("start", [0, 10, 20])
def test_programs_do_nothing_undefined(start):
    for seed in range(start, start + 10):
        outcome = emulated(generate(seed))
        assert not isinstance(outcome, str), f"seed {seed}: {outcome}"


def test_every_exchange_is_legal_by_itself_and_twice():

    for exchange in EXCHANGES:
        for seed in range(3):
            outcome = emulated(Program(seed, steps_of(exchange, seed), ("%r0", "%f0")))
            assert not isinstance(outcome, str), f"{exchange.__name__} {seed}: {outcome}"


def test_ptxas_takes_the_programs():
    made = ptxas().assemble(module(generate(seed) for seed in range(60)))
    assert not isinstance(made, Failure), made


def test_ptxas_and_the_emulator_take_every_form():

    programs = [Program(0, tuple(one_of_each(name)), ("%r0",)) for name in families()]
    made = ptxas().assemble(module(programs))
    assert not isinstance(made, Failure), made
    for program in programs:
        outcome = emulated(program)
        assert not isinstance(outcome, str), outcome


def test_steps_can_be_dropped():
    """Any half of the steps of a program is a legal program."""
    for seed in (3, 4, 51, 108):
        program = generate(seed)
        for kept in (program.body[::2], program.body[1::2]):
            outcome = emulated(Program(seed, kept, program.outputs))
            assert not isinstance(outcome, str), f"seed {seed}: {outcome}"


def test_a_program_computes_what_its_instructions_say():
    step = Step(("add.s32 \t%r0, %r1, %r2;", "mul.wide.s16 \t%r3, %h0, %h1;"))
    stored = emulated(Program(5, (step,), ("%r0", "%r3")))
    record = records(5)
    words = {name: record[:, SLOT_OF[name]].astype(np.uint32) for name in ("%r1", "%r2")}
    halves = {
        name: record[:, SLOT_OF[name]].astype(np.uint16).view(np.int16).astype(np.int32) for name in ("%h0", "%h1")
    }
    np.testing.assert_array_equal(stored[:, 0], words["%r1"] + words["%r2"])
    np.testing.assert_array_equal(stored[:, 1], (halves["%h0"] * halves["%h1"]).view(np.uint32))


def test_nans_are_equal_and_zeros_are_not():
    memory = np.zeros(OUT_BYTES, np.uint8)
    words = memory[: THREADS * OUTPUTS * 8].view(np.uint64).reshape(THREADS, OUTPUTS)
    words[:5, 0] = [0x7FC00001, 0xFFFFFFFF, 0x7F800000, 0x80000000, 0]
    words[:3, 1] = [0x7E01_3C00, 0xFE00_3C00, 0x7C00_3C00]
    found = outputs_of(Program(0, (), ("%f0", "%x0", "%r0")), memory)
    assert [int(word) for word in found[:5, 0]] == [0xFFFFFFFF, 0xFFFFFFFF, 0x7F800000, 0x80000000, 0]
    assert [int(word) for word in found[:3, 1]] == [0xFFFF_3C00, 0xFFFF_3C00, 0x7C00_3C00]


def test_constants_fit_their_kind():

    rng = random.Random(1)
    for kind, width in (("h", 16), ("r", 32), ("d", 64), ("f", 32), ("g", 64), ("x", 32), ("y", 32)):
        assert all(0 <= bits_of(kind, rng) < 1 << width for _ in range(200))
    assert all(-(1 << 15) <= integer(16, rng) < 1 << 15 for _ in range(500))
    assert literal("f", 0x3F800000) == "0f3F800000"
    assert literal("h", 0xFFFF) == "-1"
