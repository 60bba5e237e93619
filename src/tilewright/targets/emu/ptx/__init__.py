"""PTX text to a small tree: tokens, functions, instructions, each with its line."""

from tilewright.targets.emu.ptx.ir import (
    Function,
    Imm,
    Instruction,
    Mem,
    Module,
    Neg,
    Operand,
    Pair,
    Part,
    Place,
    Reg,
    Sink,
    Special,
    Sym,
    Variable,
    Vec,
)
from tilewright.targets.emu.ptx.parser import parse

__all__ = [
    "Function",
    "Imm",
    "Instruction",
    "Mem",
    "Module",
    "Neg",
    "Operand",
    "Pair",
    "Part",
    "Place",
    "Reg",
    "Sink",
    "Special",
    "Sym",
    "Variable",
    "Vec",
    "parse",
]
