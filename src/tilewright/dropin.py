"""`import cutlass` resolves to Tilewright, and so does what it has of `cutlass_cppgen`, the epilogue trees.

`python -m tilewright.dropin SCRIPT ARGS` and `python -m tilewright.dropin -m MODULE ARGS` run sources that cannot be
changed; `import tilewright.dropin` first does the same inside a program. Programs that start other Python processes
find `cutlass` there when the folder `tilewright/dropin_path` is on `PYTHONPATH`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

from tilewright.base import not_built
from tilewright.base.errors import CompileError
from tilewright.compat import dialects
from tilewright.ir import mlir as gate

# Modules whose place here differs from their place in CuTe DSL. A name ending in "." stands for all below it.
_ELSEWHERE = {
    "cutlass.backend.evt": "tilewright.lib.epilogue",
    "cutlass.backend.evt.": "tilewright.lib.epilogue.",
    "cutlass_cppgen": "tilewright.compat.cppgen",
    "cutlass_cppgen.epilogue": "tilewright.epilogue",
    "cutlass_cppgen.backend.evt": "tilewright.lib.epilogue",
    "cutlass_cppgen.backend.evt.": "tilewright.lib.epilogue.",
    "cutlass.base_dsl": "tilewright.compat.base_dsl",
    "cutlass.base_dsl.arch": "tilewright.compat.arch",
    "cutlass.base_dsl.enums": "tilewright.compat.arch",
    "cutlass.base_dsl._mlir_helpers": "tilewright.compat.mlir_helpers",
    "cutlass.base_dsl._mlir_helpers.": "tilewright.compat.mlir_helpers.",
    "cutlass.base_dsl.ast_preprocessor": "tilewright.compat.ast_preprocessor",
    "cutlass.base_dsl.common": "tilewright.compat.errors",
    "cutlass.base_dsl.compiler": "tilewright.compat.compiler",
    "cutlass.base_dsl.dsl": "tilewright.compat.dsl_module",
    "cutlass.base_dsl.env_manager": "tilewright.compat.env",
    "cutlass.base_dsl.jit_executor": "tilewright.compat.jit_executor",
    "cutlass.base_dsl.runtime": "tilewright.compat.runtime",
    "cutlass.base_dsl.runtime.cuda": "tilewright.compat.runtime_cuda",
    "cutlass.base_dsl.tvm_ffi_builder": "tilewright.compat.tvm_ffi_builder",
    "cutlass.base_dsl.tvm_ffi_builder.": "tilewright.compat.tvm_ffi_builder.",
    "cutlass.base_dsl.typing": "tilewright.compat.typing",
    "cutlass.base_dsl.utils": "tilewright.compat.utils",
    "cutlass.base_dsl.utils.logger": "tilewright.compat.logger",
    "cutlass.cutlass_dsl.cuda_jit_executor": "tilewright.compat.cuda_jit_executor",
    "cutlass.cutlass_dsl.tvm_ffi_provider": "tilewright.compat.tvm_ffi_provider",
    "cutlass.cutlass_dsl.cutlass": "tilewright.cutlass_dsl",
    "cutlass.cute.core": "tilewright.cute",
    "cutlass.cute.cuda": "tilewright.cuda",
    "cutlass.cute.tensor": "tilewright.cute",
    "cutlass.cute.algorithm": "tilewright.cute",
    "cutlass.cute.atom": "tilewright.cute",
    "cutlass.cute.arch.nvvm_wrappers": "tilewright.cute.arch",
    "cutlass.cute.arch.mbar": "tilewright.cute.arch",
    "cutlass.cute.arch.elect": "tilewright.cute.arch",
    "cutlass.cute.arch.smem": "tilewright.cute.arch",
    "cutlass.utils.hopper_helpers": "tilewright.utils.sm90",
    "cutlass.runtime": "tilewright.cute.runtime",
    "cutlass.testing": "tilewright.cute.testing",
    "cutlass._mlir": "tilewright.compat.mlir",
    "cutlass._mlir.dialects": "tilewright.compat.dialects",
    "cutlass._mlir._mlir_libs._cutlass_ir._mlir.": "mlir.",
    "cutlass._mlir.": "mlir.",
    "cutlass._mlir_helpers": "tilewright.compat.mlir_helpers",
    "cutlass._mlir_helpers.math": "tilewright.cute.math",
    "cutlass._mlir_helpers.": "tilewright.compat.mlir_helpers.",
}
_DIALECT = "cutlass._mlir.dialects."
# Parents of modules above that are no modules here.
_ROOTS = ("cutlass", "cutlass_cppgen")
_EMPTY = frozenset(
    (
        "cutlass.backend",
        "cutlass_cppgen.backend",
        "cutlass._mlir._mlir_libs",
        "cutlass._mlir._mlir_libs._cutlass_ir",
        "cutlass._mlir._mlir_libs._cutlass_ir._mlir",
    )
)


class _Loader(importlib.abc.Loader):
    """Gives the module that stands for a `cutlass` module."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        if spec.name in _EMPTY:
            self._own_spec = spec
            return ModuleType(spec.name)
        name = _ours(spec.name)
        if (standing := not_built.stub_module(name)) is not None:
            self._own_spec = spec
            return standing
        if name.partition(".")[0] == "mlir":
            gate.libllvm()
        leaf = spec.name.removeprefix(_DIALECT)
        own = spec.name.startswith(_DIALECT) and "." not in leaf
        made = dialects.dialect(leaf) if own else importlib.import_module(name)
        self._own_spec = made.__spec__ or spec
        return made

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already, under its own name, and keeps its own spec."""
        module.__spec__ = self._own_spec

    def get_code(self, fullname: str) -> CodeType | None:
        """Its code, which `python -m` runs."""
        spec = importlib.util.find_spec(_ours(fullname))
        loader = spec.loader if spec is not None else None
        return loader.get_code(_ours(fullname)) if isinstance(loader, importlib.abc.InspectLoader) else None


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `cutlass` and what is below it, where Tilewright has it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in _ROOTS:
            return None
        if (error := not_built.module_not_built(_ours(fullname))) is not None:
            raise error
        if not_built.stub_module(_ours(fullname)) is not None:
            return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=True)
        found = None if fullname in _EMPTY else _spec(_ours(fullname))
        if found is None and fullname not in _EMPTY:
            return None
        folder = found is None or found.submodule_search_locations is not None
        package = folder or any(name.startswith(f"{fullname}.") for name in _ELSEWHERE)
        return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=package)


def _spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """Where a module of ours is; None where there is none, so that the error names what was imported."""
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:  # the package around it
        if not str(error.name).startswith("tilewright"):
            raise
    except ValueError:  # what stands for a dialect that has no Python module
        pass
    return None


def _ours(name: str) -> str:
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    for known, place in _ELSEWHERE.items():
        if known.endswith(".") and name.startswith(known):
            return place + name[len(known) :]
    return "tilewright" + name.removeprefix("cutlass")


def install() -> None:
    """Make `import cutlass` resolve to Tilewright from now on.

    Raises:
        CompileError: the closed package is imported already.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    loaded = sys.modules.get("cutlass")
    if loaded is not None and not loaded.__name__.startswith("tilewright"):
        raise CompileError(
            "cutlass is imported already, from elsewhere",
            values={"file": getattr(loaded, "__file__", "?")},
            hint="import tilewright.dropin before it",
        )
    sys.meta_path.insert(0, _Finder())


def main(arguments: Sequence[str]) -> None:
    """Run a script or module with `cutlass` resolved to Tilewright."""
    if not arguments or (arguments[0] == "-m" and len(arguments) < 2):
        sys.exit("usage: python -m tilewright.dropin (SCRIPT | -m MODULE) [ARGS]")
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = list(arguments)
    sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
    runpy.run_path(arguments[0], run_name="__main__")


install()

if __name__ == "__main__":
    main(sys.argv[1:])
