"""All subjects by the name of their op."""

from __future__ import annotations

from tilewright.base.errors import ArgumentError
from tilewright.tools.benching.subjects import (
    copy_transpose,
    cross_entropy,
    elementwise,
    epilogue,
    gemm,
    norms,
    reduce,
    softmax_online,
)
from tilewright.tools.benching.subjects.subject import Subject

SUBJECTS: dict[str, Subject] = {
    **copy_transpose.SUBJECTS, **reduce.SUBJECTS, **softmax_online.SUBJECTS, **norms.SUBJECTS, **cross_entropy.SUBJECTS,
    **elementwise.SUBJECTS, **epilogue.SUBJECTS, **gemm.SUBJECTS,
}  # fmt: skip


def subject(op: str) -> Subject:
    """The subject of an op.

    Raises:
        ArgumentError: there is none.
    """
    if op not in SUBJECTS:
        raise ArgumentError(f"there is no benchmark of {op!r}", hint=f"there are: {', '.join(SUBJECTS)}")
    return SUBJECTS[op]
