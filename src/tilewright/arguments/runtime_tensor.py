"""Tensors of the host: memory of a framework with the layout that a compiled function shall assume.

`from_dlpack(t)` has a static layout, `mark_layout_dynamic` and `mark_compact_shape_dynamic` make parts of it runtime
values. `FakeTensor` has no memory: it says what will be passed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, Self

from tilewright.arguments.dlpack import HostView, address_of, exported, view, view_of
from tilewright.base import spans
from tilewright.base.errors import ArgumentError, LeadingDimensionError
from tilewright.base.signature import Dim, Space, TensorParam
from tilewright.lang.numbers.numeric import BY_NAME, Numeric
from tilewright.lang.numbers.numpy_scalars import to_python
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout.symbolic import SymInt


def _natural_alignment(dtype: type[Numeric]) -> int:
    """That of one element, in bytes."""
    return max(dtype.width // 8, 1)


def _alignment(wanted: Any) -> int:
    """The alignment in bytes that code may rely on.

    Raises:
        ArgumentError: it is none.
    """
    wanted = to_python(wanted)
    if not isinstance(wanted, int) or wanted < 1 or wanted & (wanted - 1):
        raise ArgumentError(f"assumed_align is a power of two of bytes, not {wanted}", hint="assumed_align=16")
    return wanted


_known = functools.lru_cache(maxsize=4096)(Dim)  # an extent or stride that is known


class RuntimeTensor:
    """A view of a framework's tensor, zero copy. Shapes and strides count elements."""

    # What most instances have, which are made at a call, just passed, and gone.
    _capsule: Any = None
    _view: HostView | None = None
    _words: Any = None
    _given_align: int | None = None
    _stride_width = 64
    _marked: tuple[tuple[Dim, ...], tuple[Dim, ...]] | None = None
    _order: tuple[int, ...] | None = None

    def __init__(self, source: Any, *, assumed_align: int | None = None, use_32bit_stride: bool = False) -> None:
        found = exported(source)
        if found is None:
            self._view = view(source)
            self._dtype = self._view.dtype
        else:  # native code takes the capsule; shape and strides are read when they are asked for
            self._source = source
            self._capsule, self._dtype = found
        if assumed_align is not None:
            self._given_align = _alignment(assumed_align)
        if use_32bit_stride:
            self._stride_width = 32

    @property
    def view(self) -> HostView:
        """The memory."""
        if self._view is None:
            self._view = view_of(self._capsule, self._dtype, self._source)
        return self._view

    @property
    def _align(self) -> int:
        return self._given_align or _natural_alignment(self.element_type)

    @property
    def _dims(self) -> tuple[Dim, ...]:
        return self._marked[0] if self._marked is not None else tuple([_known(extent) for extent in self.shape])

    @property
    def _strides(self) -> tuple[Dim, ...]:
        return self._marked[1] if self._marked is not None else tuple([_known(step) for step in self.stride])

    @property
    def element_type(self) -> type[Numeric]:
        return BY_NAME[self._dtype]

    @element_type.setter
    def element_type(self, dtype: type[Numeric]) -> None:
        """See the same memory as elements of another type of the same width."""
        if dtype.width != self.element_type.width:
            raise ArgumentError(
                f"element_type from {self.element_type} to {dtype} changes the width",
                hint="recast the tensor in the jit function: cute.recast_tensor(t, dtype)",
            )
        self._dtype = dtype.facts.name
        self._view = self.view._replace(dtype=self._dtype)
        self._words = self._capsule = None

    @property
    def dtype(self) -> type[Numeric]:
        return self.element_type

    @property
    def shape(self) -> tuple[int, ...]:
        return self.view.shape

    @property
    def stride(self) -> tuple[int, ...]:
        return self.view.stride

    @property
    def leading_dim(self) -> int | None:
        """The mode of stride 1, of several the one with more than one element; None when there is none."""
        return leading_mode(self.shape, self.stride, strict=False)

    @property
    def memspace(self) -> AddressSpace:
        return AddressSpace.gmem

    @property
    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.view.data

    @property
    def layout(self) -> str:
        """Shape and strides as they will be compiled for."""
        return f"({_join(self._dims)}):({_join(self._strides)})"

    def mark_layout_dynamic(self, leading_dim: int | None = None) -> Self:
        """Make every extent a runtime value, and every stride but that of the leading mode (1) and broadcast ones (0).

        Raises:
            ArgumentError: the stride of `leading_dim` is not 1, or it is None and cannot be deduced.
        """
        shape, stride = self.shape, self.stride
        leading = self._leading(leading_dim)
        strides = tuple(
            Dim(1) if mode == leading else Dim(0) if step == 0 else Dim(width=self._stride_width)
            for mode, step in enumerate(stride)
        )
        self._marked = tuple(Dim() for _ in shape), strides
        return self

    def mark_compact_shape_dynamic(
        self, mode: int, stride_order: Sequence[int] | None = None, divisibility: int = 1
    ) -> Self:
        """Make the extent of one mode a runtime value, and with it the strides of the modes outside it.

        `stride_order` lists the modes from the outermost to the innermost, as `torch.Tensor.dim_order()` does.
        """
        shape = self.shape
        self._check_mode(mode, "mode")
        mode %= len(shape)
        order = self._compact_order(stride_order)
        if shape[mode] % divisibility:
            raise ArgumentError(
                f"extent {shape[mode]} of mode {mode} is not a multiple of {divisibility}", values={"shape": shape}
            )
        dims = list(self._dims)
        dims[mode] = Dim(divisibility=divisibility)
        strides = tuple(self._compact_stride(order, place, dims) for place in range(len(shape)))
        self._marked, self._order = (tuple(dims), strides), order
        return self

    def param(self, name: str) -> TensorParam:
        """What a function compiled for this tensor takes; of one beyond the 32-bit form, the 64-bit form."""
        return _fitting(TensorParam(name, self._dtype, self._dims, self._strides, self._align), self)

    def key(self) -> Hashable:
        """What decides the program that is compiled for this tensor, see `call_key`."""
        marked = None if self._marked is None else self._marked
        view = self.view
        return self._dtype, self._align, marked, view.shape, view.stride, view.device, view.device_id

    @property
    def __cache_key__(self) -> Hashable:
        """What functions are compiled for, by the name that sources of CuTe DSL know: equal for equal code."""
        return self._dtype, self._align, self._dims, self._strides

    def __tw_dltensor__(self) -> int:
        """The address of a DLTensor that lives as long as this object."""
        if self._capsule is not None:
            return address_of(self._capsule)
        if self._words is None:
            self._words = self.view.words()
        return int(self._words.buffer_info()[0])

    def __dlpack__(self, **options: Any) -> Any:
        return self.view.owner.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.view.device, self.view.device_id

    def __str__(self) -> str:
        return f"Tensor<0x{self.data_ptr:016x}@{self.memspace} o {self.layout}>"

    __repr__ = __str__

    def _check_mode(self, mode: int, name: str) -> None:
        rank = len(self.shape)
        if not -rank <= mode < rank:
            raise ArgumentError(f"{name} {mode} is out of range", values={"range": f"0 to {rank - 1}"})

    def _leading(self, wanted: int | None) -> int | None:
        shape, stride = self.shape, self.stride
        if wanted is not None:
            self._check_mode(wanted, "leading_dim")
            mode = wanted % len(shape)
            if stride[mode] != 1 and shape[mode] != 1:  # of a single element the stride says nothing
                raise ArgumentError(
                    f"Expected strides[leading_dim] == 1, but got {stride[mode]}",
                    values={"leading_dim": wanted, "layout": f"{shape}:{stride}"},
                )
            return mode
        return leading_mode(shape, stride)

    def _compact_order(self, given: Sequence[int] | None) -> tuple[int, ...]:
        shape, stride = self.shape, self.stride
        rank = len(shape)
        if given is not None:
            order = tuple(given)
            if sorted(order) != list(range(rank)):
                raise ArgumentError(
                    "stride_order must name every mode once", values={"stride_order": order, "rank": rank}
                )
        elif self._order is not None:
            order = self._order
        else:
            steps = [step for extent, step in zip(shape, stride, strict=True) if extent > 1]
            if len(set(steps)) != len(steps) or any(extent == 1 for extent in shape):
                raise ArgumentError(
                    "the order of the modes cannot be deduced",
                    values={"layout": f"{shape}:{stride}"},
                    hint="give stride_order, outermost mode first",
                )
            order = tuple(sorted(range(rank), key=lambda mode: -stride[mode]))
        if self._order is not None and order != self._order:
            raise ArgumentError(
                "stride_order differs from the one given before", values={"before": self._order, "now": order}
            )
        self._check_compact(order)
        return order

    def _check_compact(self, order: tuple[int, ...]) -> None:
        shape, stride, step = self.shape, self.stride, 1
        for mode in reversed(order):
            if shape[mode] > 1 and stride[mode] != step:
                raise ArgumentError(
                    "the tensor is not compact in this stride_order",
                    values={"layout": f"{shape}:{stride}", "stride_order": order},
                )
            step *= shape[mode]

    def _compact_stride(self, order: tuple[int, ...], mode: int, dims: list[Dim]) -> Dim:
        """The product of the extents inside a mode; 0 where the mode never has a second element."""
        if dims[mode].value == 1:
            return Dim(0)
        inner = [dims[other] for other in order[order.index(mode) + 1 :]]
        step = math.prod(dim.value or dim.divisibility for dim in inner)
        if all(dim.value is not None for dim in inner):
            return Dim(step)
        return Dim(width=self._stride_width, divisibility=step)


