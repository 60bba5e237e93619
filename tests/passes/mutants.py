"""Small random changes of a module of stage `cute`: one operand, attribute, type or place of one operation."""

from __future__ import annotations

import re

from tilewright import Pass
from tilewright.ir import mlir
from tilewright.ir.walk import operations

_WORDS = {
    "algebra": ("slice", "local_tile", "local_partition", "domain_offset", "zipped_divide", "composition", "flatten",
                "nothing"),
    "moves": ("pointer", "swizzle", "both"),
    "atom": ("universal", "universal{bits=32}", "universal{bits=64}", "universal{bits=128}", "universal{bits=24}",
             "cp.async{bits=128,cache=global}", "cp.async{bits=32,cache=always}", "ldmatrix{num=4,transpose=0}",
             "mma.sync{shape=16x8x8,a=f16,b=f16,c=f32}", "tma"),
    "kind": ("addf", "addi", "maxf", "maxi", "minu", "up", "bfly", "idx", "ballot", "any", "cas", "sync"),
    "name": ("thread_idx.x", "thread_idx.y", "block_idx.x", "block_dim.x", "grid_dim.y", "lane_idx", "thread_idx.w"),
    "source": ("f32", "f16", "i32", "f8e4m3fn"),
    "target": ("f32", "f16", "i32", "f8e4m3fn"),
    "order": ("relaxed", "acq_rel", "weak"),
    "scope": ("gpu", "cta", "world"),
}  # fmt: skip
_ELEMENTS = ("f32", "f16", "i32", "i64", "f64", "i1", "i8")
_SPACES = ("gmem", "smem", "rmem", "generic", "tmem")
_KEEP = (
    "sym_name",
    "function_type",
    "kernel",
    "arg_attrs",
    "text",
    "constraints",
    "message",
    "fastmath",
    "overflowFlags",
)


class Mutate(Pass):
    """Makes one change, which `done` tells; "" where the dice found none."""

    name = "mutate"

    def __init__(self, random):
        super().__init__()
        self.random, self.done = random, ""

    def run(self, module):
        for _ in range(20):
            found = [op for op in operations(module) if op.name not in ("builtin.module", "gpu.module")]
            weights = [3 if op.name.startswith("cute.") else 1 for op in found]
            op = self.random.choices(found, weights)[0]
            change = self.random.choice(_CHANGES)
            text = f"{change.__name__.strip('_')} of {op.name}"
            if change(op, self.random):
                self.done = text
                return


class Snapshot(Pass):
    """Keeps the module's text."""

    name = "snapshot"

    def run(self, module):
        self.text = str(module)


def _remade(op, operands, attributes=None) -> bool:
    """Put the operation again with other operands."""
    if any(len(region.blocks) for region in op.regions) or op.name in ("scf.yield", "scf.condition", "gpu.return"):
        for number, operand in enumerate(operands):
            if number < len(op.operands):
                op.operands[number] = operand
        return len(operands) == len(op.operands)
    given = {name: op.attributes[name] for name in op.attributes} | (attributes or {})
    with mlir.ir.InsertionPoint(op), op.location:
        made = mlir.ir.Operation.create(
            op.name, results=[result.type for result in op.results], operands=operands, attributes=given
        )
    for old, new in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
    return True


def _swapped_operands(op, random) -> bool:
    operands = list(op.operands)
    if len(operands) < 2:
        return False
    left, right = random.sample(range(len(operands)), 2)
    if operands[left] == operands[right]:
        return False
    operands[left], operands[right] = operands[right], operands[left]
    return _remade(op, operands)


def _another_operand(op, random) -> bool:
    operands = list(op.operands)
    block = op.block if hasattr(op, "block") else op.parent.regions[0].blocks[0]
    found = [result for other in block.operations for result in other.operation.results] + list(block.arguments)
    if not operands or not found:
        return False
    place = random.randrange(len(operands))
    same = [value for value in found if value.type == operands[place].type and value != operands[place]]
    pool = same if same and random.random() < 0.8 else found
    operands[place] = random.choice(pool)
    return _remade(op, operands)


def _dropped_operand(op, random) -> bool:
    operands = list(op.operands)
    if not operands:
        return False
    del operands[random.randrange(len(operands))]
    return _remade(op, operands, _resized(op, -1, random))


def _doubled_operand(op, random) -> bool:
    operands = list(op.operands)
    if not operands:
        return False
    place = random.randrange(len(operands))
    operands.insert(place, operands[place])
    return _remade(op, operands, _resized(op, 1, random))


