"""Compiled functions: call them, read their stages, ask what they cost."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, cast

from tilewright.base import settings
from tilewright.base.errors import ArgumentError, CompileError, LaunchError, TilewrightError
from tilewright.base.interrupts import is_outside, raised_by_signal
from tilewright.base.signature import TensorParam, TupleParam
from tilewright.compiler import stages
from tilewright.compiler.aggregates import Keywords, check_constant, check_fixed, is_aggregate, members
from tilewright.compiler.arguments import BoundCall, converted
from tilewright.compiler.artifact import Artifact, KernelImage, artifact_of
from tilewright.compiler.assembling import shows_log
from tilewright.compiler.dlpack import refuse_lazy
from tilewright.compiler.export import export_c, export_tvm_ffi
from tilewright.compiler.inlined import name_calls
from tilewright.compiler.job import Job, KernelJob
from tilewright.compiler.objects import adapted
from tilewright.compiler.report import Report
from tilewright.compiler.runtime_tensor import RuntimeTensor
from tilewright.compiler.source_map import SourceMap
from tilewright.compiler.target import make_device
from tilewright.compiler.wide_form import WideForm
from tilewright.hw.chips import chip
from tilewright.hw.occupancy import Occupancy, occupancy
from tilewright.ir.context import compile_context
from tilewright.lang.calls.parameters import evaluated_annotations, gathering, is_constexpr
from tilewright.lang.diagnostics.tracebacks import OnlyUserFrames
from tilewright.lang.locations import ErrorsLocated, user_location
from tilewright.targets.host.ffi import Carried, SpanError, tvm_ffi
from tilewright.targets.nvidia.assemble import prepare
from tilewright.targets.nvidia.cubin import KernelInfo, read_cubin

_EXTENSIONS = {"python": "py", "cute": "cute.mlir", "nvvm": "nvvm.mlir", "llvm": "ll", "ptx": "ptx", "cubin": "cubin",
               "sass": "sass"}  # fmt: skip
_PRINTS = "...) @__tw_printf("  # a call, not the declaration
_DATA = (bool, int, float, str, bytes, tuple, list, type, type(None))


class StageMap(Mapping[str, Any]):
    """Stage name to text (bytes for `cubin`). What was not made yet is made when asked for.

    A function with several kernels has one text for `python`, `cute` and `nvvm`, and for the other stages a mapping
    by kernel name.
    """

    def __init__(self, artifact: Artifact, job: Job | None, kernel: KernelJob | None = None) -> None:
        self._artifact = artifact
        self._job = job
        self._kernel = kernel

    def __getitem__(self, name: str) -> Any:
        if name not in stages.STAGE_NAMES:
            raise KeyError(f"{name!r}; the stages are {', '.join(stages.STAGE_NAMES)}")
        if self._job is None:
            raise CompileError(
                f"{self._artifact.name} was not compiled by this process, so its stages are not at hand",
                hint="compile it again: cute.compile always compiles",
            )
        if name not in self._job.finished:
            with OnlyUserFrames(), ErrorsLocated():
                stages.run(self._job, name)
        if name == "python":
            return (self._kernel or self._job).python()
        if self._kernel is not None:
            return self._kernel.texts[name]
        if name in ("cute", "nvvm"):
            return self._job.texts[name]
        texts = {kernel.name: kernel.texts[name] for kernel in self._job.kernels.values()}
        if not texts:
            raise CompileError(f"{self._job.name} launches no kernel, so there is no stage {name}")
        return next(iter(texts.values())) if len(texts) == 1 else texts

    def __iter__(self) -> Iterator[str]:
        return iter(stages.STAGE_NAMES)

    def __len__(self) -> int:
        return len(stages.STAGE_NAMES)


@dataclass(frozen=True)
class KernelArtifact:
    """One kernel of a compiled function."""

    name: str
    stages: StageMap
    arch: str
    cubin: bytes | None = None  # where it was made before the function was loaded

    @property
    def info(self) -> KernelInfo:
        """What the cubin says of the kernel: registers, spills, memory, parameters."""
        return read_cubin(self.cubin or self.stages["cubin"]).kernels[self.name]


class Executor:
    """A compiled function. Call it with the arguments that are not compile-time."""

    @classmethod
    def build(
        cls,
        job: Job,
        call: BoundCall,
        target: str,
        function: FunctionType,
        checks: Any,
        observers: Sequence[stages.Observer],
    ) -> Executor:
        """Run all stages that `target` needs."""
        with compile_context():
            return cls.finish(job, call, target, function, checks, observers)

    @classmethod
    def finish(
        cls,
        job: Job,
        call: BoundCall,
        target: str,
        function: FunctionType,
        checks: Any,
        observers: Sequence[stages.Observer],
    ) -> Executor:
        """Run the stages that are left, in the current context."""
        assembles = target == "cuda" or shows_log(job.options)
        if assembles:
            with settings.scope(toolkit=job.toolkit):
                prepare()
        stages.run(job, "cubin" if assembles else "ptx", observers)
        kind = _ffi_executor() if job.options.enable_tvm_ffi else cls
        made: Executor = kind(artifact_of(job), call, target, function, checks, job)
        made._keep_files()
        return made

    def __init__(
        self,
        artifact: Artifact,
        call: BoundCall,
        target: str,
        function: FunctionType,
        checks: Any,
        job: Job | None = None,
    ) -> None:
        """Load `artifact`; without the `job` that made it, it runs but shows no stages."""
        self.artifact = artifact
        self._compilation = job
        self._function = function
        self._constants = call.constants
        self._count = len(call.passed())
        self._bound = call.bound
        kinds = {kind: name for name, kind in gathering(function).items()}
        self._gathers = kinds.get(inspect.Parameter.VAR_POSITIONAL, "")
        self._keywords = kinds.get(inspect.Parameter.VAR_KEYWORD, "")
        self._params = [param for param in artifact.signature.params if not getattr(param, "env", False)]
        # Where torch tensors may stand, in tuples too.
        places = [place for place, item in enumerate(self._params) if isinstance(item, TensorParam | TupleParam)]
        self._pick = _picker(places)
        self._fixed = call.fixed()
        self._names = [name for name, value in call.runtime.items()]
        self._compiled_keywords: dict[str, Any] = (call.runtime | call.constants).get(self._keywords, {})
        self._lengths = {name: len(value) for name, value in call.runtime.items() if isinstance(value, (tuple, list))}
        self.target = target
        self.wide_form: WideForm | None = None  # what takes tensors beyond 2^31, where it can be made
        self.device = make_device(target, artifact, checks)
        self._last_device = self.device
        # What prints on the host calls Python, and is called through it.
        straight = target == "cuda" and _PRINTS not in artifact.host_llvm
        self._direct = self.device.host.function if straight else None
        self.stages = StageMap(artifact, job)
        kernels = job.kernels if job is not None else {}
        self.kernels = {
            kernel.name: KernelArtifact(
                kernel.name, StageMap(artifact, job, kernels.get(kernel.name)), artifact.arch, kernel.cubin
            )
            for kernel in artifact.kernels
        }

    @property
    def name(self) -> str:
        return self.artifact.name

    @property
    def job(self) -> Job:
        """The compilation: options, pass list, and what each stage made.

        Raises:
            CompileError: another process compiled the function.
        """
        if self._compilation is None:
            raise CompileError(
                f"{self.name} was not compiled by this process", hint="compile it again: cute.compile always compiles"
            )
        return self._compilation

    @property
    def arch(self) -> str:
        return self.artifact.arch

    @property
    def signature(self) -> Any:
        """What a call takes, see `base.signature`."""
        return self.artifact.signature

    @property
    def timings(self) -> dict[str, float]:
        """Seconds that each stage took."""
        return dict(self.job.seconds)

    @property
    def pass_timings(self) -> list[tuple[str, float]]:
        """Seconds that each pass took, in order."""
        return [(item.name, item.seconds) for item in self.job.pass_runs]

    @property
    def operations(self) -> dict[str, int]:
        """Operations in the module after stages `cute` and `nvvm`."""
        return dict(self.job.operations)

    @property
    def native(self) -> Any:
        """The tvm-ffi function itself: no conversion of arguments, errors are tvm-ffi's."""
        return self.device.host.function

    @property
    def pipeline(self) -> str:
        """The pass list, as `cute.compile(pipeline=)` reads it."""
        return str(self.job.pipeline)

    @property
    def ptxas_log(self) -> str:
        """What the assembler said, for all kernels."""
        self.stages["cubin"]
        return "".join(kernel.texts.get("ptxas_log", "") for kernel in self.job.kernels.values())

    @property
    def host_llvm(self) -> str:
        """The host function as LLVM IR."""
        return self.artifact.host_llvm

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Run. Arguments are those of the compiled function without the compile-time ones; defaults may be left out.

        Raises:
            ArgumentError: they do not fit what the function was compiled for.
            LaunchError: the driver refused a launch.
            EmulationError: the emulator found a fault.
        """
        if self._direct is not None and not kwargs and self._takes_native(args):
            try:
                self._direct(*args)
            except Exception as error:
                if raised_by_signal(error):
                    raise
                raised = self.device.host.raised(error)  # tvm-ffi raises whatever class an error names
                if isinstance(raised, SpanError) and self.wide_form is not None and self.wide_form.executor is not None:
                    return self.wide_form.executor(*args)
                if not isinstance(raised, ArgumentError):
                    raise self._placed(raised) from None
            else:
                return
            # Native code took nothing of this call: convert, copy and complete the arguments, or say what is wrong.
        args = self.ordered(args, kwargs)
        try:
            self.run(args)
        except TilewrightError:
            with OnlyUserFrames():
                raise

    def ordered(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call as one value for each parameter of the signature."""
        if not kwargs and len(args) == self._count and not self._gathers:
            return args
        with OnlyUserFrames(), ErrorsLocated():
            return tuple(self._bind(args, kwargs))

    def _takes_native(self, args: tuple[Any, ...]) -> bool:
        """Whether native code may take the arguments as they are: none was wrapped by `from_dlpack`.

        Refuses torch's lazily negated tensors; native code does not see that they are.
        """
        try:
            if not any(map(_IS_NEG, self._pick(args))):
                return True
        except (AttributeError, IndexError):  # not torch's: ask each
            if any(isinstance(value, RuntimeTensor) for value in args):
                return False
            if "torch" not in sys.modules:
                return True
        with OnlyUserFrames(), ErrorsLocated():
            for value in args:
                _refuse_lazy_parts(value)
        return True

    def run(self, values: Sequence[Any]) -> None:
        """Run with one value for each parameter of the signature."""
        try:
            for param, value in zip(self._params, values, strict=False):
                if param.name in self._lengths:
                    self._check_length(param.name, value)
                if param.name in self._fixed:
                    check_fixed(cast(TupleParam, param), value, self._fixed[param.name])
            self._run(values)
        except SpanError as error:
            if self.wide_form is None:
                raise self._placed(error) from error.__cause__
            self._run_wide(self.wide_form, values)
        except TilewrightError as error:
            raise self._placed(error) from error.__cause__

    def run_traced(self, values: Sequence[Any]) -> None:
        """The same for values that gave this very program when traced: what is baked in need not be compared."""
        try:
            self._run(values)
        except TilewrightError as error:
            raise self._placed(error) from error.__cause__

    def _run_wide(self, form: WideForm, values: Sequence[Any]) -> None:
        """Run the 64-bit form, which is compiled now where no call needed it before."""
        wide = form.get()
        self._last_device = wide.device
        wide.run(values)

    def _run(self, values: Sequence[Any]) -> None:
        self._last_device = self.device
        self.device.run([converted(value, param) for value, param in zip(values, self._params, strict=True)])

    def _placed(self, error: TilewrightError) -> TilewrightError:
        """The error with a line of the user: of the launch where it is known, else of the call."""
        if error.location is None:
            launches = [kernel.launched_at for kernel in self.artifact.kernels]
            at_launch = isinstance(error, LaunchError) and len(launches) == 1
            error.location = launches[0] if at_launch else user_location()
            if not at_launch:
                return error  # of the call: who led to it stands in Python's own traceback
        name_calls(error, self.artifact.inlined)
        return error

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Arguments by name and with defaults, in the order of the signature.

        A call may give those that are not annotated `Constexpr` (the ones compiled as None among them), all of them, or
        only those of run time.
        """
        parameters = inspect.signature(self._function).parameters
        every = [name for name in parameters if name != self._keywords][self._bound :]
        kinds = evaluated_annotations(self._function)
        orders = [
            [name for name in every if not is_constexpr(kinds.get(name))],
            every,
            [name for name in every if name in self._names],
        ]
        refusals: list[ArgumentError] = []
        for order in orders:
            try:
                return self._ordered(order, args, kwargs, parameters)
            except ArgumentError as error:
                refusals.append(error)
        # The longest form that the arguments do not exceed is the one that was meant.
        meant = max(range(3), key=lambda form: (len(orders[form]) <= len(args), -abs(len(orders[form]) - len(args))))
        raise refusals[meant]

    def _ordered(
        self, order: list[str], args: tuple[Any, ...], kwargs: Mapping[str, Any], parameters: Mapping[str, Any]
    ) -> list[Any]:
        """The values of run time, where `args` are those of the parameters in `order`."""
        if self._gathers in order:
            place = order.index(self._gathers)
            args = (*args[:place], tuple(args[place:]))
        if len(args) > len(order):
            raise ArgumentError(
                f"{self.name} takes {self._count} arguments, got {len(args)}", values={"parameters": ", ".join(order)}
            )
        given = dict(zip(order, args, strict=False)) | dict(kwargs)
        unknown = given.keys() - parameters.keys()
        if self._keywords:
            taken = {name: given.pop(name) for name in kwargs if name in unknown}
            self._take_keywords(taken, given)
            unknown = set()
        if unknown:
            raise ArgumentError(f"{self.name} has no parameter {sorted(unknown)[0]!r}")
        for name, constant in self._constants.items():
            # Functions and objects have no equality to rely on; a thing where there was nothing is another program.
            if name in given and (isinstance(given[name], _DATA) or constant is None):
                check_constant(name, constant, adapted(given[name]))
        return [self._value(name, given, parameters) for name in self._passed_names()]

    def _take_keywords(self, taken: dict[str, Any], given: dict[str, Any]) -> None:
        """What `**kwargs` of the function gets: the names that it was compiled for, compile-time ones if repeated."""
        compiled = self._compiled_keywords
        passed = self._keywords in self._names
        if taken.keys() - compiled.keys() or (passed and compiled.keys() != taken.keys()):
            raise ArgumentError(
                f"{self.name} was compiled for other keywords of `**{self._keywords}`",
                values={"compiled for": ", ".join(compiled) or "none", "passed": ", ".join(taken) or "none"},
                hint="compile again for these keywords",
            )
        if passed:
            given[self._keywords] = Keywords({name: taken[name] for name in compiled})
            return
        for name, value in taken.items():
            if isinstance(value, _DATA):
                check_constant(f"{self._keywords}.{name}", compiled[name], adapted(value))

    def _check_length(self, name: str, value: Any) -> None:
        if isinstance(value, (tuple, list)) and len(value) != self._lengths[name]:
            raise ArgumentError(
                f"{name} of {self.name} has {len(value)} items",
                values={"compiled for": f"{self._lengths[name]} items"},
                hint="compile again for another number of items",
            )

    def _passed_names(self) -> list[str]:
        known = {param.name for param in self.signature.params if not getattr(param, "env", False)}
        return [name for name in self._names if name in known]

    def _value(self, name: str, given: dict[str, Any], parameters: Mapping[str, Any]) -> Any:
        if name in given:
            return given[name]
        if parameters[name].default is not parameters[name].empty:
            return parameters[name].default
        raise ArgumentError(
            f"{self.name} needs an argument for {name!r}", values={"parameters": ", ".join(self._passed_names())}
        )

    def occupancy(
        self, block: int | tuple[int, ...], *, kernel: str | None = None, smem: int | None = None
    ) -> Occupancy:
        """Active warps of the most a multiprocessor holds, with blocks of `block` threads.

        `smem` is the dynamic shared memory in bytes; by default what the kernel allocates.

        Raises:
            CompileError: `block` is not one to three integers, or no such kernel was compiled.
        """
        artifact = self._kernel(kernel)
        extents = block if isinstance(block, tuple | list) else (block,)
        if not 1 <= len(extents) <= 3 or not all(hasattr(extent, "__index__") for extent in extents):
            raise CompileError(
                "block is one to three integers", values={"block": repr(block)}, hint="occupancy(256), or (16, 16, 1)"
            )
        threads = math.prod(map(operator.index, extents))
        info = artifact.info
        dynamic = self._image(kernel).smem_bytes if smem is None else smem
        return occupancy(self.arch, info.registers, info.shared_bytes + dynamic, threads)

    def report(self) -> Report:
        """Registers, spills, memory and occupancy of every kernel; prints as a table."""
        return Report.of(self)

    @property
    def source_map(self) -> SourceMap:
        """From Python lines to PTX and SASS lines, and back."""
        return SourceMap.of(self)

    def _kernel(self, name: str | None) -> KernelArtifact:
        if name is None and len(self.kernels) == 1:
            return next(iter(self.kernels.values()))
        if name not in self.kernels:
            raise CompileError(
                f"{self.name} has no kernel {name!r}" if name else f"{self.name} has {len(self.kernels)} kernels",
                hint=f"give kernel=, one of: {', '.join(self.kernels) or 'none'}",
            )
        return self.kernels[name]

    def _image(self, name: str | None) -> KernelImage:
        wanted = self._kernel(name).name
        return next(image for image in self.artifact.kernels if image.name == wanted)

    def smem_bytes(self, kernel: str | None = None) -> int:
        """Bytes of shared memory that a kernel allocates with `SmemAllocator`."""
        return self._image(kernel).smem_bytes

    def write(self, folder: str | Path, names: Sequence[str]) -> list[Path]:
        """Write stages as `<function>.<arch>.<extension>`; with several kernels each has its own file.

        A file that holds something else is kept: the new one gets a number.
        """
        target = Path(folder)
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if raised_by_signal(error):
                raise
            raise CompileError(
                f"cannot write into the folder {str(folder)!r}",
                values={"reason": error.strerror},
                hint="name a folder, or a path where one can be made, by DumpDir or TILEWRIGHT_DUMP_DIR",
            ) from error
        written = []
        for name in names:
            content = self.stages[name]
            parts = content if isinstance(content, dict) else {self.name: content}
            for stem, data in parts.items():
                written.append(_write_new(target, f"{stem}.{self.arch}", _EXTENSIONS[name], data))
        return written

    def export_to_c(
        self,
        object_file_path: str | Path | None = None,
        function_name: str | None = None,
        *,
        file_path: str | Path | None = None,
        file_name: str | None = None,
        function_prefix: str | None = None,
    ) -> list[Path]:
        """Write the function and its kernels as an object file; gives the files written.

        With `object_file_path` and `function_name` the object has the tvm-ffi symbol `__tvm_ffi_<function_name>`;
        with `file_path` (a folder), `file_name` and `function_prefix` (default: the file's name) it has a C interface,
        declared in `<file_name>.h` beside it.

        Raises:
            CompileError: the forms are mixed, a name is no C identifier, or a parameter has no C type.
        """
        if object_file_path is not None and file_path is None and file_name is None and function_prefix is None:
            return export_tvm_ffi(self.artifact, object_file_path, function_name or self.name)
        if file_path is not None and file_name is not None and object_file_path is None and function_name is None:
            return export_c(self.artifact, file_path, file_name, function_prefix or file_name)
        raise CompileError(
            "export_to_c takes one of two forms",
            hint='export_to_c("add.o", function_name="add") for tvm-ffi, or export_to_c(file_path="build", '
            'file_name="add", function_prefix="add") for C',
        )

    def _keep_files(self) -> None:
        options = self.artifact.options
        names = ["cute", "nvvm", "llvm"] if options.keep_ir else []
        if self.artifact.kernels:  # host code alone has no such stages, and nothing to keep
            names += [name for name in ("ptx", "cubin", "sass") if getattr(options, f"keep_{name}")]
        if names:
            self.write(options.dump_dir or ".", names)

    @property
    def __mlir__(self) -> str:
        return str(self.stages["cute"])

    _module = __mlir__

    @property
    def __ptx__(self) -> Any:
        return self.stages["ptx"]

    @property
    def __cubin__(self) -> Any:
        return self.stages["cubin"]

    @property
    def __sass__(self) -> Any:
        return self.stages["sass"]

    @property
    def chip(self) -> Any:
        """Facts of the chip compiled for."""
        return chip(self.arch)

    @property
    def last_report(self) -> Any:
        """On the emulator: what the last call found and counted, one report for each launch."""
        return getattr(self._last_device, "reports", None)


_IS_NEG = operator.methodcaller("is_neg")  # this way it takes a third of the time of a loop


def _picker(places: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """A function that gives the arguments at these places."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda args: tuple(args[place] for place in places)


def _refuse_lazy_parts(value: Any) -> None:
    if is_aggregate(value):
        for member in members("", value, None):
            _refuse_lazy_parts(member.value)
    else:
        refuse_lazy(value)


def _runner(device: Any, params: Sequence[Any]) -> Callable[..., None]:
    """A function that runs on `device`; it holds no executor, which would hold itself."""

    def run(*values: Any) -> None:
        if len(values) != len(params):
            raise ArgumentError(f"{len(params)} arguments are taken, {len(values)} were given")
        try:
            device.run([converted(value, param) for value, param in zip(values, params, strict=True)])
        except BaseException as error:
            if not is_outside(error):
                raise
            raise Carried.of(error) from None

    return run


@functools.cache
def _ffi_executor() -> type[Executor]:
    """An executor that is a `tvm_ffi.Function`: tvm-ffi passes it on, and other languages call it, without Python.

    Called from Python it is an executor like any other.
    """
    function_class = tvm_ffi().Function

    class FfiExecutor(Executor, function_class):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            native = self.target == "cuda"
            # The emulator must know the memory of each call: it is told on the way through Python.
            own = self.device.host.make_function() if native else tvm_ffi().convert(_runner(self.device, self._params))
            self.__move_handle_from__(own)

    FfiExecutor.__name__ = FfiExecutor.__qualname__ = "Executor"
    return FfiExecutor


def _write_new(folder: Path, stem: str, extension: str, data: Any) -> Path:
    raw = data if isinstance(data, bytes) else str(data).encode()
    number = 0
    while True:
        path = folder / (f"{stem}.{extension}" if number == 0 else f"{stem}.{number}.{extension}")
        if not path.exists():
            path.write_bytes(raw)
            return path
        if path.read_bytes() == raw:
            return path
        number += 1
