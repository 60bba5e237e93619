"""PTX text to a `Module`: declarations, functions and instructions, with scopes resolved.

Grammar: PTX ISA 9.0, chapters 4, 5, 10 and 11. Debug sections are skipped; a construct that is not known
raises an `EmulationError` which shows its line.
"""

from __future__ import annotations

import re
import struct

from tilewright.base.errors import EmulationError
from tilewright.base.escaped_names import from_octal
from tilewright.targets.emu.ptx.ir import (
    WIDTH,
    Function,
    Imm,
    Instruction,
    Mem,
    Module,
    Neg,
    Operand,
    Pair,
    Part,
    Place,
    Reg,
    Sink,
    Special,
    Sym,
    Variable,
    Vec,
)
from tilewright.targets.emu.ptx.lexer import Source, Token, parse_int

_SPACES = {".global", ".const", ".shared", ".local", ".param"}
_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_TUNING = {
    ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".reqnctapercluster", ".maxclusterrank",
    ".explicitcluster", ".blocksareclusters", ".noreturn", ".abi_preserve", ".abi_preserve_control",
}  # fmt: skip
_NUMBERED = re.compile(r"(.*?)(\d+)\Z", re.DOTALL)
_PIN = re.compile(r"^[ \t]*// pin (?P<kind>\S+ .+) :(?P<operands>[ \w%$,]*)$", re.MULTILINE)
"""A comment by which a debug build says what registers hold the value of a Python variable."""
_UNWRITTEN = re.compile(r"// unwritten \d+ (%\w+)")
_UNWRITTEN_RANGE = re.compile(r"// unwritten (%\w+)<(\d+)>")
_MAX_BYTES = 1 << 32
_MAX_DEPTH = 200


class _Scope:
    """Names declared between two braces."""

    def __init__(self, serial: int, parent: _Scope | None) -> None:
        self.serial = serial
        self.parent = parent
        self.registers: dict[str, str] = {}
        self.families: dict[str, tuple[str, int]] = {}
        self.variables: dict[str, str] = {}
        self.labels: dict[str, str] = {}

    def chain(self) -> list[_Scope]:
        scopes: list[_Scope] = []
        scope: _Scope | None = self
        while scope is not None:
            scopes.append(scope)
            scope = scope.parent
        return scopes

    def unique(self, name: str) -> str:
        return name if self.serial == 0 else f"{name}@{self.serial}"

    def register(self, name: str) -> Reg | None:
        kind = self.registers.get(name)
        if kind is None and self.families:
            numbered = _NUMBERED.match(name)
            if numbered is not None:
                family = self.families.get(numbered[1])
                if family is not None and int(numbered[2]) < family[1]:
                    kind = self.registers[name] = family[0]
        return None if kind is None else Reg(self.unique(name), kind)


_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)