def _resized(op, step, random):
    """Segment sizes that sum up again."""
    if "operandSegmentSizes" not in op.attributes:
        return {}
    sizes = list(mlir.ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    places = [n for n, size in enumerate(sizes) if size + step >= 0 and (size or step > 0)]
    sizes[random.choice(places)] += step
    return {"operandSegmentSizes": mlir.ir.DenseI32ArrayAttr.get(sizes)}


def _attribute(op, random) -> bool:
    names = [name for name in op.attributes if name not in _KEEP and not name.startswith(("tilewright.", "known_"))]
    if not names:
        return False
    name = random.choice(names)
    made = _changed(name, op.attributes[name], random)
    if made is None or made == op.attributes[name]:
        return False
    op.attributes[name] = made
    return True


def _changed(name, attribute, random):
    ir = mlir.ir
    if isinstance(attribute, ir.StringAttr):
        if name in _WORDS and random.random() < 0.7:
            return ir.StringAttr.get(random.choice(_WORDS[name]))
        return ir.StringAttr.get(_text(str(attribute.value), random))
    if isinstance(attribute, ir.DenseI32ArrayAttr):
        numbers = list(attribute)
        if not numbers:
            return None
        place = random.randrange(len(numbers))
        numbers[place] = _number(numbers[place], random)
        return ir.DenseI32ArrayAttr.get([max(number, 0) for number in numbers])
    try:
        return ir.Attribute.parse(_text(str(attribute), random))
    except ir.MLIRError:
        return None


def _number(number, random):
    return random.choice((number + 1, number - 1, number * 2, 0, -number, number // 2, 1, 3))


def _text(text, random):
    """One number or mark of a text changed."""
    found = list(re.finditer(r"(?<![\w.])\d+(?![\w.])|\?(?:\{[^}]*\})?|_", text))
    if not found:
        return text
    spot = random.choice(found)
    if spot[0].startswith("?"):
        new = random.choice(("?", "?{i64}", "?{div=8}", "?{i64 div=16}", "4", "0"))
    elif spot[0] == "_":
        new = random.choice(("0", "1", "(_,_)", "?"))
    else:
        new = str(_number(int(spot[0]), random)) if random.random() < 0.8 else random.choice(("?", "(2,2)", "_", ""))
    return text[: spot.start()] + new + text[spot.end() :]


def _result_type(op, random) -> bool:
    if not len(op.results):
        return False
    result = random.choice(list(op.results))
    made = _type(str(result.type), random)
    if made is None or made == result.type:
        return False
    result.set_type(made)
    return True


def _type(text, random):
    kind = random.random()
    if text.startswith("!cute."):
        if kind < 0.15:
            text = re.sub(r"<\w+", lambda found: "<" + random.choice(_ELEMENTS), text, count=1)
        elif kind < 0.3:
            text = re.sub(r'"(gmem|smem|rmem|generic)"', lambda found: f'"{random.choice(_SPACES)}"', text, count=1)
        elif kind < 0.5:
            text = re.sub(r"(\d+) : i32", lambda found: f"{_number(int(found[1]), random)} : i32", text)
        else:
            head, quote, rest = text.partition(', "')
            space, quote2, layout = rest.partition('", "')
            inner, _, end = layout.rpartition('", ')
            text = f'{head}{quote}{space}{quote2}{_text(inner, random)}", {end}' if quote2 else text
    elif text.startswith("vector<"):
        text = re.sub(r"\d+(?=x)", lambda found: str(_number(int(found[0]), random)), text, count=1)
    else:
        text = random.choice(("i32", "i64", "f32", "i1", "vector<4xf32>"))
    try:
        return mlir.ir.Type.parse(text)
    except mlir.ir.MLIRError:
        return None


def _moved(op, random) -> bool:
    block = op.block if hasattr(op, "block") else op.parent.regions[0].blocks[0]
    found = [other.operation for other in block.operations]
    place = found.index(op)
    if place + 2 >= len(found):
        return False
    op.move_after(found[random.randrange(place + 1, len(found) - 1)])
    return True


def _doubled(op, random) -> bool:
    if op.name in ("func.func", "gpu.func", "scf.yield", "scf.condition", "gpu.return", "func.return"):
        return False
    with mlir.ir.InsertionPoint(op):
        op.clone()
    return True


def _erased(op, random) -> bool:
    if any(True for result in op.results for _ in result.uses) or op.name in ("func.func", "gpu.func"):
        return False
    op.erase()
    return True


def _new_constant(op, random) -> bool:
    if op.name != "arith.constant":
        return False
    return _attribute(op, random)


_CHANGES = (
    _swapped_operands, _another_operand, _another_operand, _dropped_operand, _doubled_operand, _attribute, _attribute,
    _attribute, _result_type, _result_type, _result_type, _moved, _doubled, _erased, _new_constant,
)  # fmt: skip
