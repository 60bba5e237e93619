"""Control flow of the language at run time of the front end: Python or `scf` regions, as conditions decide."""

from tilewright.lang.control.dispatch import ConstantConditionWarning
from tilewright.lang.control.ranges import const_expr, dynamic_expr, range, range_constexpr, range_dynamic
from tilewright.lang.control.undefined import Undefined

__all__ = [
    "ConstantConditionWarning",
    "Undefined",
    "const_expr",
    "dynamic_expr",
    "range",
    "range_constexpr",
    "range_dynamic",
]
