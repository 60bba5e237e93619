"""What threads of a warp do together: votes, shuffles, folds, the choice of one of them; registers of a warpgroup."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.experimental.enums import GridDepAction, ReductionKind, SetMaxRegisterAction, Shfl, VoteSync
from tilewright.lang import arch
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Int32, Numeric, Uint32, as_numeric
from tilewright.lang.nvgpu import threads, warpgroup
from tilewright.lang.nvgpu.instructions import instruction, instruction_words
from tilewright.lang.nvgpu.redux import warp_redux_sync

_VOTES = {
    VoteSync.ANY: arch.vote_any_sync, VoteSync.ALL: arch.vote_all_sync, VoteSync.UNI: arch.vote_uni_sync,
    VoteSync.BALLOT: arch.vote_ballot_sync,
}  # fmt: skip


def elect_sync(membermask: Any = None, *, loc: object = None, ip: object = None) -> Boolean:
    """True in one thread of those in `membermask`, by default of the whole warp, who come here together."""
    if membermask is None:
        return threads.elected()
    text = "{ .reg .pred p; elect.sync _|p, $1; selp.b32 $0, 1, 0, p; }"
    return Boolean(instruction(text, (_bits(membermask),), result=Int32, feature="elect.sync") != 0)


def redux_sync(
    value: Any,
    kind: ReductionKind,
    mask: Any = arch.FULL_MASK,
    *,
    abs: bool = False,
    nan: bool = False,
    loc: object = None,
    ip: object = None,
) -> Numeric:
    """`value` of all lanes of the mask folded by `kind`, as `cute.arch.warp_redux_sync`."""
    return warp_redux_sync(value, kind.value, mask, abs=abs, nan=nan)


def vote_sync(mask: Any, pred: Any, kind: VoteSync, *, loc: object = None, ip: object = None) -> Any:
    """Whether the predicate holds in a lane of the mask (ANY), in all (ALL), in all or none (UNI); or those in which it
    does, as bits (BALLOT)."""
    return _VOTES[kind](pred, mask)


def shfl_sync(
    thread_mask: Any,
    val: Any,
    offset: Any,
    mask_and_clamp: Any,
    kind: Shfl,
    *,
    return_value_and_is_valid: bool = False,
    loc: object = None,
    ip: object = None,
) -> Any:
    """The value of another lane: of lane `offset` (IDX), of the one that is `offset` before (UP) or after (DOWN), or of
    the one that differs in the bits of `offset` (BFLY). `mask_and_clamp` divides the warp (PTX ISA, shfl.sync).

    With `return_value_and_is_valid` it gives the value, and whether there is such a lane; else its own value stands in.

    Raises:
        CompileError: the lane's validity is asked for of a value that has not 32 bits.
    """
    if not return_value_and_is_valid and isinstance(mask_and_clamp, int):
        return arch.shuffle_sync_op(val, offset, thread_mask, mask_and_clamp, kind.value)
    number = as_numeric(val)
    if number.width != 32:
        raise CompileError(
            f"shfl_sync of {type(number)} with a clamp of run time or its validity",
            location=user_location(),
            hint="it takes 32 bits: shuffle the halves of a longer number",
        )
    text = f"{{ .reg .pred p; shfl.sync.{kind.value}.b32 $0|p, $2, $3, $4, $5; selp.b32 $1, 1, 0, p; }}"
    given = (number.bitcast(Uint32), Int32(as_numeric(offset)), _bits(mask_and_clamp), _bits(thread_mask))
    word, valid = instruction_words(text, given, 2)
    value = word.bitcast(type(number))
    return (value, Boolean(valid != 0)) if return_value_and_is_valid else value


def _bits(mask: Any) -> Uint32:
    return Uint32(mask & 0xFFFFFFFF) if isinstance(mask, int) else Uint32(as_numeric(mask))


def griddepcontrol(action: GridDepAction, *, loc: object = None, ip: object = None) -> None:
    """Wait for the grids that this one depends on, or let those start that depend on it."""
    if action is GridDepAction.WAIT:
        threads.griddepcontrol_wait()
    else:
        threads.griddepcontrol_launch_dependents()


def setmaxregister(count: int, action: SetMaxRegisterAction, *, loc: object = None, ip: object = None) -> None:
    """Give registers of the warpgroup back, or take them, until each thread has `count`."""
    if action is SetMaxRegisterAction.DECREASE:
        warpgroup.setmaxregister_decrease(count)
    else:
        warpgroup.setmaxregister_increase(count)


def exit(*, loc: object = None, ip: object = None) -> None:
    """End this thread."""
    instruction("exit;")
