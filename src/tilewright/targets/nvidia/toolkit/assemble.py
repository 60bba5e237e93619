"""PTX text to a cubin, by nvJitLink in a process that stays (about 10 ms) or by ptxas (about 16 ms)."""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.hw.chips import chip, normalize_arch, version_key
from tilewright.targets.nvidia.mends.ptxas_faults import faults_met
from tilewright.targets.nvidia.toolkit import jitlink, toolchain
from tilewright.targets.nvidia.toolkit.diagnose import compilation_error, excerpt, faulty_line, ptx_solutions, reasons
from tilewright.targets.nvidia.toolkit.ptxas_flags import PtxasOptions, check_options
from tilewright.targets.nvidia.toolkit.toolchain import Tool

TIME_LIMIT: Final = 600.0
"""Seconds that one run of ptxas may take."""


@dataclass(frozen=True)
class Cubin:
    """Machine code: the ELF file, what the tool said, and which tool it was (`nvJitLink 13.5`, `ptxas 13.5`)."""

    data: bytes
    log: str
    tool: str


_OVERRIDES: Final = (13, 0)
"""The first toolkit that surely knows `--override-directive-values`."""


@dataclass(frozen=True)
class _Job:
    """One assembly: the text, its target and every option, checked."""

    ptx: str
    arch: str
    options: PtxasOptions
    links: tuple[jitlink.Input, ...]

    def flags(self, version: tuple[int, int] = _OVERRIDES) -> list[str]:
        """Options in the spelling that ptxas takes, and nvJitLink behind `-Xptxas=`, of a toolkit of that version."""
        options = self.options
        flags = [f"--opt-level={options.opt_level}"]
        flags += ["--generate-line-info"] if options.lineinfo else []
        flags += ["--verbose"] if options.verbose else []
        if options.max_registers is not None:
            # The block's size in the PTX would win over the option otherwise.
            flags += ["--override-directive-values"] if version >= _OVERRIDES else []
            flags += [f"--maxrregcount={options.max_registers}"]
        return flags + list(options.rest)

    def settings(self, tool: str) -> Mapping[str, object]:
        """The lines under `Current Settings`."""
        version = re.search(r"^\s*\.version\s+(\S+)", self.ptx, re.MULTILINE)
        return {
            "CUDA Toolkit Path": settings.get("toolkit") or "(installed packages)",
            "Tool": tool,
            "Target Architecture": self.arch,
            "PTX Version": version[1] if version else "(none)",
            "Options": " ".join(self.flags()),
        }


def prepare() -> None:
    """Start what `assemble` will probably need, while the PTX is being made."""
    ptxas, linker = toolchain.locate("ptxas"), toolchain.locate("nvJitLink")
    if linker is not None and (ptxas is None or ptxas.origin != "toolkit"):
        jitlink.prepare(linker.path)


def assemble(
    ptx: str,
    arch: str,
    *,
    opt_level: int = 3,
    lineinfo: bool = False,
    max_registers: int | None = None,
    extra: Sequence[str] = (),
    use_ptxas: bool | None = None,
    links: Sequence[str] = (),
) -> Cubin:
    """Assemble PTX for one target.

    Args:
        ptx: the text of one PTX module.
        arch: the target, in any spelling of `normalize_arch`.
        opt_level: 0 to 3.
        lineinfo: keep the line tables that the text's `.loc` directives give.
        max_registers: most registers per thread; with toolkits before CUDA 13, of kernels without launch bounds.
        extra: further flags of ptxas, as `split_options` gives them; they win over the arguments above.
        use_ptxas: True runs ptxas, False nvJitLink. By default nvJitLink, but ptxas where the user asks for `-v`,
            has set a toolkit that holds ptxas, nvJitLink is missing, or the text moves registers between warpgroups.
        links: libraries, objects or cubins to link with, by path.

    Raises:
        CompileError: an option is not valid, a tool is missing, or the text is refused; then the message holds
            settings, reason (with the PTX line) and possible solutions, and `nvvm_error` all the tool's text.
    """
    arch = normalize_arch(arch)
    checked = check_options(extra, arch)
    options = PtxasOptions(
        checked.verbose,
        checked.lineinfo or lineinfo,
        opt_level if checked.opt_level is None else checked.opt_level,
        max_registers if checked.max_registers is None else checked.max_registers,
        checked.rest,
    )
    if options.opt_level not in (0, 1, 2, 3):
        raise CompileError(f"opt_level is 0, 1, 2 or 3, not {options.opt_level}")
    job = _Job(ptx, arch, options, tuple(jitlink.library_input(path) for path in links))
    kind, tool = _choose(job, use_ptxas)
    _check_text(job, tool.name)
    return _by_ptxas(job, tool) if kind == "ptxas" else _by_jitlink(job, tool)


def _check_text(job: _Job, tool: str) -> None:
    """The tools say little about a text that is no PTX at all, so that is said here."""
    if "\0" in job.ptx.rstrip("\0"):
        raise _refusal(job, tool, "error : the text holds a NUL character")
    if not re.search(r"^\s*\.version\s+\d+\.\d+", job.ptx, re.MULTILINE):
        raise _refusal(job, tool, "error : the text is no PTX: it has no .version directive")


