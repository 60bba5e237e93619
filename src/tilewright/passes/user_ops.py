"""Operations of users: `register_op`, and their lowering, which `expand-views` begins with on every target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import PassError
from tilewright.ir import context, user_ops
from tilewright.ir.dialect import OpSpec
from tilewright.ir.user_ops import USER_OPS, UserOp
from tilewright.passes.rewriting import Rewriter, rewrite, rule

if TYPE_CHECKING:
    from mlir import ir

Lowering = Callable[["ir.Operation", Rewriter], Any]


def register_op(spec: OpSpec, *, lower: Lowering) -> UserOp:
    """Add an operation to the IR; the result is called in kernels and host functions.

    `lower(op, rewriter)` builds operations of stage `cute` before `op` and gives the values for its results (nothing
    where it has none). It does so for kernels and for host functions, on every target. Passes see the operation until
    then. The same name again takes the place of the first.

    Raises:
        PassError: the name or a kind is wrong, or a compilation under way knows another operation of this name.
    """
    made = user_ops.add(spec, lower)
    if not context.user_ops_changed():
        raise PassError(
            f"{spec.name} is registered anew in the middle of a compilation", hint="register it before it is used"
        )
    return made


def lower_user_ops(root: ir.Operation) -> None:
    """Put what their rules build in place of users' operations; these may be in terms of each other."""
    if USER_OPS:
        rewrite(root, [_rule(item) for item in list(USER_OPS.values())])


def _rule(item: UserOp) -> Any:
    @rule(item.spec.name)
    def lowering(op: ir.Operation, rewriter: Rewriter) -> Any:
        values = item.lower(op, rewriter)
        if values is None and list(op.results):
            raise PassError(
                f"the rule that lowers {op.name} gives no value",
                hint="return the value that stands for its result, on every path",
            )
        return [] if values is None else values

    lowering.__qualname__ = f"that lowers {item.spec.name}"
    return lowering
