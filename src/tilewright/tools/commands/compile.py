"""`tilewright compile`: compile FILE:FUNCTION and write the stages asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import tilewright.cute as cute
import tilewright.dropin  # noqa: F401  importing it makes `import cutlass` resolve
from tilewright.base.errors import ArgumentError
from tilewright.lang.numbers.numeric import BY_NAME
from tilewright.passes.pass_changes import PassChanges
from tilewright.targets.options import OptLevel
from tilewright.targets.target import back_end_of
from tilewright.tools.arguments import Argument, TensorArgument, parse_argument
from tilewright.tools.artifacts import ArtifactFolder
from tilewright.tools.console import console as make_console
from tilewright.tools.function_lookup import load_function
from tilewright.tools.inspection import level_changes, levels, view_names, views

WHOLE = ("python", "cute", "tt")
"""Stages that are written once for a function with several kernels."""
ARG_HELP = "one for each parameter, in order: f32[1024], f32[?,64] (? is a runtime extent), 3, 2.5, none, @file.npy"


def command(
    place: Annotated[str, typer.Argument(metavar="FILE:FUNCTION", help="a @cute.jit function")],
    arg: Annotated[list[str] | None, typer.Option("--arg", help=ARG_HELP)] = None,
    arch: Annotated[
        str | None, typer.Option(help="the chip, such as sm_90a; default: the device's, else sm_90a")
    ] = None,
    emit: Annotated[
        str | None,
        typer.Option(
            help="stages of the target, with commas: python cute nvvm llvm ptx cubin sass (of tenstorrent: python cute "
            "tt cpp), or all"
        ),
    ] = None,
    options: Annotated[str, typer.Option(help='compile options: "--opt-level 2 --generate-line-info"')] = "",
    target: Annotated[
        str, typer.Option(help="what to compile for: emu, tenstorrent, or a target that FILE registers")
    ] = "emu",
    out: Annotated[Path, typer.Option("-o", "--out", help="folder for the files")] = Path(),
    view: Annotated[
        str | None,
        typer.Option(
            help="print machine code, with commas: code histogram categories memory branches blocks graph live"
        ),
    ] = None,
    diff_opt: Annotated[str | None, typer.Option(help="print how two levels of optimisation differ: 0,3")] = None,
    report: Annotated[bool, typer.Option("--report", help="print registers, memory, occupancy and remarks")] = False,
    pass_changes: Annotated[bool, typer.Option("--pass-changes", help="print what each pass changes")] = False,
) -> None:
    """Compile a function and write stages to <function>.<arch>.<ext>; another compilation's files are left alone.

    With --view, --diff-opt, --report or --pass-changes it prints those, and writes only the stages that --emit names.
    """
    function = load_function(place)
    back_end = back_end_of(target)
    prints = bool(view or diff_opt or report or pass_changes)
    stages = (
        [] if prints and emit is None else stage_names(back_end.emitted if emit is None else emit, back_end.stage_names)
    )
    names = view_names(view) if view is not None else []
    compared = levels(diff_opt) if diff_opt is not None else []
    arguments = [parse_argument(word) for word in arg or []]
    given = [compile_argument(item) for item in arguments]
    changes = PassChanges() if pass_changes else None

    def compiled(chosen: Any, after_pass: Any = None) -> Any:
        return cute.compile(function, *given, options=chosen, arch=arch, target=target, after_pass=after_pass)

    executor = compiled(options, changes)
    shown = [str(changes)] if changes is not None else []
    shown += views(executor, names)
    if compared:
        shown += level_changes(lambda level: compiled([options, OptLevel(level)]), *compared)
    shown += [str(executor.report())] if report else []
    for text in shown:
        sys.stdout.write(f"{text}\n")
    name = place.rpartition(":")[2].replace(".", "_")
    made_from = " ".join([str(Path(place.rpartition(":")[0]).resolve()), name, *(arg or []), executor.arch, options])
    extensions = {stage.name: stage.extension for stage in back_end.stages}
    folder, console = ArtifactFolder(out, extensions), make_console()
    several = {stage.name: stage.files for stage in back_end.stages if stage.files is not None and stage.name in stages}
    written = []
    for stem, contents in results(executor, name, [stage for stage in stages if stage not in several]):
        written += folder.write(stem, executor.arch, contents, made_from)
    for stage, files in several.items():
        executor.stages[stage]  # makes it
        written += write_files(out, files(executor.job))
    for path in written:
        console.print(str(path), soft_wrap=True, highlight=False)


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write the files of a program under their own names, over those of another."""
    written = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def stage_names(text: str, known: Sequence[str]) -> list[str]:
    """The stages of `--emit`, in the order of the back end's `known` ones."""
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    if wanted == ["all"]:
        return list(known)
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise ArgumentError(f"--emit {text!r}: there is no stage {', '.join(unknown) or 'named'}",
                            hint=f"stages: {', '.join(known)}, or all")  # fmt: skip
    return [name for name in known if name in wanted]


def compile_argument(argument: Argument) -> Any:
    """What `cute.compile` takes for an argument: a description of a tensor, or the number."""
    if not isinstance(argument, TensorArgument):
        return argument.value
    shape = tuple(
        cute.sym_int() if mode in argument.dynamic else extent for mode, extent in enumerate(argument.shape)
    )  # fmt: skip
    row_major = tuple(reversed(range(len(shape))))
    return cute.runtime.make_fake_compact_tensor(BY_NAME[argument.dtype_name], shape, stride_order=row_major)


def results(executor: Any, name: str, stages: Sequence[str]) -> Iterator[tuple[str, dict[str, str | bytes]]]:
    """File stems with the stages to write under them: the function's name, or those of its several kernels."""
    kernels = executor.kernels
    if len(kernels) <= 1:
        if stages:
            yield name, {stage: executor.stages[stage] for stage in stages}
        return
    whole = {stage: executor.stages[stage] for stage in stages if stage in WHOLE}
    if whole:
        yield name, whole
    for kernel_name, kernel in kernels.items():
        parts = {stage: kernel.stages[stage] for stage in stages if stage not in WHOLE}
        if parts:
            yield kernel_name, parts
