"""A kernel's PTX to a cubin; a refusal names the user's line behind the PTX line."""

from __future__ import annotations

import sys

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.nvidia.backend.options import NvidiaOptions, options_of, shows_log
from tilewright.targets.nvidia.backend.ptx_lines import python_line
from tilewright.targets.nvidia.mends.ptxas_faults import warn_of_faults
from tilewright.targets.nvidia.toolkit.assemble import Cubin, assemble
from tilewright.targets.nvidia.toolkit.diagnose import faulty_line
from tilewright.targets.nvidia.toolkit.ptxas_flags import split_options


def assemble_kernel(kernel: KernelJob, job: Job, *, lineinfo: bool = False) -> Cubin:
    """Assemble the PTX of a kernel with the options of its job; with ptxas's `-v` its words go to stderr too.

    It warns where the assembler is known to get a form of the text wrong.

    Raises:
        CompileError: the assembler refuses the text; the error is at the Python line that the PTX line came from.
    """
    options = options_of(job)
    made = assemble_text(kernel.texts["ptx"], job.arch, options, kernel.launched_at, lineinfo=lineinfo)
    mended = "ptx" not in job.override and not kernel.changed_by
    warn_of_faults(kernel.texts["ptx"], made.tool, kernel.launched_at, mended=mended)
    if made.log and shows_log(options) and not lineinfo:
        sys.stderr.write(f"{made.log}\n")
    return made


def assemble_text(
    ptx: str, arch: str, options: NvidiaOptions, launched_at: SourceLocation | None, *, lineinfo: bool = False
) -> Cubin:
    """The same from the parts; `launched_at` is where errors are that no Python line is known for."""
    try:
        return assemble(
            ptx,
            arch,
            opt_level=options.opt_level,
            lineinfo=lineinfo or options.generate_line_info,
            extra=split_options(options.ptxas_options),
            links=options.linked(bitcode=False),
        )
    except CompileError as error:
        line = faulty_line(error.nvvm_error)
        if error.location is None and error.nvvm_error:  # it is the text that is refused
            error.location = (python_line(ptx, line) if line else None) or launched_at
        raise
