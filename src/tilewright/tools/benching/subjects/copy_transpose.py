"""copy_transpose of a matrix."""

from __future__ import annotations

from typing import Any

from tilewright.tools.benching.subjects.subject import Inputs, Subject, in_triton, public


def _inputs(make: Inputs) -> tuple[Any, ...]:
    return (make.normal(*make.case.shape),)


def _contiguous(x: Any, tile_size: int | None = None) -> Any:
    return x.swapaxes(-1, -2).contiguous()


SUBJECTS = {
    "copy_transpose": Subject(
        inputs=_inputs,
        kernel=public("copy_transpose"),
        ref=_contiguous,
        exact=_contiguous,
        torch=_contiguous,
        peers={"triton": in_triton("transpose")},
    )
}