class Parser:
    """One pass over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.source = Source(text)
        self.tokens = self.source.tokens
        self.at = 0
        self.pins = list(_PIN.finditer(text))[::-1]
        self.module = Module()
        # `.file` may come after the `.loc`s that use it; LLVM writes it at the end.
        self.module.files.update((int(number), from_octal(name)) for number, name in _FILE.findall(text))

    # Tokens.

    def fail(self, message: str, token: Token | None = None, hint: str | None = None) -> EmulationError:
        return self.source.error(message, (token or self.tokens[self.at]).start, hint)

    def peek(self) -> str:
        return self.tokens[self.at].text

    def next(self) -> Token:
        token = self.tokens[self.at]
        if token.kind == "end":
            raise self.fail("the text ends inside a statement", hint="is the PTX truncated?")
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        if self.tokens[self.at].text == text and self.tokens[self.at].kind != "string":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        token = self.next()
        if token.text != text:
            raise self.fail(f"expected {text!r}, found {token.text!r}", token)
        return token

    def word(self) -> str:
        token = self.next()
        if token.kind != "word":
            raise self.fail(f"expected a name, found {token.text!r}", token)
        return token.text

    def integer(self) -> int:
        negative = self.accept("-")
        token = self.next()
        if token.kind != "int":
            raise self.fail(f"expected an integer, found {token.text!r}", token)
        value = parse_int(token.text)
        return -value if negative else value

    # The module.

    def parse(self) -> Module:
        # Files may be named after the code that refers to them.
        for number, name in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"\n]*)"', self.source.text, re.MULTILINE):
            self.module.files[int(number)] = from_octal(name)
        while self.tokens[self.at].kind != "end":
            self._directive()
        for alias, target in self.module.aliases.items():
            if target in self.module.functions:
                self.module.functions[alias] = self.module.functions[target]
        return self.module

    def _directive(self) -> None:
        token = self.tokens[self.at]
        text = token.text
        if text == ".version":
            self.at += 1
            self.module.version = self.next().text
        elif text == ".target":
            self.at += 1
            self.module.target = tuple(self._names())
        elif text == ".address_size":
            self.at += 1
            if self.integer() != 64:
                raise self.fail("only 64-bit addresses are emulated", token)
        elif text == ".file":
            self._file()
        elif text == ".section":
            self._skip_section()
        elif text in (".pragma", ".callprototype"):
            self._skip_to(";")
        elif text == ".alias":
            self.at += 1
            alias = self.word()
            self.expect(",")
            self.module.aliases[alias] = self.word()
            self.expect(";")
        elif text in _LINKAGE or text in _SPACES or text in (".entry", ".func", ".attribute"):
            self._declaration()
        elif not self.accept(";"):
            raise self.fail(f"unexpected {text!r} at module level", token)

    def _names(self) -> list[str]:
        names = [self.word()]
        while self.accept(","):
            names.append(self.word())
        return names

    def _file(self) -> None:
        self.expect(".file")
        number = self.integer()
        token = self.next()
        self.module.files[number] = from_octal(token.text.strip('"'))
        while self.accept(","):
            self.integer()

    def _skip_section(self) -> None:
        while not self.accept("{"):
            self.next()
        depth = 1
        while depth:
            text = self.next().text
            depth += (text == "{") - (text == "}")

    def _skip_to(self, text: str) -> None:
        while self.next().text != text:
            pass

    def _declaration(self) -> None:
        linkage: set[str] = set()
        while self.peek() in _LINKAGE:
            linkage.add(self.next().text)
        self._attributes()
        if self.accept(".entry"):
            self._function(entry=True)
        elif self.accept(".func"):
            self._function(entry=False)
        elif self.peek() in _SPACES:
            for variable in self._variables(extern=".extern" in linkage):
                self.module.variables[variable.name] = variable
            self.expect(";")
        else:
            raise self.fail(f"unexpected {self.peek()!r} in a declaration")

    def _attributes(self) -> None:
        while self.accept(".attribute"):
            self.expect("(")
            while not self.accept(")"):
                self.next()

    # Variables.

    def _variables(self, extern: bool = False) -> list[Variable]:
        """One or several variables after a state space; stops before the semicolon."""
        space = self.next().text[1:]
        align, vector, kind = 0, 1, ""
        while not kind:
            token = self.next()
            text = token.text
            self._attributes()
            if text == ".align":
                align = self.integer()
            elif text in (".v2", ".v4", ".v8"):
                vector = int(text[2:])
            elif text == ".ptr" or text in _SPACES:
                pass
            elif text[1:] in WIDTH and text[0] == ".":
                kind = text[1:]
            elif text in (".texref", ".samplerref", ".surfref"):
                raise self.fail(f"{text} variables (textures, samplers, surfaces) are not emulated", token)
            else:
                raise self.fail(f"unknown type {text!r} of a variable", token)
        variables = [self._variable(space, kind, align, vector, extern)]
        while space != "param" and self.peek() == "," and self.tokens[self.at + 1].kind == "word":
            self.at += 1
            variables.append(self._variable(space, kind, align, vector, extern))
        return variables

    def _variable(self, space: str, kind: str, align: int, vector: int, extern: bool) -> Variable:
        while self.peek() in (".ptr", ".align") or self.peek() in _SPACES:
            if self.next().text == ".align":
                self.integer()
        token = self.tokens[self.at]
        name = self.word()
        count, unsized = vector, False
        while self.accept("["):
            if self.accept("]"):
                unsized = True
                continue
            count *= self.integer()
            self.expect("]")
        element = max(WIDTH[kind] // 8, 1)
        size = element * count
        if not 0 <= size < _MAX_BYTES:
            raise self.fail(f"variable {name} has an impossible size of {size} bytes", token)
        variable = Variable(space, kind, name, size, align or element * vector, self.source.line(token.start))
        variable.extern = extern
        if self.accept("="):
            self._initialise(variable, element)
        if unsized and variable.init is None:
            variable.size = 0
        elif unsized:
            variable.size = len(variable.init or b"")
        if variable.align & (variable.align - 1) or not variable.align or variable.align > 1 << 20:
            raise self.fail(f"variable {name} has alignment {variable.align}, not a power of two", token)
        return variable

    def _initialise(self, variable: Variable, element: int) -> None:
        data = bytearray()
        self._initial_values(variable, element, data)
        variable.init = bytes(data)  # what follows is zero

    def _initial_values(self, variable: Variable, element: int, data: bytearray) -> None:
        if self.accept("{"):
            while not self.accept("}"):
                self._initial_values(variable, element, data)
                self.accept(",")
            return
        if len(data) > _MAX_BYTES:
            raise self.fail("an initialiser is too long")
        token = self.tokens[self.at]
        if token.kind == "word":
            self._initial_address(variable, element, data)
            return
        value = self._literal()
        data.extend(encode_literal(value, variable.type, element))

    def _initial_address(self, variable: Variable, element: int, data: bytearray) -> None:
        name = self.word()
        if name in ("generic", "mask") and self.accept("("):
            name = self.word()
            offset = self.integer() if self.accept("+") else 0
            self.expect(")")
        else:
            offset = self.integer() if self.accept("+") else 0
        variable.links.append((len(data), Sym(name, offset)))
        data.extend(bytes(element))

    # Functions.

    def _function(self, entry: bool) -> None:
        line = self.source.line(self.tokens[self.at].start)
        returns: list[Variable] = []
        self._attributes()
        if not entry and self.peek() == "(":
            returns = self._parameters()
        token = self.tokens[self.at]
        name = self.word()
        params = self._parameters() if self.peek() == "(" else []
        function = Function(name, entry, params, returns, line)
        while self.peek() in _TUNING:
            directive = self.next().text[1:]
            numbers = []
            while self.tokens[self.at].kind == "int":
                numbers.append(self.integer())
                self.accept(",")
            function.directives[directive] = tuple(numbers)
        while self.peek() == ".pragma":
            self._skip_to(";")
        if not self.accept(";"):
            if self.peek() != "{":
                raise self.fail(f"expected the body of {name}, found {self.peek()!r}")
            start = self.tokens[self.at].start
            FunctionParser(self, function).parse()
            function.declared_only = False
            function.unwritten = frozenset(_unwritten(self.source.text, start, self.tokens[self.at - 1].start))
        known = self.module.functions.get(name)
        if known is not None and not known.declared_only and not function.declared_only:
            raise self.fail(f"function {name} is defined twice", token)
        if known is None or known.declared_only:
            self.module.functions[name] = function

    def _parameters(self) -> list[Variable]:
        self.expect("(")
        params: list[Variable] = []
        while not self.accept(")"):
            token = self.tokens[self.at]
            if token.text == ".reg":
                self.at += 1
                kind = self.word()[1:]
                if kind not in WIDTH:
                    raise self.fail(f"unknown type .{kind} of a parameter", token)
                name = self.word()
                params.append(Variable("reg", kind, name, max(WIDTH[kind] // 8, 1), 1, self.source.line(token.start)))
            elif token.text == ".param":
                params.extend(self._variables())
            else:
                raise self.fail(f"expected a parameter, found {token.text!r}", token)
            self.accept(",")
        return params

    # Literals.

    def _literal(self) -> Imm:
        negative = False
        while self.peek() in ("-", "+", "~"):
            negative ^= self.next().text == "-"
        token = self.next()
        if token.kind == "int":
            value = parse_int(token.text)
            return Imm(-value if negative else value)
        if token.kind == "float":
            literal = float_literal(token.text)
            return Imm(-literal.value, literal.bits) if negative else literal
        raise self.fail(f"expected a number, found {token.text!r}", token)


def _unwritten(text: str, start: int, end: int) -> list[str]:
    """The registers that comments in a part of a text say to be read unwritten, one by one or as `%name<count>`."""
    ranges = _UNWRITTEN_RANGE.findall(text, start, end)
    return _UNWRITTEN.findall(text, start, end) + [f"{name}{n}" for name, count in ranges for n in range(int(count))]


def float_literal(text: str) -> Imm:
    """`0f`, `0d` or decimal. The value of `0f` is kept as its 32 bits, so that NaN payloads survive."""
    if text[:2] in ("0f", "0F"):
        return Imm(int(text[2:], 16), 32)
    if text[:2] in ("0d", "0D"):
        return Imm(int(text[2:], 16), 64)
    return Imm(float(text))


def literal_float(value: Imm) -> float:
    """The number that a literal stands for."""
    if value.bits == 32:
        return float(struct.unpack("<f", struct.pack("<I", int(value.value) & 0xFFFFFFFF))[0])
    if value.bits == 64:
        return float(struct.unpack("<d", struct.pack("<Q", int(value.value) & (1 << 64) - 1))[0])
    return float(value.value)


def encode_literal(value: Imm, kind: str, element: int) -> bytes:
    """The bytes of a literal that initialises a variable of type `kind`."""
    if value.bits and value.bits == element * 8:
        return (int(value.value) & (1 << value.bits) - 1).to_bytes(element, "little")
    if kind in ("f32", "f64"):
        number = literal_float(value)
        return struct.pack("<f" if kind == "f32" else "<d", number)
    return (int(value.value) & (1 << 8 * element) - 1).to_bytes(element, "little")


class FunctionParser:
    """The body of one function: nested scopes, labels and instructions."""

    def __init__(self, parser: Parser, function: Function) -> None:
        self.p = parser
        self.function = function
        self.serial = 0
        self.scope = _Scope(0, None)
        self.place: Place | None = None
        self.pending: list[tuple[int, _Scope]] = []
        self.waiting: list[tuple[list[str], _Scope]] = []
        for variable in (*function.params, *function.returns):
            if variable.space == "reg":
                self.scope.registers[variable.name] = variable.type
            else:
                self.scope.variables[variable.name] = variable.name
                function.variables[variable.name] = variable

    def parse(self) -> None:
        self._block(0)
        self._resolve()

    def _block(self, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise self.p.fail("scopes are nested too deeply")
        self.p.expect("{")
        while True:
            self._pins()
            if self.p.accept("}"):
                break
            if self.p.peek() == "{":
                self.serial += 1
                self.scope = _Scope(self.serial, self.scope)
                self._block(depth + 1)
                assert self.scope.parent is not None
                self.scope = self.scope.parent
            else:
                self._statement()

    def _pins(self) -> None:
        """The pins in front of the next token."""
        pins = self.p.pins
        while pins and pins[-1].start() < self.p.tokens[self.p.at].start:
            found = pins.pop()
            names = [name.strip() for name in found["operands"].split(",") if name.strip()]
            operands = tuple(self._pinned(name, found.start("operands")) for name in names)
            text = found[0].strip()
            line = self.p.source.line(found.start("kind"))
            self.function.body.append(Instruction("pin", (), operands, line, text, place=self.place))

    def _pinned(self, name: str, start: int) -> Operand:
        """An operand of a pin."""
        register = next((r for scope in self.scope.chain() if (r := scope.register(name)) is not None), None)
        if register is not None:
            return register
        if name.lstrip("-").isdigit():
            return Imm(int(name))
        raise self.p.source.error(f"a pin names {name}, which is no register", start)

    def _statement(self) -> None:
        p = self.p
        token = p.tokens[p.at]
        text = token.text
        if text == ";":
            p.at += 1
        elif text == "@" or (token.kind == "word" and text[0] not in "."):
            following = p.tokens[p.at + 1].text
            if following == ":" and token.kind == "word":
                self._label()
            else:
                self._instruction()
        elif text == ".reg":
            self._registers()
        elif text in _SPACES:
            self._local_variables()
        elif text == ".loc":
            self._location()
        elif text == ".pragma":
            p._skip_to(";")
        elif text == ".file":
            p._file()
        else:
            raise p.fail(f"unexpected {text!r} in a function")

    def _label(self) -> None:
        p = self.p
        token = p.next()
        name = token.text
        p.expect(":")
        if p.peek() in (".branchtargets", ".calltargets"):
            p.at += 1
            self._table(name)
            p.expect(";")
            return
        if p.peek() == ".callprototype":
            p._skip_to(";")
            self.function.tables[name] = []
            return
        unique = self.scope.unique(name)
        if unique in self.function.labels:
            raise p.fail(f"label {name} is defined twice", token)
        self.scope.labels[name] = unique
        self.function.labels[unique] = len(self.function.body)

    def _table(self, name: str) -> None:
        """A list of branch or call targets; labels are resolved when all are known."""
        labels = self.p._names()
        self.function.tables[self.scope.unique(name)] = labels
        self.scope.labels[name] = self.scope.unique(name)
        self.waiting.append((labels, self.scope))

    def _registers(self) -> None:
        p = self.p
        p.expect(".reg")
        token = p.tokens[p.at]
        kind = p.word()
        if kind in (".v2", ".v4"):
            raise p.fail("vector registers are not emulated", token)
        if kind[1:] not in WIDTH:
            raise p.fail(f"unknown register type {kind}", token)
        while True:
            name = p.word()
            if p.accept("<"):
                count = p.integer()
                p.expect(">")
                self.scope.families[name] = (kind[1:], count)
            else:
                self.scope.registers[name] = kind[1:]
            if not p.accept(","):
                break
        p.expect(";")

    def _local_variables(self) -> None:
        for variable in self.p._variables():
            unique = self.scope.unique(variable.name)
            self.scope.variables[variable.name] = unique
            variable.name = unique
            self.function.variables[unique] = variable
        self.p.expect(";")

    def _location(self) -> None:
        p = self.p
        p.expect(".loc")
        number, line, column = p.integer(), p.integer(), p.integer()
        name, caller = "", None
        while p.accept(","):
            key = p.word()
            if key == "function_name":
                name = p.word()
                if p.accept("+"):
                    p.integer()
            elif key == "inlined_at":
                caller = Place(p.module.files.get(p.integer(), "?"), p.integer(), p.integer())
            else:
                raise p.fail(f"unknown .loc attribute {key!r}")
        if line == 0:
            return
        self.place = Place(p.module.files.get(number, f"file {number}"), line, column, name, caller)

    # Instructions.

    def _instruction(self) -> None:
        p = self.p
        start = p.tokens[p.at].start
        guard, negated = None, False
        if p.accept("@"):
            negated = p.accept("!")
            token = p.tokens[p.at]
            guard = self._find_register(p.word())
            if guard is None or guard.type != "pred":
                raise p.fail(f"guard {token.text!r} is not a predicate register", token)
        words = p.word().split(".")
        groups: list[tuple[Operand, ...]] = []
        operands: list[Operand] = []
        if words[0] == "call":
            self._call_operands(operands, groups)
        elif p.peek() != ";":
            operands.append(self._operand())
            while p.accept(","):
                operands.append(self._operand())
        end = p.expect(";").start
        text = " ".join(p.source.text[start:end].split())
        instruction = Instruction(words[0], tuple(words[1:]), tuple(operands), p.source.line(start), text)
        instruction.guard, instruction.guard_negated = guard, negated
        instruction.place, instruction.groups = self.place, tuple(groups)
        self.pending.append((len(self.function.body), self.scope))
        self.function.body.append(instruction)

    def _call_operands(self, operands: list[Operand], groups: list[tuple[Operand, ...]]) -> None:
        """`(results), callee, (arguments), targets`: groups 0 and 1 are results and arguments."""
        p = self.p
        results: tuple[Operand, ...] = ()
        arguments: tuple[Operand, ...] = ()
        if p.peek() == "(":
            results = self._group()
            p.expect(",")
        operands.append(self._operand())
        while p.accept(","):
            if p.peek() == "(":
                arguments = self._group()
            else:
                operands.append(self._operand())
        groups += [results, arguments]

    def _group(self) -> tuple[Operand, ...]:
        p = self.p
        p.expect("(")
        items: list[Operand] = []
        while not p.accept(")"):
            items.append(self._operand())
            p.accept(",")
        return tuple(items)

    def _operand(self, depth: int = 0) -> Operand:
        p = self.p
        token = p.tokens[p.at]
        if depth > 4:
            raise p.fail("operands are nested too deeply", token)
        if token.text == "[":
            return self._address()
        if token.text == "{":
            items = self._braces(depth)
            return items[0] if len(items) == 1 else Vec(items)
        if token.text == "!":
            p.at += 1
            inner = self._operand(depth + 1)
            if not isinstance(inner, Reg):
                raise p.fail("only a predicate register can be negated", token)
            return Neg(inner)
        if token.text == "-" and p.tokens[p.at + 1].kind == "word":
            p.at += 1
            negated = self._operand(depth + 1)
            if isinstance(negated, Reg):
                return Part(negated, "", True)
            if isinstance(negated, Part):
                return Part(negated.reg, negated.selector, True)
            raise p.fail("only a register can be negated", token)
        if token.kind in ("int", "float") or token.text in ("-", "+", "~"):
            return p._literal()
        if token.kind == "string":
            raise p.fail("unexpected string", token)
        operand = self._named(p.word(), token)
        if p.accept("|"):
            return Pair(operand, self._operand(depth + 1))
        if p.peek() in ("+", "-") and isinstance(operand, Sym):
            sign = -1 if p.next().text == "-" else 1
            return Sym(operand.name, operand.offset + sign * p.integer())
        return operand

    def _braces(self, depth: int) -> tuple[Operand, ...]:
        p = self.p
        p.expect("{")
        items: list[Operand] = []
        while not p.accept("}"):
            items.append(self._operand(depth + 1))
            p.accept(",")
        return tuple(items)

    def _address(self) -> Mem:
        p = self.p
        p.expect("[")
        base = self._operand(1)
        offset = 0
        if isinstance(base, Sym):
            base, offset = Sym(base.name), base.offset
        while p.peek() in ("+", "-"):
            sign = -1 if p.next().text == "-" else 1
            offset += sign * p.integer()
        coords: list[Operand] = []
        while p.accept(","):
            coords.append(self._operand(1))
        p.expect("]")
        p.accept(".unified")  # a promise about unified memory, without effect here
        return Mem(base, offset, tuple(coords))

    def _find_register(self, name: str) -> Reg | None:
        for scope in self.scope.chain():
            found = scope.register(name)
            if found is not None:
                return found
        return None

    def _named(self, name: str, token: Token) -> Operand:
        if name == "_":
            return Sink()
        register = self._find_register(name)
        if register is not None:
            return register
        head, _, selector = name.rpartition(".")
        register = self._find_register(head) if head else None
        if register is not None:
            return Part(register, selector)
        if name[0] == "%":
            return Special(name[1:])
        if name == "WARP_SZ":
            return Imm(32)
        for scope in self.scope.chain():
            unique = scope.variables.get(name)
            if unique is not None:
                return Sym(unique)
        if name[0] == ".":
            raise self.p.fail(f"unexpected {name!r} among operands", token)
        return Sym(name)

    def _resolve(self) -> None:
        """Labels used before their definition: give branches the unique names."""
        for labels, scope in self.waiting:
            labels[:] = [self._label_name(name, scope) for name in labels]
        for index, scope in self.pending:
            instruction = self.function.body[index]
            if instruction.op not in ("bra", "brx"):
                continue
            instruction.ops = tuple(
                Sym(self._label_name(op.name, scope)) if isinstance(op, Sym) else op for op in instruction.ops
            )

    def _label_name(self, name: str, scope: _Scope) -> str:
        for candidate in scope.chain():
            if name in candidate.labels:
                return candidate.labels[name]
        return name


def parse(text: str) -> Module:
    """Parse PTX text.

    Raises:
        EmulationError: the text is not PTX that is known here; the message has the line.
    """
    try:
        return Parser(text).parse()
    except RecursionError:
        raise EmulationError("PTX text is nested too deeply") from None
