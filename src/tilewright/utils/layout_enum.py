"""Which mode of a matrix is contiguous."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.lang.nvgpu.warpgroup import OperandMajorMode
from tilewright.layout import flatten_to_tuple


class LayoutEnum(Enum):
    """`ROW_MAJOR`: mode 1 is contiguous; `COL_MAJOR`: mode 0 is. For A (M,K), B (N,K), C (M,N)."""

    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"

    @staticmethod
    def from_tensor(tensor: Any) -> LayoutEnum:
        """The order of the first two modes of a tensor.

        A mode of extent 1 decides nothing while the other one can.

        Raises:
            CompileError: neither mode has stride 1.
        """
        contiguous = [mode for mode in (0, 1) if _has_unit_stride(tensor.stride[mode])]
        if len(contiguous) == 2:
            wide = [mode for mode in contiguous if not _is_one(tensor.shape[mode])]
            contiguous = wide[:1] or [1]
        if not contiguous:
            raise CompileError(
                "neither of the first two modes is contiguous",
                location=user_location(),
                values={"shape": tensor.shape, "stride": tensor.stride},
                hint="one of the strides must be known to be 1: see mark_layout_dynamic(leading_dim=...)",
            )
        return LayoutEnum.COL_MAJOR if contiguous[0] == 0 else LayoutEnum.ROW_MAJOR

    def sm90_mma_major_mode(self) -> OperandMajorMode:
        """The major mode of an operand A or B of this order for `wgmma`."""
        return OperandMajorMode.K if self is LayoutEnum.ROW_MAJOR else OperandMajorMode.MN

    mma_major_mode = sm90_mma_major_mode

    def is_k_major_a(self) -> bool:
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_a(self) -> bool:
        return self is LayoutEnum.COL_MAJOR

    def is_k_major_b(self) -> bool:
        return self is LayoutEnum.ROW_MAJOR

    def is_n_major_b(self) -> bool:
        return self is LayoutEnum.COL_MAJOR

    def is_n_major_c(self) -> bool:
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_c(self) -> bool:
        return self is LayoutEnum.COL_MAJOR


def _has_unit_stride(stride: Any) -> bool:
    return any(isinstance(step, int) and step == 1 for step in flatten_to_tuple(stride))


def _is_one(extent: Any) -> bool:
    return isinstance(extent, int) and extent == 1
