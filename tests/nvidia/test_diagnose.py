"""The documented form of a tool's refusal."""

import pytest

from tilewright.base import settings
from tilewright.base.location import SourceLocation
from tilewright.hw.chips import chip
from tilewright.targets.nvidia.toolkit.diagnose import (
    compilation_error,
    excerpt,
    faulty_line,
    general_solutions,
    ptx_solutions,
    reasons,
)


def test_an_nvvm_error_word_for_word():
    shown = {"CUDA Toolkit Path": "/usr/local/cuda", "Target Architecture": "sm_90"}
    error = compilation_error("nvvm", shown, "expected ')'", "%0 = nvvm.read", general_solutions(chip("sm_90")))
    assert str(error) == "\n".join(
        [
            "NVVM Compilation Error:",
            "----------------------",
            "",
            "Current Settings:",
            "- CUDA Toolkit Path: /usr/local/cuda",
            "- Target Architecture: sm_90",
            "",
            "Reason:",
            "  expected ')'",
            "",
            "Possible Solutions:",
            "1. Check if CUDA_TOOLKIT_PATH is set correctly",
            "2. Verify that the target architecture (sm_90) is supported by your CUDA toolkit",
            "3. Make sure that the CUDA toolkit's version matches the target architecture's requirements",
        ]
    )
    assert (error.nvvm_error, error.ir_context) == ("expected ')'", "%0 = nvvm.read")


def test_the_ir_is_shown_when_debugging_only():
    context = "\n".join(f"line {i}" for i in range(30))
    with settings.scope(debug=True):
        text = str(compilation_error("llvm", {}, "reason", context))
    assert "IR Context (truncated):\n  line 0\n" in text and "  ... 18 more lines" in text
    assert "line 0" not in str(compilation_error("llvm", {}, "reason", context))


def test_long_and_empty_reasons():
    many = compilation_error("ptxas", {}, "\n".join(f"error {i}" for i in range(20)))
    assert "  error 7\n  ... 12 more lines" in str(many)
    assert "(the tool gave no reason)" in str(compilation_error("ptxas", {}, ""))


def test_the_users_line_follows():
    place = SourceLocation("kernel.py", 12)
    assert "kernel.py:12" in str(compilation_error("ptxas", {}, "reason", location=place))


@pytest.mark.parametrize(
    ("text", "line", "short"),
    [
        (
            "ptxas kernel.ptx, line 9; error   : Unknown symbol 'x'\n"
            "ptxas fatal   : Ptx assembly aborted due to errors",
            9,
            "line 9: Unknown symbol 'x'",
        ),
        (
            "ptxas application ptx input, line 55; fatal   : Parsing error near '': syntax error\n"
            "ERROR NVJITLINK_ERROR_PTX_COMPILE: JIT the PTX (kernel.ptx)",
            55,
            "line 55: Parsing error near '': syntax error",
        ),
        ("ptxas error   : Entry function 'k' uses too much shared data", None, "Entry function 'k' uses too much"),
        ("ptxas fatal   : Unknown option '-foo'", None, "Unknown option '-foo'"),
        ("something else", None, "something else"),
    ],
)
def test_what_matters_of_a_tools_words(text, line, short):
    assert faulty_line(text) == line
    assert reasons(text).startswith(short) and "\n" not in reasons(text)


def test_repeated_reasons_are_said_once():
    assert reasons("ptxas error   : same\nptxas error   : same") == "same"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("uses too much shared data (0x20000 bytes, 0xc000 max)", "sm_90 has up to 227 KB"),
        ("uses too many registers", "--maxrregcount"),
        ("Unsupported .version 9.9; current version is '8.4'", "supports sm_90 and PTX 7.8"),
        ("Value 'sm_999' is not defined for option 'gpu-name'", "Unset CUDA_TOOLKIT_PATH"),
        ("Instruction 'elect' requires .target sm_90 or higher", "architecture that has this instruction"),
        ("Feature 'x' requires PTX ISA .version 8.6 or later", "higher .version"),
        ("Unresolved extern function 'foo'", "LinkLibraries"),
    ],
)
def test_solutions_fit_the_words(text, words):
    assert any(words in advice for advice in ptx_solutions(text, chip("sm_90")))


def test_an_excerpt_marks_its_line():
    text = "a\nb\nc\nd\ne"
    assert excerpt(text, 2, around=1) == "      1 | a\n>     2 | b\n      3 | c"
    assert excerpt(text, 5, around=1).endswith(">     5 | e")
    assert excerpt(text, 99) == ""