class FakeTensor:
    """A tensor without memory: what will be passed to a function compiled now."""

    def __init__(
        self, dtype: type[Numeric], shape: Sequence[Dim], stride: Sequence[Dim], space: Space, align: int | None
    ) -> None:
        self.element_type = self.dtype = dtype
        self._dims, self._strides, self._space = tuple(shape), tuple(stride), space
        self._align = _natural_alignment(dtype) if align is None else _alignment(align)

    @property
    def _assumed_align(self) -> int:
        """The alignment in bytes, by the name that sources of CuTe DSL know."""
        return self._align

    @property
    def shape(self) -> tuple[int | Dim, ...]:
        """The extents: ints, and the symbols, which the shapes of other fake tensors may share."""
        return tuple(dim if dim.value is None else dim.value for dim in self._dims)

    @property
    def stride(self) -> tuple[int | Dim, ...]:
        """The strides."""
        return tuple(dim if dim.value is None else dim.value for dim in self._strides)

    def param(self, name: str) -> TensorParam:
        """What a function compiled for this tensor takes."""
        return TensorParam(name, self.dtype.facts.name, self._dims, self._strides, self._align, self._space)

    def __str__(self) -> str:
        return f"Tensor<{self.dtype} o ({_join(self._dims)}):({_join(self._strides)})>"

    __repr__ = __str__


