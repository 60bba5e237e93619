"""A kernel's PTX to a cubin; a refusal names the user's line behind the PTX line."""

from __future__ import annotations

from tilewright.base.errors import CompileError
from tilewright.compiler.job import Job, KernelJob
from tilewright.compiler.ptx_lines import python_line
from tilewright.targets.nvidia.assemble import Cubin, assemble
from tilewright.targets.nvidia.diagnose import faulty_line


def assemble_kernel(kernel: KernelJob, job: Job, *, lineinfo: bool = False) -> Cubin:
    """Assemble the PTX of a kernel with the options of its job.

    Raises:
        CompileError: the assembler refuses the text; the error is at the Python line that the PTX line came from.
    """
    ptx, options = kernel.texts["ptx"], job.options
    try:
        return assemble(
            ptx,
            job.arch,
            opt_level=options.opt_level,
            lineinfo=lineinfo or options.generate_line_info,
            extra=options.ptxas_options.split(),
            links=[part for part in options.link_libraries.split(",") if part],
        )
    except CompileError as error:
        line = faulty_line(error.nvvm_error)
        if error.location is None and error.nvvm_error:  # it is the text that is refused
            error.location = (python_line(ptx, line) if line else None) or kernel.launched_at
        raise
