"""What a helper of a kernel can read, by kind: sources whose `value()` is 1, and edits that make it 2.

`OTHER` stands for the name of a module beside, which holds `N = 1`; `FILE` for the name of a file that holds `1`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A helper module, and statements that are run in it. `provable`: whether it is found before anything is traced."""

    source: str
    edits: tuple[str, ...]
    provable: bool = True


def _kind(source: str, *edits: str, provable: bool = True) -> Kind:
    return Kind(source, edits, provable)


_OBJECT = "class A: pass\na = A()\na.one = 1\n"

MENDED = {
    "contextmanager": _kind(
        "import contextlib\nN = 1\n@contextlib.contextmanager\ndef given(): yield N\n"
        "def value():\n    with given() as n: return n",
        "N = 2",
    ),
    "single dispatch": _kind(
        "import functools\n@functools.singledispatch\ndef f(x): return 1\ndef value(): return f(0)",
        "f.register(int, lambda x: 2)",
        provable=False,
    ),
    "attribute of a member of an enum": _kind(
        "import enum\nclass E(enum.Enum):\n    A = 1\n    def __init__(self, n): self.extra = n\n"
        "def value(): return E.A.extra",
        "E.A.extra = 2",
        "E.A.__init__.__func__.__code__ = (lambda self, n: setattr(self, 'extra', 2)).__code__; E.A.__init__(1)",
    ),
    "value of a member of an enum": _kind(
        "import enum\nclass E(enum.Enum):\n    A = 1\ndef value(): return E.A.value", "E.A._value_ = 2"
    ),
    "class of an object": _kind(
        "class A:\n    def f(self): return 1\na = A()\ndef value(): return a.f()",
        "class B:\n    def f(self): return 2\na.__class__ = B",
    ),
    "attributes replaced at once": _kind(_OBJECT + "def value(): return a.one", "a.__dict__ = {'one': 2}"),
    "attributes of a function replaced": _kind(
        "def f(): pass\nf.n = 1\ndef value(): return f.n", "f.__dict__ = {'n': 2}"
    ),
    "class of a module": _kind(
        "import OTHER\ndef value(): return OTHER.N",
        "class M(type(OTHER)): N = property(lambda self: 2)\nOTHER.__class__ = M",
    ),
    "__getattr__ of a module": _kind(
        "import OTHER\ndef value():\n    try: return OTHER.missing\n    except AttributeError: return 1",
        "OTHER.__getattr__ = lambda name: 2",
        "OTHER.missing = 2",
    ),
    "text of a function": _kind("def value(): return len(f.__doc__)\ndef f(): 'a'", "f.__doc__ = 'ab'"),
    "name of a function": _kind(
        "def value(): return len(f.__name__)\ndef f(): pass", "f.__name__ = 'ab'", "def g2(): pass\nf = g2"
    ),
    "qualified name of a class": _kind(
        "class A: 'a'\ndef value(): return max(len(A.__name__), len(A.__doc__))",
        "A.__name__ = 'AA'",
        "A.__doc__ = 'aa'",
    ),
    "annotations of a class": _kind(
        "class A:\n    x: int\ndef value(): return len(A.__annotations__)", "A.__annotations__['y'] = int"
    ),
    "registered subclass": _kind(
        "import abc\nclass A(abc.ABC): pass\nclass B: pass\ndef value(): return 2 if isinstance(B(), A) else 1",
        "A.register(B)",
    ),
    "subclass registered with an abstract class of Python": _kind(
        "from collections.abc import Sized\nclass B: pass\ndef value(): return 2 if isinstance(B(), Sized) else 1",
        "Sized.register(B)",
        "B.__len__ = lambda self: 1",  # the class of the edit before has the same name and is registered still
    ),
    "registered copy": _kind(
        _OBJECT + "import copy\ndef value(): return copy.copy(a).one",
        "class B: one = 2\nimport copyreg; copyreg.pickle(A, lambda a: (B, ()))",
        "a.one = 2",
    ),
    "another name of getattr": _kind(
        _OBJECT + "read, NAME = getattr, 'one'\ndef value(): return read(a, NAME)", "a.one = 2"
    ),
    "another name of attrgetter": _kind(
        _OBJECT + "a.a = a\nfrom operator import attrgetter as read\ndef value(): return read('a.one')(a)", "a.one = 2"
    ),
    "partial of getattr": _kind(
        _OBJECT + "import functools\nvalue = functools.partial(getattr, a, 'one')", "a.one = 2"
    ),
    "format": _kind(
        _OBJECT + "TEXT = '{a.one}'\ndef value(): return min(int('{0.one}'.format(a)), int(TEXT.format(a=a)))",
        "a.one = 2",
    ),
    "type hints": _kind(
        "import typing\nN = int\ndef f(x: 'N'): pass\ndef value(): return 1 + (typing.get_type_hints(f)['x'] is float)",
        "N = float",
        provable=False,
    ),
    "module of Python imported late": _kind(
        "def value():\n    import math\n    return math.gcd(1, 1)", "import math; math.gcd = lambda *_: 2"
    ),
}
"""Each of these gave a stale result once, or was compiled again in the next process."""