def is_tensor(value: Any) -> bool:
    """True for tensors of any framework."""
    return hasattr(value, "__dlpack__") or isinstance(value, (RuntimeTensor, FakeTensor))


Tensor.register(RuntimeTensor)
Tensor.register(FakeTensor)


def from_dlpack(
    tensor: Any,
    assumed_align: int | None = None,
    use_32bit_stride: bool = False,
    *,
    enable_tvm_ffi: bool = False,
    force_tf32: bool = False,
) -> RuntimeTensor:
    """A tensor of any framework that has DLPack, without a copy, with a static layout.

    Its shape and strides become constants of the compiled code; `mark_layout_dynamic()` and
    `mark_compact_shape_dynamic(mode)` of the result leave them to run time. `assumed_align` is the alignment in bytes
    that compiled code may rely on, by default that of one element; a call checks it.
    """
    return RuntimeTensor(tensor, assumed_align=assumed_align, use_32bit_stride=use_32bit_stride)


def implicit_param(tensor: Any, name: str) -> TensorParam:
    """What a function compiled for a framework's tensor passed as it is takes: a dynamic layout, leading stride 1."""
    made = RuntimeTensor(tensor)
    shape, stride = made.shape, made.stride
    leading = leading_mode(shape, stride, strict=False)
    dims = (Dim(),) * len(shape)
    strides = tuple(
        Dim(1) if mode == leading else Dim(0) if step == 0 else Dim(width=64) for mode, step in enumerate(stride)
    )
    return _fitting(replace(made.param(name), shape=dims, stride=strides, implicit=True), made)


