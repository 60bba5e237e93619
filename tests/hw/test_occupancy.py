"""Occupancy against worked examples and against NVIDIA's own calculator, compiled from its header."""

import importlib.util
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright.base.errors import CompileError
from tilewright.hw.chips import CHIPS, Chip
from tilewright.hw.occupancy import occupancy

ORACLE = Path(__file__).with_name("occupancy_oracle.c")
FACTORS = {"warps": 1, "registers": 2, "shared memory": 4, "blocks": 8, "barriers": 16}


def test_the_worked_example_of_the_pipeline_document():
    """128 threads, 32 registers and 64 KB a block on an H100: 3 blocks, 12 of 64 warps = 18.75 %."""
    found = occupancy("sm_90", 32, 64 * 1024, 128)
    assert (found.active_warps, found.max_warps, found.blocks_per_sm) == (12, 64, 3)
    assert found.limit == "shared memory"
    assert found.fraction == 0.1875
    assert str(found) == "12 of 64 warps = 18.75 % (3 blocks per SM, limited by shared memory)"
    assert (found.limits["registers"], found.limits["warps"]) == (16, 16)


@pytest.mark.parametrize(
    ("arch", "registers", "shared", "block", "blocks", "limit"),
    [
        ("sm_80", 32, 0, 1024, 2, "warps"),
        ("sm_80", 255, 0, 256, 1, "registers"),
        ("sm_90a", 16, 0, 32, 32, "blocks"),
        ("sm_90a", 168, 227 * 1024, 384, 1, "registers"),
        ("sm_90a", 32, 227 * 1024, 128, 1, "shared memory"),
        ("sm_89", 40, 0, 64, 24, "warps"),
        ("sm_75", 64, 0, 1024, 1, "warps"),
    ],
)
def test_single_limits(arch, registers, shared, block, blocks, limit):
    found = occupancy(arch, registers, shared, block)
    assert (found.blocks_per_sm, found.limit) == (blocks, limit)


def test_what_does_not_fit_has_no_blocks():
    too_many = occupancy("sm_90", 128, 0, 1024)
    assert (too_many.blocks_per_sm, too_many.limit, too_many.fraction) == (0, "registers", 0.0)
    assert occupancy("sm_90", 32, 227 * 1024 + 1, 128).limit == "shared memory"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((32, 0, 1025), "a block has 1 to 1024 threads on sm_90"),
        ((32, 0, 0), "a block has 1 to 1024 threads on sm_90"),
        ((256, 0, 128), "a thread has 0 to 255 registers"),
        ((32, -1, 128), "sizes are not negative"),
    ],
)
def test_arguments_out_of_range(arguments, message):
    with pytest.raises(CompileError, match=message):
        occupancy("sm_90", *arguments)


def header_folder() -> Path | None:
    """Where the CUDA headers of the installed packages lie."""
    spec = importlib.util.find_spec("nvidia")
    for base in spec.submodule_search_locations if spec is not None else ():
        for header in Path(base).glob("*/include/cuda_occupancy.h"):
            return header.parent
    return None


def random_cases(count: int) -> list[tuple[Chip, int, int, int, int, int]]:
    """Chip, registers, static and dynamic shared bytes, threads, barriers."""
    draw = random.Random(20240517)
    chips = list(CHIPS.values())
    cases = []
    for _ in range(count):
        target = draw.choice(chips)
        static = draw.choice((0, 0, draw.randrange(0, 48 * 1024)))
        dynamic = draw.choice((0, draw.randrange(0, 4096), draw.randrange(0, 230 * 1024)))
        barriers = draw.choice((0, 1, 1, 2, 5, 16))
        cases.append((target, draw.randrange(0, 256), static, dynamic, draw.randrange(1, 1025), barriers))
    return cases


def test_the_same_as_nvidias_calculator(tmp_path):
    compiler, headers = shutil.which("cc"), header_folder()
    if compiler is None or headers is None:
        pytest.skip("needs a C compiler and cuda_occupancy.h (nvidia-cuda-runtime)")
    program = tmp_path / "oracle"
    subprocess.run([compiler, "-O1", f"-I{headers}", str(ORACLE), "-o", str(program)], check=True)
    cases = random_cases(4000)
    lines = [
        f"{c.capability[0]} {c.capability[1]} {c.threads_per_sm} {c.shared_static} {c.shared_per_sm} {c.shared_optin} "
        f"{c.shared_reserved} {registers} {static} {dynamic} {block} {barriers}"
        for c, registers, static, dynamic, block, barriers in cases
    ]
    done = subprocess.run([str(program)], input="\n".join(lines), capture_output=True, text=True, check=True)
    answers = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
    assert len(answers) == len(cases)
    seen = set()
    for (target, registers, static, dynamic, block, barriers), answer in zip(cases, answers, strict=True):
        found = occupancy(target, registers, static + dynamic, block, barriers=barriers)
        limits = [found.limits[name] for name in ("warps", "registers", "shared memory", "blocks", "barriers")]
        assert [found.blocks_per_sm, *limits] == [answer[0], *answer[2:]], (
            target.arch,
            registers,
            static,
            dynamic,
            block,
        )
        assert FACTORS[found.limit] & answer[1]
        seen.add(found.limit)
    assert seen == set(FACTORS), "the random cases should reach every limit"
