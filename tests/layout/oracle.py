"""What layouts mean, worked out point by point and without the code under test."""

from itertools import product


def flat(t):
    return [leaf for item in t for leaf in flat(item)] if isinstance(t, tuple) else [t]


def value(shape, stride, x):
    """shape:stride at index x: colexicographic, the last mode takes what is left over."""
    extents, steps = flat(shape), flat(stride)
    total = 0
    for n, d in zip(extents[:-1], steps[:-1], strict=True):
        total += x % n * d
        x //= n
    return total + (x * steps[-1] if steps else 0)


def values(layout):
    """The values of a layout at all its indices, in order."""
    out = [0]
    for n, d in zip(flat(layout.shape), flat(layout.stride), strict=True):
        out = [base + i * d for i in range(n) for base in out]
    return out


def size(layout):
    n = 1
    for extent in flat(layout.shape):
        n *= extent
    return n


def factorings(n):
    """All ways to write n as an ordered product of numbers greater than 1."""
    if n == 1:
        return [()]
    return [(d, *rest) for d in range(2, n + 1) if n % d == 0 for rest in factorings(n // d)]


def is_layout_function(f):
    """Whether the list f, as a function of 0..len(f)-1, is a layout of some shape."""
    for shape in factorings(len(f)):
        strides, below = [], 1
        for n in shape:
            strides.append(f[below])
            below *= n
        expect = [0]
        for n, d in zip(shape, strides, strict=True):
            expect = [base + i * d for i in range(n) for base in expect]
        if expect == f:
            return True
    return False


def composition_exists(a, b):
    """Whether some R has R(c) = a(b(c)) and refines b mode by mode: found by trying."""
    modes = list(zip(flat(b.shape), flat(b.stride), strict=True))
    parts = [[value(a.shape, a.stride, i * d) for i in range(n)] for n, d in modes]
    if not all(map(is_layout_function, parts)):
        return False
    for coord in product(*(range(n) for n, _ in modes)):
        x = sum(c * d for c, (_, d) in zip(coord, modes, strict=True))
        if value(a.shape, a.stride, x) != sum(part[c] for c, part in zip(coord, parts, strict=True)):
            return False
    return True


def refines(coarse, fine):
    """Whether each leaf of the shape `coarse` faces a mode of `fine` of that size."""
    if not isinstance(coarse, tuple):
        n = 1
        for extent in flat(fine):
            n *= extent
        return n == coarse
    return isinstance(fine, tuple) and len(coarse) == len(fine) and all(map(refines, coarse, fine))