def _fitting(param: TensorParam, tensor: RuntimeTensor) -> TensorParam:
    return spans.widened_tensor(param) if spans.too_large(param, tensor.shape, tensor.stride) else param


def leading_mode(shape: Sequence[int], stride: Sequence[int], *, strict: bool = True) -> int | None:
    """The mode of stride 1: the only one, or the only one of extent over 1; None when there is none.

    With several candidates it is an error, or the last mode when not `strict`.
    """
    ones = [mode for mode, step in enumerate(stride) if step == 1]
    if len(ones) <= 1:
        return ones[0] if ones else None
    large = [mode for mode in ones if shape[mode] > 1]
    if len(large) == 1:
        return large[0]
    if not strict:
        return ones[-1]
    raise LeadingDimensionError(
        "Can't deduce the leading dimension: several modes have stride 1",
        values={"layout": f"{tuple(shape)}:{tuple(stride)}"},
        hint="give leading_dim",
    )


def make_fake_tensor(
    dtype: type[Numeric],
    shape: Sequence[Any],
    *,
    stride: Sequence[Any],
    memspace: Any = AddressSpace.gmem,
    assumed_align: int | None = None,
) -> FakeTensor:
    """A tensor to compile for. Extents and strides are ints or `sym_int()`s; one symbol is one value."""
    return FakeTensor(dtype, [_dim(e) for e in shape], [_dim(s) for s in stride], _space(memspace), assumed_align)


def make_fake_compact_tensor(
    dtype: type[Numeric],
    shape: Sequence[Any],
    *,
    stride_order: Sequence[int] | None = None,
    memspace: Any = AddressSpace.gmem,
    assumed_align: int | None = None,
    use_32bit_stride: bool = False,
) -> FakeTensor:
    """A compact tensor to compile for. `stride_order` gives each mode's rank, 0 the innermost; default column-major."""
    rank = len(shape)
    order = tuple(stride_order) if stride_order is not None else tuple(range(rank))
    if sorted(order) != list(range(rank)):
        raise ArgumentError(
            "stride_order must give every mode its rank once", values={"stride_order": order, "rank": rank}
        )
    dims = [_dim(extent) for extent in shape]
    strides: list[Dim] = [Dim(1)] * rank
    step, divisor = 1, 1
    static = True
    for mode in sorted(range(rank), key=lambda m: order[m]):
        width = 32 if use_32bit_stride else 64
        strides[mode] = Dim(step) if static else Dim(width=width, divisibility=divisor)
        static = static and dims[mode].value is not None
        step *= dims[mode].value or 1
        divisor *= dims[mode].value or dims[mode].divisibility
    return FakeTensor(dtype, dims, strides, _space(memspace), assumed_align)


def _dim(item: Any) -> Dim:
    if isinstance(item, Dim):  # of another fake tensor
        return item
    item = to_python(item)
    if isinstance(item, int):
        return Dim(item)
    if isinstance(item, SymInt):
        return Dim(None, item.width, item.divisibility, item.expression())
    raise ArgumentError(f"an extent is an int or a sym_int(), not {type(item).__name__}")


def _space(memspace: Any) -> Any:
    return str(memspace)


def _join(dims: Sequence[Dim]) -> str:
    return ",".join(str(dim) for dim in dims)