OTHERS = {
    "partial": _kind(
        "import functools\ndef f(a, b): return a * b\nvalue = functools.partial(f, b=1, a=1)",
        "value = functools.partial(f, b=1, a=2)", "value.keywords['a'] = 2",
    ),
    "wraps": _kind(
        "import functools\ndef times(n):\n  def wrap(f):\n    @functools.wraps(f)\n"
        "    def inner(): return f() * n * inner.k\n    inner.k = 1\n    return inner\n  return wrap\n"
        "@times(1)\ndef value(): return 1",
        "value.__closure__[2].cell_contents = 2", "value.__wrapped__.__code__ = (lambda: 2).__code__", "value.k = 2",
    ),
    "lru_cache": _kind(
        "import functools\nN = 1\n@functools.lru_cache\ndef f(x): return N + x\ndef value(): return f(0)",
        "N = 2; f.cache_clear()", provable=False,
    ),
    "cached_property": _kind(
        "import functools\nclass A:\n  n = 1\n  @functools.cached_property\n  def p(self): return self.n\n"
        "a = A()\ndef value(): return a.p",
        "A.n = 2; vars(a).pop('p', None)", "a.p = 2",
    ),
    "enums": _kind(
        "import enum\nclass E(enum.IntEnum):\n  A = 1\n  B = 2\nNOW, SCALE = E.A, 1\ndef value(): return NOW * SCALE",
        "NOW = E.B", "SCALE = 2",
    ),
    "default_factory": _kind(
        "import dataclasses\nN = [1]\ndef make(): return list(N)\n@dataclasses.dataclass\nclass D:\n"
        "  x: list = dataclasses.field(default_factory=make)\ndef value(): return D().x[0]",
        "N[0] = 2", "make.__code__ = (lambda: [2]).__code__",
    ),
    "__post_init__": _kind(
        "import dataclasses\nN = 1\n@dataclasses.dataclass(frozen=True)\nclass D:\n  x: int = 1\n"
        "  def __post_init__(self): object.__setattr__(self, 'x', N)\ndef value(): return D().x",
        "N = 2", "D.__post_init__ = lambda self: object.__setattr__(self, 'x', 2)",
    ),
    "metaclass": _kind(
        "N = 1\nclass M(type):\n  q = 1\n  p = property(lambda cls: N)\n  def __getitem__(cls, n): return cls.t[n]\n"
        "class A(metaclass=M): t = [1]\ndef value(): return A.p * A.q * A[0]",
        "N = 2", "M.q = 2", "M.p = 2", "A.q = 2", "A.t[0] = 2", "M.__getitem__ = lambda cls, n: 2",
    ),
    "__class_getitem__": _kind(
        "N = 1\nclass A:\n  def __class_getitem__(cls, k): return N * k\ndef value(): return A[1]",
        "N = 2", "A.__class_getitem__ = classmethod(lambda cls, k: 2)",
    ),
    "__init_subclass__": _kind(
        "N = 1\nclass A:\n  def __init_subclass__(cls): cls.n = N\ndef value():\n  class B(A): pass\n  return B.n",
        "N = 2", "A.__init_subclass__ = classmethod(lambda cls: setattr(cls, 'n', 2))",
    ),
    "descriptors": _kind(
        "class D:\n  def __init__(self, n): self.n = n\n  def __get__(self, o, t): return self.n\n"
        "class A: x = D(1)\ndef value(): return A().x",
        "vars(A)['x'].n = 2", "A.x = D(2)", "D.__get__ = lambda *_: 2",
    ),
    "arrays": _kind(
        "import numpy as np\nB = np.array([1, 5])\nT = B[::2]\ndef value(): return int(T[0])",
        "B[0] = 2", "T = np.array([2])"
    ),
    "containers": _kind(
        "T = {'a': [({'b': {1}},)]}\ndef value(): return max(T['a'][0][0]['b'])",
        "T['a'][0][0]['b'].add(2)", "T['a'].reverse(); T['a'][0] = ({'b': {2}},)",
    ),
    "order of a dict": _kind(
        "T = {'a': 1, 'b': 2}\ndef value(): return next(iter(T.values()))", "T['a'] = T.pop('a')"
    ),
    "defaults": _kind(
        "def value(l=[1], *, m={'a': 1}): return l[0] * m['a']",
        "value.__defaults__[0][0] = 2", "value.__kwdefaults__['m']['a'] = 2", "value.__defaults__ = ([2],)",
    ),
    "methods of instances": _kind(
        "class A:\n  n = 1\n  def f(self): return self.n\na = A()\nkept = a.f\ndef value(): return max(a.f(), kept())",
        "a.f = lambda: 2", "A.f = lambda self: 2", "a.n = 2", "kept = lambda: 2",
    ),
    "nested closures": _kind(
        "def outer(n):\n  def middle():\n    def inner(): return n\n    return inner\n  return middle\n"
        "mid = outer(1)\ndef value(): return mid()()",
        "mid.__closure__[0].cell_contents = 2", "mid = outer(2)",
    ),
    "generators": _kind(
        "N = 1\ndef gen(): yield from range(N)\ndef value(): return len(list(gen()))",
        "N = 2", "gen = lambda: iter([0, 1])"
    ),
    "match": _kind(
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n  x: int\n  y: int = 0\nPOINT = P(1)\nclass C: TWO = 2\n"
        "def value():\n  match POINT:\n    case P(x=C.TWO): return 2\n    case P(x, y): return x + y",
        "POINT = P(2)", "POINT.y = 1", "C.TWO = 1",
    ),
    "slots and mangled names": _kind(
        "class S:\n  __slots__ = ('__a',)\n  def __init__(self): self.__a = 1\n  def f(self): return self.__a\n"
        "s = S()\ndef value(): return s.f()",
        "s._S__a = 2",
    ),
    "bases": _kind(
        "class A: n = 1\nclass C: n = 2\nclass B(A):\n  def f(self): return super().n\ndef value(): return B().f()",
        "B.__bases__ = (C,)", "A.n = 2",
    ),
    "import in a function": _kind(
        "import OTHER\ndef value():\n  from OTHER import N\n  return N",
        "import sys, types; sys.modules['OTHER'] = m = types.ModuleType('OTHER'); m.N = 2", "OTHER.N = 2",
    ),
    "reload": _kind(
        "import OTHER\ndef value(): return OTHER.N",
        "import importlib; open(OTHER.__file__, 'w').write('N = 2\\n'); importlib.reload(OTHER)",
    ),
    "-0.0, True": _kind(
        "import math\nZ, T = 0.0, 1\ndef value(): return 2 if math.copysign(1, Z) < 0 or T is True else 1",
        "Z = -0.0", "T = True",
    ),
    "the same object twice": _kind("A = [1]\nB = A\ndef value(): return 1 if A is B else 2", "B = [1]"),
    "keys by value": _kind(
        "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass K: n: int\nT, NOW = {K(1): 1, K(2): 2}, K(1)\n"
        "def value(): return T[NOW]",
        "NOW = K(2)", "T[K(1)] = 2",
    ),
    "builtins": _kind(
        "abs = lambda x: 1\ndef value(): return abs(-2)",
        "del abs", "import builtins; del abs; builtins.abs = lambda x: 2"
    ),
    "getenv": _kind(
        "import os\ndef value(): return int(os.getenv('EDITS_OF_A_TEST', '1'))",
        "os.environ['EDITS_OF_A_TEST'] = '2'", provable=False,
    ),
    "files": _kind(
        "import pathlib\nread = pathlib.Path(FILE).read_text\ndef value(): return int(read())",
        "open(FILE, 'w').write('2')", provable=False,
    ),
    "argv": _kind("from sys import argv\ndef value(): return 1 + ('--two' in argv)", "argv.append('--two')"),
    "context variables": _kind(
        "import contextvars\nV = contextvars.ContextVar('V', default=1)\ndef value(): return V.get()", "V.set(2)",
        provable=False,
    ),
    "thread-local": _kind(
        "import threading\nclass T(threading.local): n = 1\nL = T()\ndef value(): return L.n", "L.n = 2", provable=False
    ),
    "weak references": _kind(
        _OBJECT + "import weakref\nr = weakref.ref(a)\ndef value(): return r().one if r() else 2", "a.one = 2", "del a",
        provable=False,
    ),
    "sys.modules": _kind(
        "import sys, OTHER\ndef value(): return sys.modules['OTHER'].N", "OTHER.N = 2", provable=False
    ),
    "import_module": _kind(
        "import importlib, OTHER\ndef value(): return importlib.import_module('OTHER').N", "OTHER.N = 2", provable=False
    ),
    "decimal": _kind(
        "import decimal\ndef value(): return 2 if decimal.getcontext().prec == 5 else 1",
        "decimal.getcontext().prec = 5", provable=False,
    ),
    "levels of logs": _kind(
        "import logging\nL = logging.getLogger('edits of a test')\nL.setLevel(30)\n"
        "def value(): return 1 + L.isEnabledFor(5)",
        "L.setLevel(1)", provable=False,
    ),
    "subclasses": _kind(
        "class A: pass\ndef value(): return 1 + len(A.__subclasses__())", "class B(A): pass", provable=False
    ),
}  # fmt: skip
"""Kinds that were right when they were tried."""
