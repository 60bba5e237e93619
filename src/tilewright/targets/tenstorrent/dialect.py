"""The `tt` dialect as a table, its IRDL, and the rules for functions of stage `tt`.

Types: `!tt.cb`, a circular buffer of a core; `!tt.accessor`, a tensor in memory that transfers address by tiles. An
operand is written `name:kind`; kinds are cb, accessor, tensor, i32 and number. Operations before `split`
(`tt.read_to_cb`, `tt.write_from_cb`, `tt.consume`, `tt.fill`, `tt.fill_scaler`) say what moves; those after say how.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilewright.base.errors import PassError
from tilewright.ir import mlir
from tilewright.ir.context import current
from tilewright.ir.dialect import OpSpec, irdl_text_of
from tilewright.targets.tenstorrent.tir.nodes import (
    Call,
    Expr,
    For,
    IfThenElse,
    IRModule,
    LetStmt,
    PrimFunc,
    Stmt,
    Var,
    statements,
)
from tilewright.targets.tenstorrent.tir.visitors import calls, children


def _op(name: str, operands: str = "", results: str = "", attributes: str = "", summary: str = "") -> OpSpec:
    return OpSpec(
        f"tt.{name}", tuple(operands.split()), tuple(results.split()), tuple(attributes.split()), summary=summary
    )


_BLOCK, _TILE = "cb:cb tensor:tensor row:i32 col:i32", "tensor:accessor tile:i32 address:i32"
_PAIR = "a:cb b:cb index_a:i32 index_b:i32 dst:i32"
SPECS: Final[dict[str, OpSpec]] = {
    spec.name: spec
    for spec in (
        # Arguments and resources.
        _op("runtime_arg", "", "any", "name", "a 32-bit argument of the kernel"),
        _op("make_accessor", "tensor:tensor address:i32", "any", "", "a tensor by its tiles"),
        _op("alloc_cb", "", "any", "format tiles name kind", "a circular buffer"),
        # Blocks, before the protocol is written.
        _op("read_to_cb", _BLOCK, "", "rows cols", "a block of tiles from memory into a circular buffer"),
        _op("write_from_cb", _BLOCK, "", "rows cols", "a block of tiles from a circular buffer into memory"),
        _op("consume", "cb:cb", "", "tiles", "from here on the compute kernel uses a block of a circular buffer"),
        _op("fill", "cb:cb number:number*", "", "", "a tile of one number, known or an argument"),
        _op("fill_scaler", "cb:cb", "", "number", "the tile that a reduction multiplies with"),
        # The protocol.
        _op("cb.reserve_back", "cb:cb pages:i32", "", "", "wait until that many pages are free"),
        _op("cb.push_back", "cb:cb pages:i32", "", "", "hand on pages that were reserved"),
        _op("cb.wait_front", "cb:cb pages:i32", "", "", "wait until that many pages are there"),
        _op("cb.pop_front", "cb:cb pages:i32", "", "", "free pages that were waited for"),
        _op("cb.write_ptr", "cb:cb", "any", "", "the address of the first page reserved"),
        _op("cb.read_ptr", "cb:cb", "any", "", "the address of the first page waited for"),
        _op("noc.read_tile", _TILE, "", "", "begin to read a tile"),
        _op("noc.write_tile", _TILE, "", "", "begin to write a tile"),
        _op("noc.read_barrier", summary="wait for all reads"),
        _op("noc.write_barrier", summary="wait for all writes"),
        _op("l1.fill", "address:i32 number:number*", "", "format", "store one number all over a page"),
        _op("l1.fill_scaler", "address:i32", "", "format number", "store a number into the first row of each face"),
        # The engines.
        _op("engine.startup", "a:cb b:cb out:cb", "", "order", "configure unpacker, engines and packer, once"),
        _op("reconfig", "a:cb b:cb", "", "", "formats of the operands"),
        _op("mm.init", "a:cb b:cb", "", "", "for tt.mm.mma"),
        _op("mm.mma", _PAIR, "", "", "add a product of matrices to a tile of DST"),
        _op("fpu.init", "a:cb b:cb", "", "kind bcast", "for tt.fpu operations"),
        *(_op(f"fpu.{kind}", _PAIR, "", "bcast", "of two tiles into DST") for kind in ("add", "sub", "mul")),
        _op("reduce.init", "a:cb scaler:cb out:cb", "", "kind dim", "for tt.reduce; masks the packer"),
        _op("reduce", "a:cb scaler:cb index:i32 one:i32 dst:i32", "", "kind dim", "fold a tile into DST"),
        _op("reduce.uninit", "a:cb", "", "", "unmask the packer"),
        _op("copy.init", "a:cb", "", "", "for tt.copy"),
        _op("copy", "a:cb index:i32 dst:i32", "", "", "a tile into DST"),
        _op("bcast.init", "a:cb", "", "dim", "for tt.bcast"),
        _op("bcast", "a:cb index:i32 dst:i32", "", "dim", "a column, row or element, repeated, into DST"),
        _op("sfpu.init", "", "", "kind", "for a function of the vector engine"),
        _op("sfpu.unary", "dst:i32", "", "kind", "a function of a tile of DST, in place"),
        _op("sfpu.binary", "a:i32 b:i32 dst:i32", "", "kind", "a function of two tiles of DST"),
        # DST and the packer.
        _op("dst.acquire", summary="take DST for the engines"),
        _op("dst.commit", summary="hand DST to the packer"),
        _op("dst.wait", summary="the packer waits for DST"),
        _op("dst.release", summary="give DST back"),
        _op("pack", "dst:i32 cb:cb", "", "", "a tile of DST into the next page reserved"),
        _op("pack.reconfig", "cb:cb", "", "", "format of the results"),
        _op("pack.relu", "", "", "on", "clamp at 0 what is packed from now on"),
        # What a user's pass calls by its name in C++.
        _op("call_extern", "operands:any*", "", "callee", "a function of C++"),
    )
}  # fmt: skip

_KINDS = {"cb": "!tt.cb", "accessor": "!tt.accessor", "tensor": "!cute.tensor<", "i32": "i32"}
_TYPES = "  irdl.type @cb {\n  }\n  irdl.type @accessor {\n  }\n"


def mlir_name(name: str) -> str:
    """What MLIR calls an operation: its names have one dot, `tt.cb_push_back`."""
    return f"tt.{name.removeprefix('tt.').replace('.', '_')}" if name.startswith("tt.") else name


def irdl_text() -> str:
    """The dialect in IRDL."""
    kinds = {"cb": "any", "accessor": "any", "tensor": "any", "number": "any"}
    specs = [
        OpSpec(
            mlir_name(spec.name),
            tuple(f"{name}:{_irdl_kind(kind, kinds)}" for name, kind in (item.split(":") for item in spec.operands)),
            spec.results,
            spec.attributes,
        )
        for spec in SPECS.values()
    ]
    return irdl_text_of(specs).replace("irdl.dialect @tt {\n", "irdl.dialect @tt {\n" + _TYPES, 1)


def _irdl_kind(kind: str, kinds: Mapping[str, str]) -> str:
    star = "*" if kind.endswith("*") else ""
    return kinds.get(kind.rstrip("*"), kind.rstrip("*")) + star


def load() -> None:
    """Make the dialect known to the compilation under way."""
    current().cached("tt dialect", _load)


def _load() -> bool:
    mlir.irdl.load_dialects(mlir.ir.Module.parse(irdl_text()))
    return True


# The rules for functions.


def verify(mod: IRModule, maker: str) -> None:
    """Refuse functions that break a rule; `maker` is who left them so.

    Raises:
        PassError: an operation is unknown or has wrong operands, or a variable is used where it has no value.
    """
    for func in mod.prim_funcs:
        for found in calls(func.body):
            _check_call(func, found, maker)
        _check_scope(func, maker)


def _check_call(func: PrimFunc, found: Call, maker: str) -> None:
    name = found.op.name
    if not name.startswith("tt."):
        return
    spec = SPECS.get(name)
    if spec is None:
        raise _broken(func, found, maker, "there is no such operation")
    least = sum(not item.endswith("*") for item in spec.operands)
    lowered_read = name in ("tt.read_to_cb", "tt.write_from_cb") and len(found.args) <= least + 1
    if len(found.args) < least or (len(found.args) > least and least == len(spec.operands) and not lowered_read):
        raise _broken(
            func, found, maker, f"it takes {least} operands ({' '.join(spec.operands)}), not {len(found.args)}"
        )
    for text, item in zip(spec.operands, found.args, strict=False):
        operand, kind = text.rstrip("*").split(":")
        wanted = _KINDS.get(kind, "")
        got = getattr(item, "dtype", "")
        fits = got.startswith(wanted) or (wanted == "!tt.accessor" and got.startswith("!cute.tensor"))
        if wanted and not fits:
            raise _broken(func, found, maker, f"operand {operand} is a {kind}, not {item}: {got or 'nothing'}")
    missing = [key for key in spec.attributes if key not in found.attrs]
    if missing:
        raise _broken(func, found, maker, f"attribute {missing[0]} is missing")


def _broken(func: PrimFunc, found: Call, maker: str, what: str) -> PassError:
    return PassError(
        f"{maker} left {found.op.name} against the rules of the dialect: {what}",
        location=found.location,
        values={"function": func.name, "operation": str(found)},
        hint="targets/tenstorrent/dialect.py lists the operations",
    )


def _check_scope(func: PrimFunc, maker: str) -> None:
    """Variables have their values before they are used, in the block or around it."""
    _scope(func, func.body, set(func.params), maker)


def _scope(func: PrimFunc, stmt: Stmt | None, known: set[Var], maker: str) -> None:
    for item in statements(stmt):
        if isinstance(item, For):
            _uses(func, item, [item.extent, *(start for _, start in item.carried)], known, maker)
            _scope(func, item.body, known | {item.loop_var, *(var for var, _ in item.carried)}, maker)
            known |= set(item.results)
        elif isinstance(item, IfThenElse):
            _uses(func, item, [item.condition], known, maker)
            _scope(func, item.then_case, set(known), maker)
            _scope(func, item.else_case, set(known), maker)
        else:
            _uses(func, item, children(item), known, maker)
            if isinstance(item, LetStmt):
                known.add(item.var)


def _uses(func: PrimFunc, stmt: Stmt, parts: list[Expr], known: set[Var], maker: str) -> None:
    for part in parts:
        for item in _vars(part):
            if item not in known:
                raise PassError(
                    f"{maker} left a use of {item} where it has no value",
                    location=getattr(stmt, "location", None),
                    values={"function": func.name, "statement": str(stmt).splitlines()[0]},
                    hint="keep the statement that defines it, before the use",
                )


def _vars(item: Expr) -> list[Var]:
    if isinstance(item, Var):
        return [item]
    return [found for part in children(item) for found in _vars(part)]
