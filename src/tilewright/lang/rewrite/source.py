"""Finding the source of a function that was imported, and making sure that it is still the one in the file."""

from __future__ import annotations
import __future__

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.lang.rewrite import code_equality, interactive_source, names, syntax
from tilewright.lang.rewrite.parse import parse

_NO_SOURCE_HINT = (
    "put the function into a file or notebook cell, keep the text that is given to exec in a variable, give a program "
    "to python as a file or by `-c` (what came through a pipe is gone), or compile the function with preprocess=False"
)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_OUTER, _INNER = "__tilewright_outer__", "__tilewright_inner__"
OUTER = f"{_OUTER}.<locals>.{_INNER}"  # where qualified names of isolated code start
_FUTURE_FLAGS = 0
for _feature in __future__.all_feature_names:
    _FUTURE_FLAGS |= getattr(__future__, _feature).compiler_flag


@dataclass(frozen=True)
class Source:
    """The lines of a file as they were when the function was decorated; `wrapped` those of a function that it wraps."""

    file: str
    lines: list[str]
    wrapped: Source | None = None


@dataclass(frozen=True)
class Definition:
    """A function of a parsed file: its first line (decorators included), last line, indentation, innermost class."""

    node: Function
    first: int
    last: int
    class_name: str | None


@dataclass(frozen=True)
class _Parsed:
    lines: list[str]
    definitions: dict[tuple[str, int], list[Definition]]
    imported: tuple[str, ...]  # names that the module imports: calls of their attributes compile differently


_parsed: dict[str, _Parsed] = {}


def capture(fn: FunctionType) -> Source:
    """The source of `fn` as it is now; call it when the function is decorated, before the file can change."""
    file = fn.__code__.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file, fn.__globals__)
    shared_name = file == "<string>"  # of many texts
    if not lines or (shared_name and not interactive_source.gives("".join(lines), fn.__code__)):
        lines = interactive_source.lines_of(fn.__code__) or lines
    wrapped = wrapped_by(fn)
    return Source(file, lines, None if wrapped is None else capture(wrapped))


def wrapped_by(fn: FunctionType) -> FunctionType | None:
    """The function that `fn`, which another decorator made by `functools.wraps`, calls as a variable of its own."""
    wrapped = getattr(fn, "__wrapped__", None)
    if not isinstance(wrapped, FunctionType):
        return None
    return wrapped if any(holds(cell, wrapped) for cell in fn.__closure__ or ()) else None


def holds(cell: CellType, value: object) -> bool:
    """True when the cell holds that very object."""
    try:
        return cell.cell_contents is value
    except ValueError:  # it has no value yet
        return False


def find(fn: FunctionType, source: Source) -> ast.FunctionDef:
    """A fresh tree of the definition of `fn`, without decorators, defaults and annotations.

    Raises CompileError where the source is missing or is not what was imported.
    """
    code = fn.__code__
    if not source.lines:
        raise CompileError(
            f"the source of `{fn.__name__}` is not available",
            values={"file": source.file},
            hint=_NO_SOURCE_HINT,
        )
    parsed = _parsed_file(source)
    for definition in _definitions(source, parsed, code):
        tree = names.mangle(_isolated(source, definition), definition.class_name)
        if _same(code, compile_inner(tree, code, (), parsed.imported)):
            return tree
    raise CompileError(
        f"the source of `{fn.__name__}` is not the one that was imported",
        location=SourceLocation(source.file, code.co_firstlineno),
        values={"file": source.file},
        hint="the file was edited after the import: import it again",
    )


def _parsed_file(source: Source) -> _Parsed:
    parsed = _parsed.get(source.file)
    if parsed is None or (parsed.lines is not source.lines and parsed.lines != source.lines):
        parsed = _parsed[source.file] = _parse(source)
    return parsed


def _definitions(source: Source, parsed: _Parsed, code: CodeType) -> list[Definition]:
    if code.co_name == "<lambda>":
        return _lambdas(source, code.co_firstlineno)
    return parsed.definitions.get((code.co_name, code.co_firstlineno), [])


def _parse(source: Source) -> _Parsed:
    try:
        tree = parse("".join(source.lines), source.file)
    except SyntaxError as error:
        raise CompileError(
            f"{source.file} can no longer be parsed",
            location=SourceLocation(source.file, error.lineno or 1),
            values={"reason": error.msg},
            hint="the file was edited after the import: import it again",
        ) from error
    definitions: dict[tuple[str, int], list[Definition]] = {}
    for definition in _walk(tree, None):
        definitions.setdefault((definition.node.name, definition.first), []).append(definition)  # type: ignore[union-attr]
    return _Parsed(source.lines, definitions, tuple(sorted(_imports(tree))))


