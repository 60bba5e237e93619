"""`cutlass.base_dsl.typing`."""

from typing import TYPE_CHECKING

from tilewright.arguments.objects import get_c_pointers, get_mlir_types
from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.lang.calls.parameters import Constexpr
from tilewright.lang.leaves import extract_mlir_values, new_from_mlir_values
from tilewright.lang.mlir_types import T
from tilewright.lang.numbers.numeric import BY_NAME as _BY_NAME
from tilewright.lang.numbers.numeric import Float, Integer, Numeric, NumericMeta, as_numeric
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor_ssa import TensorSSA as Vector

FloatMeta = IntegerMeta = NumericMeta
globals().update({_cls.__name__: _cls for _cls in _BY_NAME.values()})  # Int32, Float32, ...

__STR_TO_DTYPE__ = {_cls.__name__: _cls for _cls in _BY_NAME.values()}

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_INTERNAL)
