"""Where a side of a pipeline stands: the stage it is at, and the parity of the phase that it waits for."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.lang.numbers import arithmetic
from tilewright.lang.numbers.numeric import Int32, as_numeric
from tilewright.pipeline.groups import PipelineUserType


class PipelineState:
    """A position in a ring of `stages` buffers. `count` is the number of steps made so far."""

    def __init__(self, stages: int, count: Any, index: Any, phase: Any) -> None:
        self._stages = stages
        self._count = Int32(as_numeric(count))
        self._index = Int32(as_numeric(index))
        self._phase = Int32(as_numeric(phase))

    @property
    def stages(self) -> int:
        return self._stages

    @property
    def count(self) -> Int32:
        return self._count

    @property
    def index(self) -> Int32:
        return self._index

    @property
    def phase(self) -> Int32:
        return self._phase

    def clone(self, *, loc: object = None, ip: object = None) -> PipelineState:
        """A state of its own at the same position."""
        return PipelineState(self._stages, self._count, self._index, self._phase)

    def reset_count(self, *, loc: object = None, ip: object = None) -> None:
        """Count from 0 again."""
        self._count = Int32(0)

    def advance(self, *, loc: object = None, ip: object = None) -> None:
        """One step on: after the last stage the first follows, in the other phase."""
        self._step(1, self._stages, 0)
        self._count = self._count + 1

    def reverse(self, *, loc: object = None, ip: object = None) -> None:
        """One step back."""
        self._step(-1, -1, self._stages - 1)
        self._count = self._count - 1

    def _step(self, step: int, end: int, restart: int) -> None:
        if self._stages == 1:
            self._phase = self._phase ^ 1
            return
        following = self._index + step
        if following.is_static:
            wraps = following.value == end
            self._index = Int32(restart) if wraps else following
            self._phase = self._phase ^ int(wraps)
            return
        wrapped = following == end
        self._phase = self._phase ^ Int32(wrapped)
        condition, values = wrapped.ir_value(), (Int32(restart).ir_value(), following.ir_value())
        self._index = Int32.from_ir(arithmetic.select(condition, *values)).assuming(bound=self._stages - 1)

    def __extract_mlir_values__(self) -> list[Any]:
        return [number.ir_value() for number in (self._count, self._index, self._phase)]

    def __new_from_mlir_values__(self, values: list[Any]) -> PipelineState:
        count, index, phase = (Int32.from_ir(value) for value in values)
        return PipelineState(self._stages, count, index.assuming(bound=self._stages - 1), phase)

    def __tw_structure__(self) -> int:
        """What may not change in a region."""
        return self._stages

    def __str__(self) -> str:
        return f"PipelineState(stages={self._stages}, count={self._count}, index={self._index}, phase={self._phase})"

    __repr__ = __str__


def make_pipeline_state(type: PipelineUserType, stages: int, *, loc: object = None, ip: object = None) -> PipelineState:
    """Where a side begins: the consumer waits for phase 0, the producer finds all buffers free."""
    if type is PipelineUserType.Producer:
        return PipelineState(stages, 0, 0, 1)
    if type is PipelineUserType.Consumer:
        return PipelineState(stages, 0, 0, 0)
    raise CompileError(f"a pipeline state of {type}", location=user_location(), hint="Producer or Consumer")
