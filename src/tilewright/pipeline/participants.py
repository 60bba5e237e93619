"""The two sides of a pipeline as objects that keep their own position."""

from __future__ import annotations

from typing import Any, Protocol

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Int32
from tilewright.lang.tensors.pointer import Pointer
from tilewright.pipeline.state import PipelineState


class Pipeline(Protocol):
    """What the sides need of a pipeline."""

    num_stages: int

    def producer_acquire(self, state: PipelineState, try_acquire_token: Any = None) -> None: ...
    def producer_try_acquire(self, state: PipelineState) -> Boolean: ...
    def producer_commit(self, state: PipelineState) -> None: ...
    def producer_get_barrier(self, state: PipelineState) -> Pointer: ...
    def producer_tail(self, state: PipelineState) -> None: ...
    def consumer_wait(self, state: PipelineState, try_wait_token: Any = None) -> None: ...
    def consumer_try_wait(self, state: PipelineState) -> Boolean: ...
    def consumer_release(self, state: PipelineState) -> None: ...


class ImmutableResourceHandle:
    """One buffer: the position at which it was acquired."""

    def __init__(self, origin: Pipeline, state: PipelineState) -> None:
        self._origin = origin
        self._state = state

    @property
    def index(self) -> Int32:
        """The stage of the buffer."""
        return self._state.index

    @property
    def count(self) -> Int32:
        """Which step of its side this is."""
        return self._state.count

    def get_origin(self) -> Pipeline:
        return self._origin

    def __extract_mlir_values__(self) -> list[Any]:
        return self._state.__extract_mlir_values__()

    def __new_from_mlir_values__(self, values: list[Any]) -> Any:
        return type(self)(self._origin, self._state.__new_from_mlir_values__(values))

    def __tw_structure__(self) -> int:
        """What may not change in a region."""
        return id(self._origin)


class ProducerHandle(ImmutableResourceHandle):
    """A buffer to fill."""

    @property
    def barrier(self) -> Pointer:
        """The barrier that a copy into the buffer signals."""
        return self._origin.producer_get_barrier(self._state)

    def commit(self, *, loc: object = None, ip: object = None) -> None:
        """The buffer is filled."""
        self._origin.producer_commit(self._state)


class ConsumerHandle(ImmutableResourceHandle):
    """A buffer to read."""

    def release(self, *, loc: object = None, ip: object = None) -> None:
        """The buffer may be filled again."""
        self._origin.consumer_release(self._state)


class _Side:
    """A pipeline and a position in it."""

    def __init__(self, pipeline: Pipeline, state: PipelineState, group: Any = None) -> None:
        self._pipeline = pipeline
        self._state = state
        self._group = group

    @property
    def state(self) -> PipelineState:
        return self._state

    def advance(self, *, loc: object = None, ip: object = None) -> None:
        """To the next buffer."""
        self._state.advance()

    def clone(self, *, loc: object = None, ip: object = None) -> Any:
        """The same side with a position of its own."""
        return type(self)(self._pipeline, self._state.clone(), self._group)

    def __extract_mlir_values__(self) -> list[Any]:
        return self._state.__extract_mlir_values__()

    def __new_from_mlir_values__(self, values: list[Any]) -> Any:
        return type(self)(self._pipeline, self._state.__new_from_mlir_values__(values), self._group)

    def __tw_structure__(self) -> int:
        """What may not change in a region."""
        return id(self._pipeline)


class PipelineProducer(_Side):
    """The side that fills buffers."""

    ImmutableResourceHandle = ProducerHandle

    def acquire(self, try_acquire_token: Any = None, *, loc: object = None, ip: object = None) -> ProducerHandle:
        """Wait until the buffer at the present position is free."""
        self._pipeline.producer_acquire(self._state, try_acquire_token)
        return ProducerHandle(self._pipeline, self._state.clone())

    def acquire_and_advance(
        self, try_acquire_token: Any = None, *, loc: object = None, ip: object = None
    ) -> ProducerHandle:
        """`acquire`, and go on to the next buffer."""
        handle = self.acquire(try_acquire_token)
        self.advance()
        return handle

    def try_acquire(self, *, loc: object = None, ip: object = None) -> Boolean:
        """Whether the buffer is free, as a token for `acquire`."""
        return self._pipeline.producer_try_acquire(self._state)

    def commit(self, handle: ProducerHandle | None = None, *, loc: object = None, ip: object = None) -> None:
        """The buffer of `handle`, or at the present position, is filled."""
        if handle is None:
            self._pipeline.producer_commit(self._state)
            return
        _require_origin(handle, self._pipeline)
        handle.commit()

    def tail(self, try_acquire_token: Any = None, *, loc: object = None, ip: object = None) -> None:
        """Wait until all buffers filled so far are released. The producer calls it once, last."""
        self._pipeline.producer_tail(self._state)

    def reset(self, *, loc: object = None, ip: object = None) -> None:
        """Back to the first buffer."""
        self._state = PipelineState(self._state.stages, 0, 0, 1)


class PipelineConsumer(_Side):
    """The side that reads buffers."""

    ImmutableResourceHandle = ConsumerHandle

    def wait(self, try_wait_token: Any = None, *, loc: object = None, ip: object = None) -> ConsumerHandle:
        """Wait until the buffer at the present position is filled."""
        self._pipeline.consumer_wait(self._state, try_wait_token)
        return ConsumerHandle(self._pipeline, self._state.clone())

    def wait_and_advance(self, try_wait_token: Any = None, *, loc: object = None, ip: object = None) -> ConsumerHandle:
        """`wait`, and go on to the next buffer."""
        handle = self.wait(try_wait_token)
        self.advance()
        return handle

    def try_wait(self, *, loc: object = None, ip: object = None) -> Boolean:
        """Whether the buffer is filled, as a token for `wait`."""
        return self._pipeline.consumer_try_wait(self._state)

    def release(self, handle: ConsumerHandle | None = None, *, loc: object = None, ip: object = None) -> None:
        """The buffer of `handle`, or at the present position, may be filled again."""
        if handle is None:
            self._pipeline.consumer_release(self._state)
            return
        _require_origin(handle, self._pipeline)
        handle.release()

    def reset(self, *, loc: object = None, ip: object = None) -> None:
        """Back to the first buffer."""
        self._state = PipelineState(self._state.stages, 0, 0, 0)


def _require_origin(handle: ImmutableResourceHandle, pipeline: Pipeline) -> None:
    if handle.get_origin() is not pipeline:
        raise CompileError(
            "a handle of another pipeline", location=user_location(3), hint="give it back to the pipeline it came from"
        )
