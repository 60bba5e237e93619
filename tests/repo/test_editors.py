"""What an editor offers for a user's kernel: names, signatures and types, found by Jedi without running anything."""

import pytest

jedi = pytest.importorskip("jedi", reason="completion in editors is tested with Jedi")

SOURCE = """
import tilewright as cutlass
import tilewright.cute as cute

@cute.kernel
def scale_kernel(a: cute.Float32, x: cute.Tensor, threads: cutlass.Constexpr) -> None:
    i, _, _ = cute.arch.thread_idx()
    x[i] = a * x[i]

@cute.jit
def scale(a: cute.Float32, x: cute.Tensor) -> None:
    scale_kernel(a, x, 64).launch(grid=1, block=64)

"""


def script(line):
    text = SOURCE + line
    return (
        jedi.Script(text, environment=jedi.InterpreterEnvironment()),
        text.count("\n") + 1,
        len(text.rsplit("\n", 1)[-1]),
    )


def names(line):
    source, row, column = script(line)
    return {item.name for item in source.complete(row, column)}


def parameters(line):
    source, row, column = script(line)
    return [[item.name for item in signature.params] for signature in source.get_signatures(row, column)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cute.make_tiled", {"make_tiled_copy_tv", "make_tiled_mma"}),
        ("cute.arch.sync", {"sync_threads", "sync_warp"}),
        ("cutlass.Fl", {"Float16", "Float32", "Float64"}),
        ("cute.compile(scale, 1.0, None).st", {"stages"}),
        ("scale_kernel(1.0, None, 64).la", {"launch"}),
    ],
)
def test_names_are_offered(line, expected):
    assert expected <= names(line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cute.make_tiled_copy_tv(", ["atom", "thr_layout", "val_layout"]),
        ("cute.local_tile(", ["input", "tiler", "coord"]),
        ("cutlass.range(", ["arguments", "unroll"]),
    ],
)
def test_signatures_are_real(line, expected):
    found = parameters(line)
    assert found
    assert all(names[: len(expected)] == expected for names in found)
