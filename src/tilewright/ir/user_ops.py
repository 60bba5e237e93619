"""Operations that users add, in dialects of their own: `register_op(OpSpec("mine.clamp", ...), lower=rule)`.

An MLIR context takes further operations at any time, so a registration reaches the contexts that wait for their next
compilation too (`Session.take_user_ops`). A changed operation of a known name needs a context without the old one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import CompileError, PassError
from tilewright.ir.dialect import CONSTRAINTS, SPECS, OpSpec

_NAME = re.compile(r"[a-z_]\w*\.[a-z_]\w*")
_TAKEN = frozenset((
    "affine", "amdgpu", "arith", "async", "builtin", "cf", "complex", "cute", "func", "gpu", "index", "irdl", "linalg",
    "llvm", "math", "memref", "nvgpu", "nvvm", "rocdl", "scf", "spirv", "tensor", "ub", "vector",
))  # fmt: skip


_RESERVED = ("results", "operandSegmentSizes")

NUMBERS = ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")  # kinds that are one type

_front_end: list[Callable[..., Any]] = []


def called_by(front_end: Callable[..., Any]) -> None:
    """Say how the language calls an operation, see `lang.calls.user_ops`."""
    _front_end[:] = [front_end]


@dataclass(frozen=True)
class UserOp:
    """An operation of the user, and the rule that puts operations of stage `cute` in its place.

    In a kernel or host function it is called as a function of its operands.
    """

    spec: OpSpec
    lower: Callable[..., Any]
    number: int = 0  # of the registration

    def __call__(self, *operands: Any, results: Any = None, **attributes: Any) -> Any:
        if not _front_end:
            raise CompileError(f"{self.spec.name} is called outside a @cute.jit or @cute.kernel function")
        return _front_end[0](self, operands, results, attributes)


def fits(kind: str, type_: Any) -> bool:
    """True where a type is of a kind of operand."""
    text = str(type_)
    begins = {"ptr": "!cute.ptr<", "tensor": "!cute.tensor<", "vector": "vector<", "tile": "tensor<"}.get(kind)
    return text.startswith(begins) if begins else kind in ("any", text)


USER_OPS: dict[str, UserOp] = {}


def spec_of(name: str) -> OpSpec | None:
    """The row of an operation of the `cute` dialect or of a user's, by its full name; None for others."""
    if name.startswith("cute."):
        return SPECS.get(name.removeprefix("cute."))
    found = USER_OPS.get(name)
    return found.spec if found is not None else None


def add(spec: OpSpec, lower: Callable[..., Any]) -> UserOp:
    """Note an operation. The same name again takes the place of the first.

    Raises:
        PassError: the name or a kind of an operand is wrong, or `lower` is no function.
    """
    if not _NAME.fullmatch(spec.name):
        raise PassError(f"{spec.name!r} is no name of an operation", hint='write "mine.clamp": a dialect and a name')
    if spec.name.partition(".")[0] in _TAKEN:
        raise PassError(
            f"{spec.name!r} is in a dialect that is not yours", hint="choose a dialect of your own, as in mine.clamp"
        )
    names = [*(text.partition(":")[0] for text in spec.operands), *spec.attributes]
    for name in names:
        if not name.isidentifier() or names.count(name) > 1 or name in _RESERVED:
            raise PassError(
                f"{spec.name}: operands and attributes need names of their own, {name!r} is none",
                values={"operands": " ".join(spec.operands), "attributes": " ".join(spec.attributes)},
                hint="names are identifiers, each is given once",
            )
    for kind in (*(text.partition(":")[2].rstrip("*") for text in spec.operands), *spec.results):
        if kind not in CONSTRAINTS:
            raise PassError(
                f"{spec.name}: unknown kind of operand {kind!r}",
                values={"operands": " ".join(spec.operands), "results": " ".join(spec.results)},
                hint=f"kinds are {', '.join(CONSTRAINTS)}; operands are name:kind, or name:kind* for any number",
            )
    if not callable(lower):
        raise PassError(
            f"{spec.name} needs a rule that lowers it",
            values={"lower": lower},
            hint="lower=rule with `def rule(op, rewriter)`, which gives the values for the results of op",
        )
    found = USER_OPS[spec.name] = UserOp(spec, lower, next(_count))
    return found


_count = itertools.count(1)


def version(names: Set[str]) -> int:
    """A number that changes with the rules of users by which a program is lowered; 0 where none of its operations, of
    these `names`, is a user's."""
    used = any(name in names for name in list(USER_OPS))
    return max(item.number for item in list(USER_OPS.values())) if used else 0


def dialects() -> frozenset[str]:
    """The dialects of users' operations."""
    return frozenset(name.partition(".")[0] for name in list(USER_OPS))
