"""Keys: of a plan, before anything is traced, and of a traced program.

Both hold all that a compilation depends on beside its program: the compiler, its tools and settings, the machine, the
options, the signature of the call, the passes, and what users have registered.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any, Final

from tilewright.arguments.aggregates import is_aggregate, members
from tilewright.arguments.binding import on_host
from tilewright.arguments.objects import adapted, is_jit_argument
from tilewright.base import patched, settings
from tilewright.base.signature import Param, TupleParam
from tilewright.compiler.cache import toolkit
from tilewright.compiler.cache.owners import owner_of_class, owner_of_function
from tilewright.compiler.cache.reach import Reach, is_atom
from tilewright.compiler.cache.unprovable import UnprovableError
from tilewright.compiler.plan import Plan
from tilewright.ir.user_ops import UserOp
from tilewright.targets.target import back_end_of

REGISTRIES: Final = (
    ("tilewright.arguments.objects", "_adapters"),
    ("tilewright.ir.user_ops", "USER_OPS"),
    ("tilewright.lib.epilogue.functions", "FUNCTIONS"),
    ("tilewright.lib.epilogue.lowering.functions", "FUNCTIONS"),
    ("tilewright.lib.epilogue.passes.pass_manager", "PASSES"),
)
"""Tables that users add to and that code is made by: the module and the name of each."""


def plan_reach(made: Plan, compiler: str) -> Reach:
    """All that a compilation depends on, as far as it is known before tracing; `compiler` is the digest of our sources.

    Raises:
        UnprovableError: only tracing can tell.
    """
    reach = _common(made, compiler)
    reach.note("function")
    reach.value(made.function)
    reach.note("symbol", made.function.symbol_name, str(made.call.bound), str(on_host(made.call)))
    for name, value in made.call.constants.items():
        reach.note("constant", name)
        reach.value(value)
    params = {param.name: param for param in made.call.signature.params}
    for name, value in made.call.runtime.items():
        _runtime(reach, params.get(name), value)
    return reach


def program_reach(made: Plan, compiler: str, program: bytes) -> Reach:
    """All that the code of a traced program depends on: the program as bytecode, with its source lines, since the same
    kernel in another file, or moved in its own, has errors elsewhere; and what every compilation depends on.

    Raises:
        UnprovableError: the passes of the user that will run over it may do what no digest covers.
    """
    reach = _common(made, compiler)
    reach.note("program", program)
    return reach


def tools_key(made: Plan) -> str:
    """The tools that make code, by version; "" where some are not installed, and could not compile anything."""
    with settings.scope(toolkit=made.toolkit):
        files = back_end_of(made.target).tool_files(made.options)
    found = toolkit.tools(files)
    if None in found.values():
        return ""
    return hashlib.blake2b(repr(sorted(found.items())).encode(), digest_size=8).hexdigest()


def _common(made: Plan, compiler: str) -> Reach:
    reach = Reach()
    back_end = back_end_of(made.target)
    reach.note("compiler", compiler, sys.version, toolkit.machine(), made.target, made.arch, made.toolkit)
    reach.note(repr(made.options.code_key()), repr(made.code_settings), repr(settings.get("verify")))
    reach.note(repr(made.call.signature))
    for path in back_end.files_read(made.options):
        reach.note(str(path), _content(path))
    reach.note(type(back_end).__qualname__)
    reach.value(type(back_end))
    reach.note("passes", str(made.pipeline.verify))
    for item in made.pipeline:
        reach.note(str(item))
        if owner_of_class(type(item)) == "ours":  # what else it holds it found in the program
            values = getattr(item, "values", None)
            if made.function.pipeline is None and isinstance(values, dict) and all(map(is_atom, values.values())):
                reach.note(repr(values))  # of an object that this plan alone has: it need not be watched
            else:
                reach.value(values)
        else:
            reach.value(item)
    _registered(reach)
    reach.watch.entry(patched.STATE, "changes")
    return reach


def _content(path: Any) -> bytes:
    try:
        return hashlib.blake2b(path.read_bytes()).digest()
    except OSError as error:
        raise UnprovableError(f"{path} cannot be read") from error


def _registered(reach: Reach) -> None:
    """What users have put into our tables and classes."""
    for module, name in REGISTRIES:
        table: dict[Any, Any] = vars(sys.modules[module])[name] if module in sys.modules else {}
        reach.watch.mapping(table)
        for key, value in table.items():
            if from_user(value):
                reach.note("registered", module)
                reach.value(key)
                reach.value(value)
    for cls, name, function in toolkit.patched_classes():
        reach.note("patched", cls, name)
        reach.value(function)


def from_user(value: Any) -> bool:
    """Whether an entry of a table, or a function or class that it holds, is a user's."""
    if isinstance(value, FunctionType):
        return owner_of_function(value) == "user"
    if isinstance(value, type):
        return owner_of_class(value) == "user"
    return isinstance(value, UserOp) or any(map(from_user, getattr(value, "__dict__", {}).values()))


def _runtime(reach: Reach, param: Param | None, value: Any) -> None:
    """An argument of run time: its parameter says all, but of an object that is passed member by member."""
    if param is not None and not isinstance(param, TupleParam):
        return
    if is_jit_argument(value) or not is_aggregate(value):
        reach.value(value)
        return
    reach.note("aggregate")
    reach.value(type(value))
    params = {item.name: item for item in param.items} if isinstance(param, TupleParam) else {}
    passed = set()
    for member in members(param.name if param else "", value, None):
        passed.add(member.key)
        item = params.get(member.name)
        reach.note("member", member.name)
        if item is None:
            reach.value(adapted(member.value))
        else:
            _runtime(reach, item, adapted(member.value))
    for name, kept in _others(value, passed):
        reach.note("attribute", name)
        reach.value(kept)


def _others(value: Any, passed: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Attributes of an aggregate beside its members, which its copy has in traced code."""
    known = set(passed)
    return ((name, item) for name, item in sorted(getattr(value, "__dict__", {}).items()) if name not in known)
