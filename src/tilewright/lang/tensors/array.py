"""Arrays: elements in rows one after another, without layouts, as CuTe DSL's primitives use them.

`cutlass.Array` is an annotation of parameters, which take what a `cute.Tensor` takes, and memory that a kernel
allocates: `cutlass.Array(dtype, shape, space=AddressSpace.smem)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric, number_type
from tilewright.lang.printing.print_tensor import print_tensor
from tilewright.lang.tensors import vector_access
from tilewright.lang.tensors.allocation import SmemAllocator, make_rmem_tensor
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor, make_tensor, map_leaves
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout import Layout, size

if TYPE_CHECKING:
    from mlir import ir


class Array:
    """Elements of `dtype`, the last index moving fastest.

    `a[i, j]` is an element; `a[i, j:n]` the vector of the `n` elements from there on, whose number is known while
    compiling. Memory of `space` is that of the thread (`rmem`) or of its block (`smem`), and is not initialised.

    Raises:
        CompileError: the shape is known only at run time, or the kernel cannot allocate in the space.
    """

    def __init__(
        self,
        dtype: type[Numeric],
        shape: Any = 1,
        *,
        space: AddressSpace = AddressSpace.rmem,
        alignment: int | None = None,
        loc: object = None,
        ip: object = None,
    ) -> None:
        extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        layout = Layout(extents, _rows(extents))
        if space is AddressSpace.rmem:
            self._tensor = make_rmem_tensor(layout, dtype)
        elif space is AddressSpace.smem:
            self._tensor = SmemAllocator().allocate_tensor(number_type(dtype), layout, alignment or 1)
        else:
            raise CompileError(
                f"an Array is allocated in smem or rmem, not in {space}",
                location=user_location(),
                hint="a parameter annotated with cutlass.Array is in global memory",
            )

    @classmethod
    def of(cls, tensor: Tensor) -> Array:
        """The elements of a tensor as an array; its own strides stay."""
        made = cls.__new__(cls)
        made._tensor = tensor
        return made

    __tw_of_tensor__ = of

    @property
    def tensor(self) -> Tensor:
        """The array as a tensor."""
        return self._tensor

    @property
    def shape(self) -> tuple[Any, ...]:
        shape = self._tensor.shape
        return shape if isinstance(shape, tuple) else (shape,)

    @property
    def element_type(self) -> type[Numeric]:
        return self._tensor.element_type

    dtype = element_type

    @property
    def memspace(self) -> AddressSpace:
        return self._tensor.memspace

    @property
    def iterator(self) -> Pointer:
        """A pointer to the first element."""
        pointer: Pointer = self._tensor.iterator
        return pointer

    def ir_value(self, *, loc: object = None, ip: object = None) -> ir.Value:
        """The address of the first element as an LLVM pointer."""
        return self.iterator.llvm_ptr

    def data_ptr(self, offset: Any = 0, *, loc: object = None, ip: object = None) -> Pointer:
        """A pointer to the element `offset` elements from the first on."""
        return self.iterator + offset

    def subview(self, offset: Any, *, loc: object = None, ip: object = None) -> Array:
        """The elements from `offset` on, as an array of one mode."""
        return Array.of(make_tensor(self.iterator + offset, Layout(size(self._tensor.layout) - offset)))

    def __getitem__(self, index: Any) -> Any:
        start, count = _divided(index)
        return self._tensor[start] if count is None else self.load(start, count)

    def __setitem__(self, index: Any, value: Any) -> None:
        start, count = _divided(index)
        if count is None:
            self._tensor[start] = value
        else:
            self.store(value, start, count)

    def load(
        self,
        index: Any = 0,
        vector_size: int | None = None,
        *,
        alignment: int | None = None,
        is_volatile: bool = False,
        is_invariant: bool = False,
        loc: object = None,
        ip: object = None,
    ) -> Any:
        """The element at `index`, or the `vector_size` elements from there on; options are those of `Pointer.load`."""
        place = self._place(index)
        return place.load(vector_size, alignment=alignment, is_volatile=is_volatile, is_invariant=is_invariant)

    def store(
        self,
        value: Any,
        index: Any = 0,
        vector_size: int | None = None,
        *,
        alignment: int | None = None,
        is_volatile: bool = False,
        loc: object = None,
        ip: object = None,
    ) -> None:
        """Write `value` at `index`: a number, or a vector from there on. With `vector_size` a number is written so
        often, and a vector has that many elements."""
        place = self._place(index)
        if vector_size is None or is_volatile:
            place.store(value, alignment=alignment, is_volatile=is_volatile)
        elif not isinstance(value, TensorSSA):
            vector_access.fill_vector(place, value, vector_size)
        elif value.size != vector_size:
            raise CompileError(
                f"{value.size} elements are stored as {vector_size}", location=user_location(), values={"value": value}
            )
        else:
            place.store(value, alignment=alignment)

    def masked_load(
        self, index: Any, vector_size: int, mask: Any, *, default: Any = 0, alignment: int | None = None,
        loc: object = None, ip: object = None,
    ) -> TensorSSA:  # fmt: skip
        """The `vector_size` elements from `index` on where `mask` is true, and `default` where it is not."""
        truths = mask.vector() if isinstance(mask, Array) else mask
        found = self._place(index).masked_load(truths, default=default, alignment=alignment)
        if found.size != vector_size:
            raise CompileError(
                "masked_load takes one truth value for each element",
                location=user_location(),
                values={"elements": vector_size, "mask": found.size},
            )
        return found

    def masked_store(
        self, index: Any, value: Any, mask: Any, *, alignment: int | None = None, loc: object = None, ip: object = None
    ) -> None:
        """Write the elements of `value` from `index` on where `mask` is true."""
        truths = mask.vector() if isinstance(mask, Array) else mask
        self._place(index).masked_store(value, truths, alignment=alignment)

    def vector(self) -> TensorSSA:
        """All elements as a vector."""
        return self._tensor.load()

    def print_runtime(self, *, max_elements: int | None = None, loc: object = None, ip: object = None) -> None:
        """Print the elements when the kernel runs, at most the first `max_elements`."""
        count = size(self._tensor.layout)
        few = max_elements is not None and not (isinstance(count, int) and count <= max_elements)
        print_tensor(make_tensor(self.iterator, Layout(max_elements)) if few else self._tensor)

    def _place(self, index: Any) -> Pointer:
        coordinate = map_leaves(self._tensor.widen, index)
        return self.iterator + self._tensor.layout(coordinate)

    def __extract_mlir_values__(self) -> list[ir.Value]:
        return self._tensor.__extract_mlir_values__()

    def __new_from_mlir_values__(self, values: list[ir.Value]) -> Array:
        return Array.of(self._tensor.__new_from_mlir_values__(values))

    def __tw_structure__(self) -> tuple[str, ...]:
        """What may not change in a region."""
        return self._tensor.__tw_structure__()

    def __str__(self) -> str:
        return f"array<{self._tensor}>"

    __repr__ = __str__


def make_array_view(tensor: Any, *, loc: object = None, ip: object = None) -> Array:
    """The elements of a tensor as an array.

    Raises:
        CompileError: it is no tensor.
    """
    if isinstance(tensor, Array):
        return tensor
    if not isinstance(tensor, Tensor):
        raise CompileError(f"make_array_view takes a tensor, not {type(tensor).__name__}", location=user_location())
    return Array.of(tensor)


def _rows(extents: tuple[Any, ...]) -> tuple[Any, ...]:
    """The strides of a shape whose last mode is contiguous."""
    strides, step = [], 1
    for extent in reversed(extents):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _divided(index: Any) -> tuple[Any, int | None]:
    """Where an index begins, and how many elements it takes; None for one element."""
    parts = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(part, slice) for part in parts):
        return index, None
    last = parts[-1]
    count = getattr(getattr(last, "stop", None), "value", getattr(last, "stop", None))
    if any(isinstance(part, slice) for part in parts[:-1]) or last.step is not None or not isinstance(count, int):
        raise CompileError(
            "a slice of an Array is `start:count` of its last mode, with a count known while compiling",
            location=user_location(3),
            values={"index": index},
            hint="a[i, j:4] has the four elements from a[i, j] on",
        )
    start = 0 if last.start is None else last.start
    return ((*parts[:-1], start) if len(parts) > 1 else start), count