def _imports(node: ast.AST) -> Iterator[str]:
    for name in _BLOCKS:
        for child in getattr(node, name, ()):
            if isinstance(child, ast.Import | ast.ImportFrom):
                yield from names.summary(child).bound - {"*"}
            elif not isinstance(child, names.SCOPES):
                yield from _imports(child)


def _walk(node: ast.AST, class_name: str | None) -> Iterator[Definition]:
    """The functions among the statements inside `node`."""
    for name in _BLOCKS:
        for child in getattr(node, name, ()):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield _definition(child, class_name)
            yield from _walk(child, child.name if isinstance(child, ast.ClassDef) else class_name)


def _definition(node: Function, class_name: str | None) -> Definition:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    return Definition(node, first, node.end_lineno or node.lineno, class_name)


def _lambdas(source: Source, line: int) -> list[Definition]:
    tree = parse("".join(source.lines), source.file)
    return [_definition(node, None) for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == line]


def _isolated(source: Source, definition: Definition) -> ast.FunctionDef:
    """The definition parsed again by itself at its own lines and columns: a tree that may be changed."""
    node = definition.node
    if isinstance(node, ast.Lambda):
        return _lambda_as_function(source, node)
    lines = source.lines[definition.first - 1 : definition.last]
    indented = lines[0][:1].isspace()
    padding = "\n" * (definition.first - 1 - indented) + ("if 1:\n" if indented else "")
    statement = parse(padding + "".join(lines)).body[0]
    found = statement.body[0] if indented and isinstance(statement, ast.If) else statement
    if not isinstance(found, ast.FunctionDef):
        raise CompileError(
            f"`{definition.node.name}` is not a plain function",  # type: ignore[union-attr]
            location=SourceLocation(source.file, definition.first),
            hint="async functions can't be compiled",
        )
    found.decorator_list = []
    found.returns = None
    _strip_arguments(found.args)
    return found


def _lambda_as_function(source: Source, node: ast.Lambda) -> ast.FunctionDef:
    module = parse("".join(source.lines))
    copy = next(
        found
        for found in ast.walk(module)
        if isinstance(found, ast.Lambda) and (found.lineno, found.col_offset) == (node.lineno, node.col_offset)
    )
    body: list[ast.stmt] = [ast.copy_location(ast.Return(copy.body), copy.body)]
    function = syntax.function("<lambda>", copy.args, body)
    _strip_arguments(function.args)
    return ast.fix_missing_locations(ast.copy_location(function, node))


def _strip_arguments(arguments: ast.arguments) -> None:
    """Defaults and annotations stay with the function object; the code needs neither."""
    arguments.defaults = []
    arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
    for argument in (*names.arguments(arguments),):
        argument.annotation = None


def compile_inner(
    tree: ast.FunctionDef, like: CodeType, extra: tuple[str, ...], imported: tuple[str, ...] = ()
) -> CodeType:
    """The code object of function `tree`, its free names being those of `like` and `extra`.

    The function gets a reserved name, for its own may be a global or a free variable that it calls.
    """
    tree.name = _INNER
    outer = syntax.function(_OUTER, names.parameters((*extra, *like.co_freevars)), [tree])
    syntax.at(outer, tree)
    flags = like.co_flags & _FUTURE_FLAGS
    imports: list[ast.stmt] = [ast.Import([ast.alias(name)]) for name in imported]
    for statement in imports:
        syntax.at(statement, tree)
    module = compile(ast.Module([*imports, outer], []), like.co_filename, "exec", flags=flags, dont_inherit=True)
    outer_code = next(const for const in module.co_consts if isinstance(const, CodeType))
    return next(const for const in outer_code.co_consts if isinstance(const, CodeType))


def _same(imported: CodeType, found: CodeType) -> bool:
    return code_equality.same(imported, found) or _same_but_for_asserts(imported, found)


def _same_but_for_asserts(imported: CodeType, found: CodeType) -> bool:
    """True when the two may differ by rewritten `assert` statements alone, as pytest makes them."""
    used = [*imported.co_names, *(name for inner in code_equality.inside(imported) for name in inner.co_names)]
    if not any(name.startswith("@py") for name in used):
        return False
    arguments = imported.co_varnames[: imported.co_argcount + imported.co_kwonlyargcount]
    if found.co_varnames[: found.co_argcount + found.co_kwonlyargcount] != arguments:
        return False
    return set(found.co_names) <= set(imported.co_names) and set(found.co_freevars) <= set(imported.co_freevars)
