"""Runs rewritten functions natively: traced into a function of scalars, compiled by MLIR, called through ctypes."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from typing import Any

from tilewright.ir import build, mlir, types
from tilewright.ir.context import compile_context, located
from tilewright.lang import locations
from tilewright.lang.numbers import numeric
from tilewright.lang.numbers.numeric import Numeric, as_numeric
from tilewright.lang.rewrite import rewrite
from tilewright.passes.lowering import LoweringContext, lower
from tilewright.passes.rules import narrow

_C = {"i1": ctypes.c_bool, "i8": ctypes.c_int8, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
      "f32": ctypes.c_float, "f64": ctypes.c_double}  # fmt: skip
_PIPELINE = (
    "builtin.module(canonicalize,cse,convert-scf-to-cf,convert-math-to-llvm,arith-expand,convert-arith-to-llvm,"
    "convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)"
)


def _trace_root(fn: Callable[..., Any], arguments: list[Any]) -> Any:
    return fn(*arguments)


class Compiled:
    """A function of numbers, compiled. `text` is its IR before lowering."""

    def __init__(self, fn: Callable[..., Any], dtypes: list[type[Numeric]], lower: bool = True) -> None:
        self.fn = fn
        self.dtypes = dtypes
        self.results: list[Any] = []
        with compile_context() as session, located(locations.current), mlir.ir.Location.unknown():
            self._build()
            if lower:
                self._lower()
            del session

    def _build(self) -> None:
        ir = mlir.ir
        rewritten = rewrite(self.fn)
        with ir.Location.unknown():
            module = ir.Module.create()
            inputs = [dtype.mlir_type for dtype in self.dtypes]
            buffer = types.parse("!llvm.ptr")
            kind = ir.FunctionType.get([*inputs, buffer], [])
            with ir.InsertionPoint(module.body):
                function = mlir.func.FuncOp("main", kind)
                function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
                block = function.add_entry_block()
        *values, out = block.arguments
        with ir.InsertionPoint(block):
            result = _trace_root(rewritten, [d.from_ir(v) for d, v in zip(self.dtypes, values, strict=True)])
            items = result if isinstance(result, tuple) else (result,)
            self.single = not isinstance(result, tuple)
            for index, item in enumerate(items):
                if item is None or isinstance(item, str):
                    self.results.append(item)
                    continue
                number = as_numeric(item)
                self.results.append(type(number))
                address = build.value(
                    "llvm.getelementptr",
                    buffer,
                    (out,),
                    {
                        "rawConstantIndices": ir.DenseI32ArrayAttr.get([8 * index]),
                        "elem_type": ir.TypeAttr.get(types.parse("i8")),
                    },
                )
                build.emit("llvm.store", (), (number.ir_value(), address))
            build.emit("func.return")
        self.module = module
        module.operation.verify()
        self.text = str(module)

    def _lower(self) -> None:
        function = self.module.body.operations[0].operation
        lower(function, narrow.rules, LoweringContext({}))
        mlir.passmanager.PassManager.parse(_PIPELINE).run(self.module.operation)
        from mlir.execution_engine import ExecutionEngine

        self.engine = ExecutionEngine(self.module, opt_level=0)
        self.address = self.engine.raw_lookup("main")

    def __call__(self, *arguments: Any) -> Any:
        out = ctypes.create_string_buffer(8 * max(len(self.results), 1))
        held = []
        for dtype, value in zip(self.dtypes, arguments, strict=True):
            held.append(_C[str(numeric_name(dtype))](value))
        pointers = [ctypes.addressof(item) for item in held]
        base = ctypes.c_void_p(ctypes.addressof(out))
        pointers.append(ctypes.addressof(base))
        packed = (ctypes.c_void_p * len(pointers))(*pointers)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address)(packed)
        values = []
        for index, kind in enumerate(self.results):
            if not isinstance(kind, type):
                values.append(kind)
                continue
            cell = _C[numeric_name(kind)].from_buffer(out, 8 * index)
            value = cell.value
            values.append(value + (1 << kind.width) if kind.facts.kind == "u" and value < 0 else value)
        return values[0] if self.single else tuple(values)


def numeric_name(dtype: type[Numeric]) -> str:
    return {"bool": "i1"}.get(dtype.facts.name, dtype.facts.name.replace("u", "i"))


def compiled(fn: Callable[..., Any], *dtypes: type[Numeric]) -> Compiled:
    """`fn` compiled for arguments of these types (Int32 where not given)."""
    count = len(inspect.signature(fn).parameters)
    return Compiled(fn, list(dtypes) or [numeric.Int32] * count)


def trace(fn: Callable[..., Any], *dtypes: type[Numeric]) -> str:
    """The IR of `fn`."""
    count = len(inspect.signature(fn).parameters)
    return Compiled(fn, list(dtypes) or [numeric.Int32] * count, lower=False).text


def agrees(
    fn: Callable[..., Any],
    inputs: list[tuple[Any, ...]],
    *dtypes: type[Numeric],
    python: Callable[..., Any] | None = None,
) -> None:
    """Compiled `fn` gives what Python gives, by `fn` itself or by `python`."""
    native = compiled(fn, *dtypes)
    for arguments in inputs:
        assert native(*arguments) == (python or fn)(*arguments), arguments
