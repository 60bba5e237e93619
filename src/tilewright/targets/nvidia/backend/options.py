"""The options of this back end beside those that every back end has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.targets.nvidia.toolkit.ptxas_flags import split_options
from tilewright.targets.options import (
    BooleanBasedFileDumpOption,
    BooleanCompileOption,
    Options,
    StringCompileOption,
    option,
)

if TYPE_CHECKING:
    from tilewright.targets.artifact import Artifact
    from tilewright.targets.job import Job

PTX_BACKENDS = ("llvm", "nvidia-nvvm")
BITCODE = (".bc", ".ll")


class PtxasOptions(StringCompileOption):
    """Flags for ptxas, such as `-v --maxrregcount=128`."""

    field = "ptxas_options"


class NvdisasmOptions(StringCompileOption):
    """Flags for nvdisasm."""

    field = "nvdisasm_options"


class PTXBackend(StringCompileOption):
    """What makes the PTX: `llvm` (the default), or `nvidia-nvvm`, which is libNVVM, for sm_100 and up."""

    field = "ptx_backend"


class LinkLibraries(StringCompileOption):
    """Device libraries to link, with commas: bitcode (`.bc`, `.ll`), `.a`, `.o`, `.cubin`, `.fatbin`, `.ptx`."""

    field = "link_libraries"


class GenerateLineInfo(BooleanCompileOption):
    """Line tables in the cubin, for profilers."""

    field = "generate_line_info"


class KeepPTX(BooleanBasedFileDumpOption):
    """Write `<function>.<arch>.ptx` into the dump directory."""

    field = "keep_ptx"


class KeepCUBIN(BooleanBasedFileDumpOption):
    """Write `<function>.<arch>.cubin` into the dump directory."""

    field = "keep_cubin"


class KeepSASS(BooleanBasedFileDumpOption):
    """Write `<function>.<arch>.sass` into the dump directory."""

    field = "keep_sass"


@dataclass(frozen=True)
class NvidiaOptions(Options):
    """All options of a compilation by this back end."""

    ptxas_options: str = ""
    nvdisasm_options: str = option("", "view")
    link_libraries: str = ""
    generate_line_info: bool = False
    keep_ptx: bool = option(False, "view")
    keep_cubin: bool = option(False, "view")
    keep_sass: bool = option(False, "view")
    ptx_backend: str = "llvm"
    profile: bool = True
    profile_warps: int = 1024
    profile_events: int = 124

    def checked(self) -> Self:
        if self.ptx_backend not in PTX_BACKENDS:
            raise CompileError(f"unknown PTX backend {self.ptx_backend!r}", hint=f"one of {', '.join(PTX_BACKENDS)}")
        return super().checked()

    @classmethod
    def from_settings(cls) -> Self:
        keep = settings.get("keep")
        return super().from_settings().changed({
            "generate_line_info": settings.get("lineinfo"),
            "keep_ptx": settings.get("keep_ptx") or bool(keep & {"ptx", "all"}),
            "keep_cubin": settings.get("keep_cubin") or bool(keep & {"cubin", "all"}),
            "keep_sass": settings.get("keep_sass") or bool(keep & {"sass", "all"}),
        })  # fmt: skip

    def linked(self, bitcode: bool) -> list[str]:
        """The libraries that LLVM links, which are `bitcode` or its text, or the others, which nvJitLink links."""
        names = [part.strip() for part in self.link_libraries.split(",") if part.strip()]
        return [name for name in names if name.endswith(BITCODE) == bitcode]

    def kept_stages(self) -> tuple[str, ...]:
        ir = ("cute", "nvvm", "llvm") if self.keep_ir else ()
        return ir + tuple(name for name in ("ptx", "cubin", "sass") if getattr(self, f"keep_{name}"))


def options_of(made: Job | Artifact) -> NvidiaOptions:
    """The options of a compilation by this back end."""
    return cast(NvidiaOptions, made.options)


def shows_log(options: NvidiaOptions) -> bool:
    """Whether the user wants to read what ptxas says: `PtxasOptions("-v")`."""
    return not {"-v", "--verbose"}.isdisjoint(split_options(options.ptxas_options))
