"""Matrix instructions (PTX ISA 9.7.14, 9.7.15): ldmatrix, stmatrix, movmatrix, mma.sync, wgmma."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.flow import taint_register
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.numerics import ldmatrix as lane_maps
from tilewright.targets.emu.numerics import matrix, wgmma
from tilewright.targets.emu.numerics.fragments import ELEMENT_BITS, fragment_a, fragment_b, fragment_c, parse_shape
from tilewright.targets.emu.numerics.sparse import mma_sp
from tilewright.targets.emu.ptx import Imm, Instruction, Operand, Reg, Sink, Vec
from tilewright.targets.emu.rules import taint
from tilewright.targets.emu.rules.memory import address, state_space
from tilewright.targets.emu.runtime import full, provide

U8 = np.dtype(np.uint8)
MATRICES = {"x1": 1, "x2": 2, "x4": 4}


def items_of(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vec) else (operand,)


def shared_place(c: BlockCoder, mem: Operand, i: Instruction) -> str:
    return c.let(f"shared_address({address(c, mem, state_space(i))})")


def whole_warps(L: Lanes, site: int, size: int = 32, what: str = "warp") -> int:
    """The number of whole warps (or warpgroups); an error unless the cohort has whole ones only."""
    rows = L.ids.reshape(-1, size) if L.n % size == 0 else None
    if rows is None or not ((rows[:, -1] - rows[:, 0] == size - 1) & (rows[:, 0] % size == 0)).all():
        raise Fault("diverged", f"A matrix instruction needs all threads of its {what}", site,
                    hint="some threads have ended, or took another path")  # fmt: skip
    return len(rows)


@rule("ldmatrix")
def ldmatrix(c: BlockCoder, i: Instruction) -> None:
    count = next(MATRICES[m] for m in i.mods if m in MATRICES)
    require_b16(c, i)
    results = [(item, "b32") for item in items_of(i.ops[0])]
    text = f"load_matrices(S, SITE, L, {{0}}, {count}, {'trans' in i.mods})"
    text = f"{text}[0]" if count == 1 else text
    (c.load if c.owner.checks else c.effect)(text, [shared_place(c, i.ops[1], i)], results)


@rule("stmatrix")
def stmatrix(c: BlockCoder, i: Instruction) -> None:
    require_b16(c, i)
    values = [c.use(item, "b32") for item in items_of(i.ops[1])]
    names = ", ".join(f"{{{k + 1}}}" for k in range(len(values)))
    at, trans = shared_place(c, i.ops[0], i), "trans" in i.mods
    c.effect(f"store_matrices(S, SITE, L, {{0}}, ({names},), {trans})", [at, *values])
    taints = [c.taint_of(item) for item in items_of(i.ops[1])]
    if any(mark != "FALSE" for mark in taints):
        names = ", ".join(f"{{{k + 1}}}" for k in range(len(taints)))
        c.effect(f"taint_matrices(S, SITE, L, {{0}}, row_taint(L, ({names},), {trans}))", [at, *taints])


def require_b16(c: BlockCoder, i: Instruction) -> None:
    if "m8n8" not in i.mods or "b16" not in i.mods:
        raise c.fail(f"{i.opcode}: only m8n8.b16 matrices are emulated")


@provide
def load_matrices(S: Any, site: int, L: Lanes, addr: Any, count: int, transposed: bool) -> list[Array]:
    warps = whole_warps(L, site)
    named = np.flatnonzero(L.lane < 8 * count)
    rows = S.shared_rows(site, L.subset(named), full(addr, L.n)[named])
    if S.unwritten.__class__ is np.ndarray:
        S.unwritten = rows_to_lanes(S.unwritten, warps, count, transposed)
    return [r.reshape(-1) for r in lane_maps.from_rows(rows.reshape(warps, 8 * count, 16), count, transposed)]


def rows_to_lanes(marks: Array, warps: int, count: int, transposed: bool) -> Array:
    """Marks of parts of the rows of 16 bytes as marks (lanes, matrices) of the pairs of halves that lanes get."""
    pieces = marks.shape[1]
    halves = np.repeat(marks, 2, axis=1) if pieces == 4 else np.logical_or.reduce(marks.reshape(-1, 8, pieces // 8), 2)
    rows: Array = halves.reshape(warps, count, 8, 8)
    if transposed:
        rows = rows.swapaxes(2, 3)
    pairs = np.logical_or.reduce(rows.reshape(warps, count, 32, 2), 3)
    return np.asarray(pairs.swapaxes(1, 2).reshape(-1, count))


@provide
def store_matrices(S: Any, site: int, L: Lanes, addr: Any, values: tuple[Any, ...], transposed: bool) -> None:
    whole_warps(L, site)
    count = len(values)
    named = np.flatnonzero(L.lane < 8 * count)
    rows = lane_maps.to_rows([full(v, L.n).reshape(-1, 32) for v in values], transposed)
    S.store_shared_rows(site, L.subset(named), full(addr, L.n)[named], rows.reshape(-1, 16))


@provide
def taint_matrices(S: Any, site: int, L: Lanes, addr: Any, marks: Array) -> None:
    """Bytes of rows just stored (a row of 16 an address) that depend on memory never written."""
    named = np.flatnonzero(L.lane < len(marks) * 32 // L.n)
    for place in range(0, 16, 2):
        S.on.unwritten_stored(site, L.subset(named), "shared", full(addr, L.n)[named], place, 1, marks[:, place])


@rule("movmatrix")
def movmatrix(c: BlockCoder, i: Instruction) -> None:
    mark = c.taint_of(i.ops[1])
    if mark != "FALSE":
        c.taint = f"transposed_taint(L, {mark})"
    c.effect("transposed_matrix(L, SITE, {0})", [c.use(i.ops[1], "b32")], [(i.ops[0], "b32")])


@provide
def transposed_matrix(L: Lanes, site: int, value: Any) -> Array:
    whole_warps(L, site)
    return lane_maps.transpose(full(value, L.n).reshape(-1, 32)).reshape(-1)


# mma.sync.


@rule("mma")
def mma(c: BlockCoder, i: Instruction) -> None:
    """`mma.sync.aligned.shape.row.col{.satfinite}.dtype.atype.btype.ctype{.op} d, a, b, c`."""
    if "block_scale" in i.mods:
        raise c.fail(f"{i.opcode}: block-scaled products are not emulated")
    sparse = any(m.startswith("sp") for m in i.mods)
    shape = next(m for m in i.mods if m[0] == "m" and "n" in m and "k" in m)
    d_type, a_type, b_type, c_type = [m for m in i.mods if m in ELEMENT_BITS]
    if sparse and d_type != c_type:
        raise c.fail("a sparse product has C and D of one type")
    layouts = [m for m in i.mods if m in ("row", "col")]
    words = [f"a_layout={layouts[0]!r}, b_layout={layouts[1]!r}, d_type={d_type!r}"]
    words += ["satfinite=True"] if "satfinite" in i.mods else []
    words += [f"op={m!r}" for m in i.mods if m in ("xor", "and")]
    words += [f"rnd={m!r}" for m in i.mods if m in ("rn", "rz", "rm", "rp")]
    groups = []
    for operand, kind in zip(i.ops[1:4], (a_type, b_type, c_type), strict=True):
        groups.append(f"({', '.join(c.use(item, register_type(kind)) for item in items_of(operand))},)")
    if sparse:
        groups += [c.use(i.ops[4], "b32"), str(immediate(c, i.ops[5]))]
        words = [w for w in words if w.startswith("satfinite")]
    given = ", ".join([repr(shape), repr(a_type), repr(b_type), repr(c_type), *groups, *words])
    text = f"{'sparse' if sparse else 'warp'}_product(L, SITE, {given})"
    results = [(item, register_type(d_type)) for item in items_of(i.ops[0])]
    m, n, k = parse_shape(shape)
    kinds = ((m, n, k // 2 if sparse else k), a_type), ((m, n, k), b_type)
    places = [fragment_a(*kinds[0], *layouts[:1]), fragment_b(*kinds[1], *layouts[1:2])]
    places += [fragment_c((m, n, k), a_type, kind) for kind in (c_type, d_type)]
    taint.product(c, text, results, [items_of(op) for op in i.ops[1:4]], places)


def register_type(kind: str) -> str:
    return "b64" if kind == "f64" else "b32"


@provide
def warp_product(
    L: Lanes, site: int, shape: str, a_type: str, b_type: str, c_type: str, a: Any, b: Any, c: Any, **words: Any
) -> list[Array]:
    whole_warps(L, site)
    tables = [[full(x, L.n).reshape(-1, 32) for x in group] for group in (a, b, c)]
    return [r.reshape(-1) for r in matrix.mma(parse_shape(shape), a_type, b_type, c_type, *tables, **words)]


@provide
def sparse_product(
    L: Lanes, site: int, shape: str, a_type: str, b_type: str, c_type: str, a: Any, b: Any, c: Any, metadata: Any,
    selector: int, **words: Any,
) -> list[Array]:  # fmt: skip
    whole_warps(L, site)
    first, second, third = ([full(x, L.n).reshape(-1, 32) for x in group] for group in (a, b, c))
    meta = full(metadata, L.n).reshape(-1, 32)
    product = mma_sp(parse_shape(shape), a_type, b_type, c_type, first, second, third, meta, selector, **words)
    return [r.reshape(-1) for r in product]


# wgmma.


@rule("wgmma.fence", "wgmma.commit_group")
def wgmma_order(c: BlockCoder, i: Instruction) -> None:
    c.effect(f"S.on.wgmma_{'fenced' if 'fence' in i.mods else 'committed'}(SITE, L)", [])


@rule("wgmma.wait_group")
def wgmma_wait(c: BlockCoder, i: Instruction) -> None:
    count = i.ops[0]
    if not isinstance(count, Imm):
        raise c.fail("wgmma.wait_group needs an immediate")
    c.effect(f"S.on.wgmma_awaited(SITE, L, {count.value})", [])
    if c.owner.checks:  # the threads of a warp run it together
        c.emit("S.on.warp_met(L, FULL)")


@rule("wgmma.mma_async")
def wgmma_mma(c: BlockCoder, i: Instruction) -> None:
    """`d, a|a-desc, b-desc{, metadata, selector}, scale-d{, imm-scale-a, imm-scale-b{, trans-a}{, trans-b}}`."""
    shape = next(m for m in i.mods if m.startswith("m64n"))
    d_type, a_type, b_type = [m for m in i.mods if m in ELEMENT_BITS]
    d, a, b, *rest = i.ops
    sparse = f"({c.use(rest.pop(0), 'b32')}, {immediate(c, rest.pop(0))})" if "sp" in i.mods else "None"
    scale = c.use(rest.pop(0), "pred")
    wgmma.check(shape, a_type, b_type, d_type, sparse != "None")
    if isinstance(a, Vec):
        first = f"({', '.join(c.use(item, 'b32') for item in a.items)},)"
    else:
        first = c.use(a, "b64")
    results = [(item, "b32") for item in items_of(d)]
    old = f"({', '.join(c.use(item, 'b32') for item in items_of(d))},)"
    words = f"{signs_and_transposes(rest, isinstance(a, Vec))}, satfinite={'satfinite' in i.mods}, sparse={sparse}"
    items = a.items if isinstance(a, Vec) else ()
    given = [f"({''.join(f'{c.taint_of(x)}, ' for x in group)})" for group in (items, items_of(d))]
    watched = f"({', '.join(given)})" if c.owner.checks else "None"
    text = (
        f"group_product(S, SITE, L, {shape!r}, {d_type!r}, {a_type!r}, {b_type!r}, {first}, {c.use(b, 'b64')}, {old}, "
        f"{scale}, {watched}, {words})"
    )
    if c.owner.checks:
        written, read = (
            "".join(f"{c.owner.number(item)}, " for item in group if isinstance(item, Reg))
            for group in (items_of(d), items)
        )
        c.effect(f"S.on.wgmma_issued(SITE, L, ({written}), ({read}))", [])
        results += [(taint_register(item.name) if isinstance(item, Reg) else Sink(), "pred") for item in items_of(d)]
    c.effect(text, [], results)


def immediate(c: BlockCoder, operand: Operand) -> int:
    """The value of an immediate."""
    if not isinstance(operand, Imm):
        raise c.fail("the sparsity selector is an immediate")
    return int(operand.value)


def signs_and_transposes(operands: list[Operand], from_registers: bool) -> str:
    """The keyword arguments of the last operands: two signs, then a transposition for each matrix in shared memory."""
    flags = [int(op.value) for op in operands if isinstance(op, Imm)]
    signs, transposes = flags[:2] if len(flags) >= 2 else [1, 1], flags[2:]
    trans_a = bool(transposes[0]) if transposes and not from_registers else False
    trans_b = bool(transposes[-1]) if transposes else False
    return f"trans=({trans_a}, {trans_b}), negate=({signs[0] < 0}, {signs[1] < 0})"


@provide
def group_product(
    S: Any, site: int, L: Lanes, shape: str, d_type: str, a_type: str, b_type: str, a: Any, b: Any, d: Any, scale: Any,
    watched: tuple[tuple[Any, ...], tuple[Any, ...]] | None, trans: tuple[bool, bool], negate: tuple[bool, bool],
    satfinite: bool, sparse: tuple[Any, int] | None,
) -> list[Any]:  # fmt: skip
    """D of each warpgroup of 128 threads; behind it its marks, where those of A's and D's registers are given."""
    groups = whole_warps(L, site, 128, "warpgroup")
    _, n, k = parse_shape(shape)
    right, columns = operand(S, site, L, groups, b, n, k, b_type, trans[1])
    if isinstance(a, tuple):
        left = wgmma.a_from_registers([full(x, L.n).reshape(-1, 128) for x in a], a_type)
        rows = taint.group_rows(L, watched[0], a_type) if watched else None
    else:
        left, rows = operand(S, site, L, groups, a, 64, k // 2 if sparse else k, a_type, trans[0])
    taken = None
    if sparse:
        left, taken = wgmma.widened(left, full(sparse[0], L.n).reshape(-1, 4, 32), a_type, k, sparse[1])
    keep = full(scale, L.n)[::128]
    old = wgmma.d_from_registers([full(x, L.n).reshape(-1, 128) for x in d], n, d_type)
    total = wgmma.product(
        left, right, old, a_type, b_type, d_type, scale_d=keep, satfinite=satfinite, taken=taken,
        negate_a=negate[0], negate_b=negate[1],
    )  # fmt: skip
    out = [r.reshape(-1) for r in wgmma.d_to_registers(total, d_type)]
    if watched is None:
        return out
    return out + taint.group_taint(rows, columns, [mark & full(scale, L.n) for mark in watched[1]], n, d_type)


def operand(
    S: Any, site: int, L: Lanes, groups: int, descriptor: Any, rows: int, k: int, kind: str, transposed: bool
) -> tuple[Array, Array | None]:
    """A matrix in shared memory as float64 (groups, rows, k); which rows have something never written, None if none."""
    words = full(descriptor, L.n).reshape(groups, 128)
    if (words != words[:, :1]).any():
        raise Fault("operand", "The threads of a warpgroup give different matrix descriptors", site)
    bits = max(ELEMENT_BITS[kind], 8)
    columns = k // 8 if kind == "b1" else k
    size = bits // 8
    places = [wgmma.operand_addresses(int(word), rows, columns, bits, transposed) for word in words[:, 0]]
    addresses = np.stack(places)
    octets = S.matrix_bytes(site, L, addresses, size)
    missing = None
    if S.unwritten.__class__ is np.ndarray:
        missing = np.asarray(np.logical_or.reduce(S.unwritten.reshape(addresses.shape), 2))
    return wgmma.from_bytes(octets[..., 0] if kind == "b1" else octets, kind), missing