def _choose(job: _Job, use_ptxas: bool | None) -> tuple[Literal["ptxas", "nvJitLink"], Tool]:
    if use_ptxas is True:
        return "ptxas", toolchain.find("ptxas")
    if use_ptxas is False:
        return "nvJitLink", toolchain.find("nvJitLink")
    ptxas, linker = toolchain.locate("ptxas"), toolchain.locate("nvJitLink")
    if ptxas is not None and (
        job.options.verbose or ptxas.origin == "toolkit" or linker is None or _moves_registers(job)
    ):
        return "ptxas", ptxas
    return "nvJitLink", linker or toolchain.find("nvJitLink")


def _moves_registers(job: _Job) -> bool:
    """Whether the text has `setmaxnreg`, which only ptxas keeps: nvJitLink compiles for linking, and drops it (C7504).

    With libraries to link ptxas drops it as well.
    """
    return "setmaxnreg" in job.ptx and not job.links


def _by_jitlink(job: _Job, tool: Tool) -> Cubin:
    version = jitlink.version(tool.path)
    name = f"nvJitLink {version[0]}.{version[1]}"
    ptx, arch = _for_tool(job, version)
    inputs = [jitlink.Input(jitlink.PTX, ptx.encode(), "kernel.ptx"), *job.links]
    linked = jitlink.link(tool.path, inputs, [f"-arch={arch}", *(f"-Xptxas={flag}" for flag in job.flags(version))])
    if linked.status or not linked.cubin:
        raise _refusal(job, name, linked.log or f"nvJitLink gave status {linked.status} without a reason")
    return Cubin(linked.cubin, linked.log, name)


def _by_ptxas(job: _Job, tool: Tool) -> Cubin:
    version = toolchain.tool_version(tool)
    name = f"ptxas {version[0]}.{version[1]}"
    ptx, arch = _for_tool(job, version)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        compile_only = ["--compile-only"] if job.links else []
        command = [
            str(tool.path),
            f"--gpu-name={arch}",
            *compile_only,
            *job.flags(version),
            str(source),
            "-o",
            str(target),
        ]
        done = toolchain.run_tool(command, TIME_LIMIT)
        log = (done.stdout + done.stderr).replace(str(source), "kernel.ptx").strip()
        if done.returncode or not target.exists():
            raise _refusal(job, name, log or _ended(done.returncode, ptx, version))
        data = target.read_bytes()
    return _link_object(job, data, log, name, arch) if job.links else Cubin(data, log, name)


def _ended(status: int, ptx: str, version: tuple[int, int]) -> str:
    if status < 0:
        known = "; ".join(fault.what for fault in faults_met(ptx, version))
        ended = f"ptxas was ended by {signal.Signals(-status).name}, which is a fault of ptxas itself"
        return f"{ended} (known of {version[0]}.{version[1]}: {known})" if known else ended
    return f"ptxas ended with status {status} without a reason"


def _link_object(job: _Job, data: bytes, log: str, name: str, arch: str) -> Cubin:
    """ptxas does not link: its relocatable output goes through nvJitLink with the libraries."""
    inputs = [jitlink.Input(jitlink.CUBIN, data, "kernel.cubin"), *job.links]
    linked = jitlink.link(toolchain.find("nvJitLink").path, inputs, [f"-arch={arch}"])
    if linked.status or not linked.cubin:
        raise _refusal(job, f"{name}, nvJitLink", linked.log)
    return Cubin(linked.cubin, f"{log}\n{linked.log}".strip(), name)


_LOC: Final = re.compile(r"^[ \t]*\.loc\b[^\n]*", re.MULTILINE)


def _for_tool(job: _Job, version: tuple[int, int]) -> tuple[str, str]:
    """Text and target for a tool of that version, line for line the job's."""
    # nvJitLink makes line tables wherever there are such directives, whatever it is told.
    text, arch = _in_words_of(job, version)
    return text if job.options.lineinfo else _LOC.sub("", text), arch


def _in_words_of(job: _Job, version: tuple[int, int]) -> tuple[str, str]:
    """Text and target in the words of a toolkit: before CUDA 13, sm_110 was sm_101 and PTX ended at 8.8."""
    if not job.arch.startswith("sm_110") or not (0, 0) < version < (13, 0):
        return job.ptx, job.arch
    arch = job.arch.replace("110", "101")
    newest = "8.8" if version >= (12, 9) else "8.7" if version >= (12, 8) else "8.6"
    ptx = re.sub(r"^(\s*\.target\s+)sm_110", r"\1sm_101", job.ptx, count=1, flags=re.MULTILINE)
    found = re.search(r"^\s*\.version\s+(\d+\.\d+)", ptx, re.MULTILINE)
    if found and version_key(found[1]) > version_key(newest):
        ptx = ptx[: found.start(1)] + newest + ptx[found.end(1) :]
    return ptx, arch


def _refusal(job: _Job, tool: str, log: str) -> CompileError:
    line = faulty_line(log)
    context = excerpt(job.ptx, line) if line is not None else ""
    reason = reasons(log)
    shown = job.ptx.splitlines()[line - 1 : line] if line is not None else []
    if shown:
        reason = f"{reason}\n  in: {shown[0].strip()}"
    solutions = ptx_solutions(log, chip(job.arch))
    return compilation_error("ptxas", job.settings(tool), reason, context, solutions, tool_text=log)
