"""MLIR contexts: one per compilation, with the `cute` dialect loaded and caches beside it.

A context costs 4 to 10 ms, so those that are free wait for the next compilation of the same thread. Multithreading
is off: Python verifiers and MLIR's threads deadlock (llvm issue 215781).

All state of a compilation under way hangs on its session. An interrupt ends it anywhere, even where a `with` block is
left: then its session is never used again, and `interrupts.reraise_lost(work, sessions())` takes it off the stack.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.base import interrupts
from tilewright.base.errors import CompileError
from tilewright.base.interrupts import outside_of
from tilewright.ir import mlir, walk
from tilewright.ir.dialect import OpSpec, irdl_text, irdl_text_of
from tilewright.ir.dialect_modules import import_nothing_for
from tilewright.ir.forking import compiling
from tilewright.ir.user_ops import USER_OPS

if TYPE_CHECKING:
    from mlir import ir

T = TypeVar("T")
_REUSE_LIMIT = 256  # an MLIR context never frees its attributes; a fresh one bounds the growth


class Session:
    """An MLIR context and what is cached with it.

    `locate` gives the location of operations built now: the user's line while tracing, the location of the operation
    being rewritten inside a pass.
    """

    def __init__(self) -> None:
        walk.install()
        self.begin()
        self.context: ir.Context = mlir.ir.Context()
        self.context.enable_multithreading(False)
        # MLIR ends the process where an operation of no dialect is created, unless it allows them; they are refused
        # by `walk.unknown_operation` instead.
        self.context.allow_unregistered_dialects = True
        self.cache: dict[Any, Any] = {}
        self.uses = 0
        self.holders: list[weakref.ref[Any]] = []
        import_nothing_for("cute")
        self.user_ops: dict[str, OpSpec] = {}
        with self.context:
            mlir.irdl.load_dialects(mlir.ir.Module.parse(irdl_text()))
            self.unknown: ir.Location = mlir.ir.Location.unknown()
        self.locate: Callable[[], ir.Location] = lambda: self.unknown

    def take_user_ops(self) -> bool:
        """Load the users' operations that this context does not know yet; False where it knows another of the name."""
        new = [item.spec for name, item in list(USER_OPS.items()) if self.user_ops.get(name) != item.spec]
        if any(spec.name in self.user_ops for spec in new):
            return False
        if new:
            for spec in new:
                import_nothing_for(spec.name.partition(".")[0])
            with self.context:
                mlir.irdl.load_dialects(mlir.ir.Module.parse(irdl_text_of(new)))
            self.user_ops.update({spec.name: spec for spec in new})
        return True

    def begin(self) -> None:
        """Forget the compilation before."""
        self.pure: dict[Any, Any] = {}  # pure operations of this compilation, see build.cute
        # True while operations are only added at the ends of blocks, so that an earlier one dominates a later use.
        self.appending = True
        self.traces: list[Any] = []  # the programs under construction, see lang/trace.py
        self.bodies: list[list[Any]] = [[]]  # see lang/control/aliases.py
        self.communicates = False  # collectives were built, see ir/expansions.py
        # Names of all operations that were in the program so far; only while `named`: see `names_of`.
        self.names: set[str] = set()
        self.named = False
        self.checks_erasing = False  # see ir/erasing.py
        self.told_of_erasing: Callable[[Any], None] | None = None

    def cached(self, key: Any, make: Callable[[], Any]) -> Any:
        """The object that `make` built the first time `key` was asked for."""
        found = self.cache.get(key)
        if found is None:
            found = self.cache[key] = make()
        return found


class Stale:
    """What an object holds in place of an MLIR value when the compilation that made the value has ended.

    MLIR has freed the value by then, and ends the process where it is used. Any use of this raises CompileError.
    """

    def __getattr__(self, name: str) -> Any:
        raise CompileError(
            "a value of run time outlived the compilation that it belongs to",
            hint="globals, classes and attributes of `self` keep no values of run time from one compilation to the"
            " next: assign them anew in each, or return the value",
        )


