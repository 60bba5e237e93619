"""One form for every refusal of a compiler tool: settings, reason, possible solutions.

The form is the documented one of the compilation pipeline::

    PTX Compilation Error:
    ----------------------

    Current Settings:
    - Target Architecture: sm_90
    ...

    Reason:
      ...

    Possible Solutions:
    1. ...
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tilewright.base import settings as base_settings
from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.hw.chips import Chip

_TITLES: Final = {"nvvm": "NVVM", "llvm": "NVVM", "libnvvm": "NVVM", "ptx": "PTX", "ptxas": "PTX", "cubin": "PTX"}

CONTEXT_LINES: Final = 12
"""Lines of IR shown in a message under TILEWRIGHT_DEBUG=1; `ir_context` keeps all."""

REASON_LINES: Final = 8
"""Lines of the tool's own words shown; `nvvm_error` keeps all."""


def compilation_error(
    stage: str,
    settings: Mapping[str, object],
    reason: str,
    ir_context: str = "",
    solutions: Sequence[str] = (),
    *,
    location: SourceLocation | None = None,
    tool_text: str = "",
) -> CompileError:
    """A `CompileError` in the documented form.

    Args:
        stage: where it failed: `nvvm`, `llvm`, `libnvvm` give `NVVM Compilation Error`, `ptxas`, `cubin` give `PTX`.
        settings: what the compilation was asked for, by label.
        reason: the tool's words, the lines that matter.
        ir_context: the text around the fault; in the message only when debugging.
        solutions: what the user may try, most likely first.
        location: the user's line, where known.
        tool_text: all that the tool said; `reason` if empty.
    """
    title = f"{_TITLES.get(stage, stage)} Compilation Error:"
    lines = [title, "-" * (len(title) - 1), "", "Current Settings:"]
    lines += [f"- {name}: {value}" for name, value in settings.items()]
    if ir_context and base_settings.get("debug"):
        lines += ["", "IR Context (truncated):", *_indent(ir_context, CONTEXT_LINES)]
    lines += ["", "Reason:", *_indent(reason, REASON_LINES)]
    if solutions:
        lines += ["", "Possible Solutions:", *(f"{i}. {text}" for i, text in enumerate(solutions, 1))]
    return CompileError("\n".join(lines), location=location, nvvm_error=tool_text or reason, ir_context=ir_context)


def _indent(text: str, most: int) -> list[str]:
    lines = text.strip().splitlines() or ["(the tool gave no reason)"]
    shown = [f"  {line}" for line in lines[:most]]
    return [*shown, f"  ... {len(lines) - most} more lines"] if len(lines) > most else shown


def excerpt(text: str, line: int, around: int = 3) -> str:
    """The lines of a text near `line` (from 1), numbered, the line itself marked."""
    lines = text.splitlines()
    first, last = max(line - 1 - around, 0), min(line + around, len(lines))
    return "\n".join(f"{'>' if i + 1 == line else ' '} {i + 1:5} | {lines[i]}" for i in range(first, last))


def faulty_line(tool_text: str) -> int | None:
    """The first PTX line that ptxas or nvJitLink complains about."""
    found = re.search(r"line (\d+)[;:,]", tool_text)
    return int(found[1]) if found else None


def reasons(tool_text: str) -> str:
    """The tool's error lines, without its name, its temporary file and repetitions."""
    kept = [line for line in tool_text.splitlines() if re.search(r"\b(error|fatal)\b", line, re.IGNORECASE)]
    named = [line for line in kept if "Ptx assembly aborted" not in line and "ERROR NVJITLINK" not in line]
    lines = [_strip(line) for line in (named or kept or tool_text.splitlines())]
    return "\n".join(dict.fromkeys(line for line in lines if line))


def _strip(line: str) -> str:
    """`ptxas /tmp/x.ptx, line 9; error   : M` becomes `line 9: M`."""
    found = re.match(r"ptxas .*?line (\d+)[;:,]\s*(?:error|fatal)\s*:\s*(.*)", line)
    if found:
        return f"line {found[1]}: {found[2]}"
    return re.sub(r"^(?:ptxas\s+)?(?:error|fatal)\s*:\s*", "", line).strip()


def ptx_solutions(tool_text: str, target: Chip) -> list[str]:
    """What to try, by the words of ptxas; general advice when none is recognised."""
    found = [advice.format(target=target, optin=target.shared_optin // 1024)
             for pattern, advices in _PTX_ADVICE if re.search(pattern, tool_text, re.IGNORECASE)
             for advice in advices]  # fmt: skip
    return found or general_solutions(target)


def general_solutions(target: Chip) -> list[str]:
    """What to try when the reason tells nothing more: the documented three, for this target."""
    return [advice.format(target=target) for advice in _GENERAL_ADVICE]


_PTX_ADVICE: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        r"ptxas was ended by SIG",
        (
            "Use a newer toolkit: set CUDA_TOOLKIT_PATH, or unset it to use the installed packages",
            "Compile with cute.compile[OptLevel(0)](...), which leaves out the part that failed",
        ),
    ),
    (
        r"too much shared data",
        (
            "Reduce shared memory usage: smaller tiles or fewer stages",
            "Use dynamic shared memory, of which {target.arch} has up to {optin} KB a block; static has 48 KB",
        ),
    ),
    (
        r"too many registers|register (?:count|allocation)|maxr?reg",
        (
            "Raise or remove --maxrregcount",
            "Reduce the block size, so that each thread may use more registers",
            "Keep fewer values per thread: smaller register tiles",
        ),
    ),
    (
        r"Program with \.target|version specified by \.target is higher",
        ("The text names another .target: compile it for that one, or replace the text",),
    ),
    (
        r"Unsupported \.version|not defined for option 'gpu-name'|unrecognized architecture|unsupported architecture"
        r"|Unknown target",
        (
            "Check that CUDA_TOOLKIT_PATH points to a toolkit that supports {target.arch} and PTX {target.ptx}",
            "Unset CUDA_TOOLKIT_PATH to use the installed packages",
            "Verify the target architecture ({target.arch})",
        ),
    ),
    (
        r"requires \.target|not supported on \.target",
        (
            "Choose an architecture that has this instruction: GPUArch(...) or --gpu-arch",
            "Use another operation on {target.arch}",
        ),
    ),
    (
        r"requires PTX ISA|requires \.version|\.version \S+ does not support",
        ("Ask for a higher .version in the PTX text: {target.arch} needs {target.ptx} at least",),
    ),
    (
        r"Parsing error|syntax error|Not a name of any known instruction|Unknown (?:symbol|modifier)"
        r"|Illegal modifier|Arguments mismatch|no PTX|NUL character",
        (
            "Check the text given by override=, left by a pass or written as inline assembly at the line named above",
            "Compare with the PTX of an unchanged compilation in .stages['ptx']",
        ),
    ),
    (
        r"Unresolved extern|undefined reference",
        (
            "Name the library that defines the function: LinkLibraries(...) or --link-libraries",
            "Check the function's name for a spelling mistake",
        ),
    ),
    (
        r"Unknown option|unrecognized option|Unexpected (?:option|value)|not in range",
        ("Check the flags given by PtxasOptions(...) against `ptxas --help`",),
    ),
)

_GENERAL_ADVICE: Final = (
    "Check if CUDA_TOOLKIT_PATH is set correctly",
    "Verify that the target architecture ({target.arch}) is supported by your CUDA toolkit",
    "Make sure that the CUDA toolkit's version matches the target architecture's requirements",
)
