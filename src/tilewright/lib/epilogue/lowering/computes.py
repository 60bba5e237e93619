"""Operations that compute element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.cute import Numeric
from tilewright.lib.epilogue.lowering.functions import FUNCTIONS, converted
from tilewright.lib.epilogue.lowering.op import EpilogueOp
from tilewright.lib.epilogue.lowering.tile import Tile


@dataclass(frozen=True)
class Compute(EpilogueOp):
    """A function of `FUNCTIONS` of its inputs.

    Attributes:
        function: its name.
        dtype: the type in which it is computed.
        result: the type of its value; None is `dtype`.
    """

    function: str
    dtype: type[Numeric]
    result: type[Numeric] | None = None

    def visit(self, tile: Tile, state: Any, fetched: Any, inputs: Sequence[Any]) -> Any:
        value = FUNCTIONS[self.function](
            *(item if item.dtype is self.dtype else item.to(self.dtype) for item in inputs)
        )
        return value if self.result is None else converted(value, self.result)