def refuse_stale(operands: Iterable[object]) -> None:
    """Raise where one of them is a value of a compilation that has ended."""
    for operand in operands:
        if isinstance(operand, Stale):
            operand.__getattr__("owner")


def holds_value(holder: Any) -> None:
    """Note that `holder.value` is an MLIR value of this compilation; it becomes `Stale` when the compilation ends."""
    if _idle.active:
        _idle.active[-1].holders.append(weakref.ref(holder))


def _let_go(session: Session) -> None:
    for reference in session.holders:
        holder = reference()
        if holder is not None and not isinstance(holder.value, int | float):
            holder.value = Stale()
    session.holders.clear()


class _Idle(threading.local):
    def __init__(self) -> None:
        self.free: list[Session] = []
        self.active: list[Session] = []


_idle = _Idle()


def _session() -> Session:
    """A session that waits, or a new one, with the operations that users have registered."""
    session = _idle.free.pop() if _idle.free else Session()
    if USER_OPS and not session.take_user_ops():
        session = Session()
        session.take_user_ops()
    return session


class compile_context:
    """Enter a session: the MLIR context is current inside the block and must not be used outside it.

    (No generator: one that an interrupt kept from its end would end late, inside the next compilation.)
    """

    def __enter__(self) -> Session:
        self.session = _session()
        self.session.uses += 1
        self.session.begin()
        _idle.active.append(self.session)
        self.gate = compiling(anew=len(_idle.active) == 1)
        self.gate.__enter__()
        self.session.context.__enter__()
        return self.session

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        session = self.session
        try:
            session.context.__exit__(kind, error, traceback)
        finally:
            if session in _idle.active:
                del _idle.active[_idle.active.index(session) :]
            self.gate.__exit__(None, None, None)
            _let_go(session)
        session.locate = lambda: session.unknown
        if session.uses < _REUSE_LIMIT and (error is None or outside_of(error) is None):
            _idle.free.append(session)


def reraise_lost(work: Callable[[], T]) -> T:
    """`interrupts.reraise_lost` for compilations: one that is interrupted is taken off the stacks, ours and MLIR's."""
    before = _entered()
    try:
        return interrupts.reraise_lost(work, _idle.active)
    except BaseException:
        while _entered() != before and _leave_innermost():
            pass
        raise


def _kinds() -> list[Any]:
    return [mlir.ir.InsertionPoint, mlir.ir.Location, mlir.ir.Context]


def _entered() -> list[int]:
    """What is innermost of each kind that MLIR keeps a stack of; it is not loaded for that."""
    if "mlir.ir" not in sys.modules:
        return [0, 0, 0]
    found = []
    for kind in _kinds():
        try:
            innermost = kind.current
            found.append(0 if innermost is None else id(innermost))
        except ValueError:  # there is none
            found.append(0)
    return found


def _leave_innermost() -> bool:
    for kind in _kinds():
        try:
            innermost = kind.current
            if innermost is not None:
                innermost.__exit__(None, None, None)
                return True
        except (ValueError, RuntimeError):  # there is none, or one of another kind is further in
            continue
    return False


def current() -> Session:
    """The innermost session entered by this thread."""
    if not _idle.active:
        raise CompileError("no compilation is under way", hint="use it inside a @cute.jit or @cute.kernel function")
    return _idle.active[-1]


def user_ops_changed() -> bool:
    """Take operations that were just registered into the compilation under way on this thread; False where it knows
    another one of that name."""
    return all(session.take_user_ops() for session in _idle.active)


def names_of(root: ir.Operation) -> set[str]:
    """The names that operations inside `root` may have: at least those that are there.

    From the end of tracing on the session notes the names that are built, which costs less than to walk the program. It
    does so until others than the project's own passes change it.
    """
    session = current()
    return session.names if session.named else {op.name for op in walk.operations(root)}


def active() -> bool:
    """True inside `compile_context()`."""
    return bool(_idle.active)


@contextmanager
def located(locate: Callable[[], ir.Location]) -> Iterator[None]:
    """Take locations from `locate` inside the block."""
    session = current()
    before, session.locate = session.locate, locate
    try:
        yield
    finally:
        session.locate = before
