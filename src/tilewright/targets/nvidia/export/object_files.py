"""Ahead-of-time export: a compiled function as an object file, with a C header or for tvm-ffi.

The object holds the kernels and the code that loads and launches them; it needs the C library, and at the first
launch the driver. Its metadata says by which version of the interface it was made, see `compiler.loading`.
"""

from __future__ import annotations

import json
import keyword
import re
from pathlib import Path
from typing import Final

from tilewright.base.errors import CompileError
from tilewright.ir.llvm import host_target
from tilewright.targets.artifact import Artifact
from tilewright.targets.artifact_bytes import FORMAT, encode
from tilewright.targets.host.exported import ExportedKernel, export_object
from tilewright.targets.host.seal import sealed
from tilewright.targets.host_target import parse_host_target, portable
from tilewright.targets.nvidia.backend.assembling import assemble_text
from tilewright.targets.nvidia.backend.options import options_of
from tilewright.targets.nvidia.backend.parts import HOST_LLVM
from tilewright.targets.nvidia.export.c_header import header

C_FORM: Final = "c"
TVM_FORM: Final = "tvm-ffi"


def export_c(artifact: Artifact, folder: str | Path, file_name: str, prefix: str) -> list[Path]:
    """Write `<folder>/<file_name>.o` and `.h`, with symbols of `prefix`; existing files are replaced.

    Raises:
        CompileError: `prefix` is no C identifier, or a parameter has no C type.
    """
    _check_name(prefix, "function_prefix")
    text = header(prefix, artifact)
    data = _object(artifact, prefix, C_FORM)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = [target / f"{file_name}.h", target / f"{file_name}.o"]
    written[0].write_text(text)
    written[1].write_bytes(data)
    return written


def export_tvm_ffi(artifact: Artifact, path: str | Path, name: str) -> list[Path]:
    """Write an object with the symbol `__tvm_ffi_<name>` to `path`; an existing file is replaced.

    Raises:
        CompileError: `name` is no C identifier, or the function was compiled for another host (`--host-target`).
    """
    _check_name(name, "function_name")
    if artifact.options.host_target:
        raise CompileError(
            "the form for tvm-ffi is made for this machine only",
            values={"host-target": artifact.options.host_target},
            hint='export_to_c(file_path="build", file_name="add") makes the form for C',
        )
    data = _object(artifact, name, TVM_FORM)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return [target]


def metadata(artifact: Artifact, name: str, form: str) -> str:
    """What an object says of itself, as JSON."""
    facts = {
        "tilewright": FORMAT,
        "form": form,
        "name": name,
        "arch": artifact.arch,
        "kernels": [kernel.name for kernel in artifact.kernels],
        "signature": encode(artifact.signature),
    }
    return json.dumps(facts, separators=(",", ":"))


def _object(artifact: Artifact, name: str, form: str) -> bytes:
    wanted = artifact.options.host_target
    host = parse_host_target(wanted) if wanted else portable(host_target()[0])
    data = export_object(
        name,
        str(artifact.stages[HOST_LLVM]),
        artifact.entry,
        artifact.signature,
        [ExportedKernel(kernel.name, _cubin(artifact, index)) for index, kernel in enumerate(artifact.kernels)],
        metadata(artifact, name, form),
        tvm_ffi=form == TVM_FORM,
        cpu=host.cpu,
        triple=host.triple,
        features=host.features,
    )
    return sealed(data)


def _cubin(artifact: Artifact, index: int) -> bytes:
    kernel = artifact.kernels[index]
    made = kernel.stages.get("cubin")
    if isinstance(made, bytes):
        return made
    return assemble_text(str(kernel.stages["ptx"]), artifact.arch, options_of(artifact), kernel.launched_at).data


def _check_name(name: str, what: str) -> None:
    if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII) or keyword.iskeyword(name):
        raise CompileError(f"{what} is {name!r}", hint="give a C identifier: letters, digits and underscores")
