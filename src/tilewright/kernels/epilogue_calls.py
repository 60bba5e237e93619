"""Epilogues compiled for arrays: called by keyword, they fill their outputs and return them in a dict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.cute import Float32, Uint8
from tilewright.kernels import views
from tilewright.kernels.epilogue_plans import Prepared, check_reached, is_array, memory_of, prepare
from tilewright.kernels.launching import address_of, on_gpu
from tilewright.lib.epilogue import collectives
from tilewright.lib.epilogue.bits import Bits
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.elements import element_of, numpy_dtype
from tilewright.lib.epilogue.lowering.from_dag import fold_of
from tilewright.lib.epilogue.lowering.op import BITS
from tilewright.lib.epilogue.lowering.reductions import ATOMIC, PARTIALS
from tilewright.lib.epilogue.outputs import value_shapes
from tilewright.lib.epilogue.tensor import Tensor
from tilewright.lib.epilogue.trace import parse, trace
from tilewright.torch import dtype as torch_dtype

WAYS = {"deterministic": PARTIALS, "atomic": ATOMIC}


class CompiledEpilogue:
    """A fused elementwise and reduction kernel, in which `accum` is a tensor like the others.

    It takes operands and outputs by name, arrays of NumPy or tensors of PyTorch; those of a GPU run there, others on
    the emulator. Outputs that are not given are allocated. It takes arrays of other sizes than the examples' too; a
    kernel is compiled for each way in which types, strides and alignments differ, not for each size.
    """

    def __init__(
        self,
        fn: Callable[..., Any] | str,
        examples: Mapping[str, Any],
        way: str,
        collective: collectives.OnTensors | None = None,
        **options: Any,
    ) -> None:
        self._fn, self._way, self._options, self._collective = fn, way, options, collective
        self._absent = {name: None for name, example in examples.items() if example is None}
        self._examples = {name: Tensor.like(name, example) for name, example in examples.items() if example is not None}
        self.dag: DAGIR = trace(fn, examples, **options)
        self._shared = collectives.take_out(self.dag.copy(), collective)
        self._outputs = tuple(self.dag.return_names)
        self._written = parse(fn, examples, options["cc"], element_compute=options["element_compute"])
        self._operands = tuple(meta.name for meta in self._written.loads() if not meta.is_immediate)
        self._unused = frozenset(self._operands) - {meta.argument for meta in self.dag.loads()}
        self._prepared: dict[Any, Prepared] = {}
        self._shapes: dict[Any, Any] = {}

    def __call__(self, **arrays: Any) -> dict[str, Any]:
        """Run on operands, and outputs as far as they are given.

        Returns:
            The outputs by name, in the order in which the epilogue returns them.

        Raises:
            ArgumentError: an operand is missing, a name is unknown, or arrays lie on several devices.
            EpilogueError: the shapes do not go together.
        """
        given = self._complete(arrays)
        memory = {name: memory_of(item) for name, item in given.items()}
        if any(is_array(item) and 0 in item.shape for item in memory.values()):
            self._fill(memory)
        else:
            self._run(given, memory)
        collectives.share(self._shared, given, self._collective)
        return {name: given[name] for name in self._outputs}

    def _run(self, given: Mapping[str, Any], memory: Mapping[str, Any]) -> None:
        like = next(item for item in memory.values() if is_array(item))
        key = tuple(
            (name, given[name].shape[-1:], *views.facts(item)) if is_array(item) else (name, type(item))
            for name, item in memory.items()
        )
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = views.keep(self._prepared, key, self._prepare(given, memory, like))
        prepared.run(memory, like)

    def _prepare(self, given: Mapping[str, Any], memory: Mapping[str, Any], like: Any) -> Prepared:
        self._check_places(memory, like)
        dag = trace(self._fn, {**self._not_given(), **given}, **self._options)
        collectives.take_out(dag, self._collective)
        starts = {name: address_of(item) for name, item in memory.items() if is_array(item)}
        return prepare(dag, starts, "cuda" if on_gpu(like) else "emu", self._way)

    def _fill(self, memory: Mapping[str, Any]) -> None:
        """What reductions of no elements give."""
        check_reached(self.dag, {name: memory[name].shape for name in self._outputs})
        for meta in self.dag.outputs():
            if meta.is_reduction and 0 not in memory[meta.name].shape:
                memory[meta.name][...] = fold_of(self.dag, meta).neutral.value

    def _not_given(self) -> dict[str, Any]:
        """The examples of operands that are absent, and of those that do not matter."""
        unused = {name: example for name, example in self._examples.items() if name in self._unused}
        return {**self._absent, **unused}

    # What a call gives

    def _complete(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Operands, then outputs, in an order that is always the same."""
        given: dict[str, Any] = {}
        for name in self._operands:
            if name in arrays:
                given[name] = arrays[name]
            elif name in self._unused:
                continue
            elif (example := self._examples.get(name)) is not None and example.is_scalar:
                given[name] = example.value
            else:
                raise ArgumentError(f"Operand {name} of the epilogue is missing.", hint=f"pass {name}=")
        missing = [name for name in self._outputs if arrays.get(name) is None]
        made = self._allocated(missing, given) if missing else {}
        for name in self._outputs:
            given[name] = made[name] if name in made else arrays[name]
        unknown = [name for name in arrays if name not in given]
        if unknown:
            raise ArgumentError(
                f"The epilogue has no operand or output {unknown[0]}.",
                values={"operands": ", ".join(self._operands), "outputs": ", ".join(self._outputs)},
                hint="arguments are passed by the names that the epilogue gives them",
            )
        return given

    def _check_places(self, given: Mapping[str, Any], like: Any) -> None:
        for name, item in given.items():
            if is_array(item) and (isinstance(item, np.ndarray), _device(item)) != (
                isinstance(like, np.ndarray), _device(like),
            ):  # fmt: skip
                places = {other: _device(array) for other, array in given.items() if is_array(array)}
                raise ArgumentError(
                    f"{name} lies on another device than the other arrays.",
                    values=places,
                    hint="pass all operands and outputs from one place",
                )

    # Outputs that are not given

    def _allocated(self, names: Sequence[str], operands: Mapping[str, Any]) -> dict[str, Any]:
        like = next(item for item in operands.values() if is_array(item))
        like = like.array if isinstance(like, Bits) else like
        key = tuple(tuple(item.shape) if is_array(item) else () for item in operands.values())
        shapes = self._shapes.get(key)
        if shapes is None:
            shapes = views.keep(self._shapes, key, self._output_shapes(operands))
        return {name: _empty(like, shapes[name], self._examples[name]) for name in names}

    def _output_shapes(self, operands: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """The shapes of outputs for operands of these shapes: with the modes that the examples have."""
        sizes = {name: tuple(item.shape) for name, item in operands.items() if is_array(item)}
        if all(sizes[name] == self._examples[name].shape for name in sizes if name != "accum") and (
            sizes["accum"] in (self._examples["accum"].shape, self._examples["accum"].shape[-2:])
        ):
            return {name: self._examples[name].shape for name in self._outputs}
        if len(sizes["accum"]) == 2:
            sizes["accum"] = (1, *sizes["accum"])
        try:
            shapes = value_shapes(
                self._written, {meta.name: sizes.get(meta.name, ()) for meta in self._written.loads()}
            )
        except ValueError:  # tracing says what does not fit
            return {name: self._examples[name].shape for name in self._outputs}
        return {name: _like_example(shapes[name], self._examples[name].shape) for name in self._outputs}


def _like_example(shape: tuple[int, ...], example: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with as many modes as the example, and 1 where the example has 1."""
    behind = shape[len(shape) - len(example) :]
    return tuple(1 if wanted == 1 else extent for extent, wanted in zip(behind, example, strict=True))


def _device(array: Any) -> str:
    return "NumPy" if isinstance(array, np.ndarray) else str(array.device)


def _empty(like: Any, shape: tuple[int, ...], example: Tensor) -> Any:
    """A new output where `like` lies."""
    if example.bits:
        rows = (*shape[:-1], -(-shape[-1] // BITS))
        return Bits(
            np.empty(rows, np.uint8)
            if isinstance(like, np.ndarray)
            else like.new_empty(rows, dtype=torch_dtype(Uint8)),
            shape[-1],
        )
    if isinstance(like, np.ndarray):
        return np.empty(shape, numpy_dtype(example.element))
    return like.new_empty(shape, dtype=torch_dtype(example.element))


def compile_epilogue(
    fn: Callable[..., Any] | str,
    examples: Mapping[str, Any],
    *,
    cc: int | None = None,
    additional_passes: Sequence[Any] = (),
    element_compute: Any = Float32,
    reduction: str = "deterministic",
    collective: collectives.OnTensors | None = None,
) -> CompiledEpilogue:
    """A kernel that computes an epilogue on arrays, where `accum` is one of them.

    Args:
        fn: the epilogue, or its source text.
        examples: arrays, tensors or numbers by name, of operands and of outputs.
        cc: compute capability for which it is traced.
        additional_passes: passes that run after the default ones.
        element_compute: the type in which it computes.
        reduction: "deterministic": the same call gives the same bits; "atomic": blocks add to results as they come.
        collective: what communication nodes after outputs do, when the kernel has been launched: `collective(node,
            tensor)` changes the stored tensor in place, or returns what takes its place.

    Raises:
        EpilogueError: the epilogue is wrong; see docs/epilogues.md for the rules.
        ArgumentError: there is no such way of reductions.
    """
    if reduction not in WAYS:
        raise ArgumentError(
            f"There are no {reduction!r} reductions.",
            values={"ways": ", ".join(WAYS)},
            hint='reduction="deterministic" is the default',
        )
    return CompiledEpilogue(
        fn, examples, WAYS[reduction], collective, cc=cc, additional_passes=tuple(additional_passes),
        element_compute=element_of(element_compute),
    )  # fmt: skip
