"""Recording on a GPU, as far as it needs none: what is recorded, and how recordings are merged."""

import ctypes
from argparse import Namespace

import numpy as np
import pytest

from scripts import record_emu_reference as recording
from tests.emu import kernels, tensor_copies


def outputs(**values):
    return {name: np.asarray(value) for name, value in values.items()}


def test_a_merged_recording_keeps_what_was_not_recorded_again():
    old = outputs(card="H100", a=[1, 2], b=[3])
    new = recording.merged(old, outputs(card="H100", b=[4], c=[5]))
    assert {name: value.tolist() for name, value in new.items()} == {"card": "H100", "a": [1, 2], "b": [4], "c": [5]}
    assert recording.merged({}, old) is old


def test_other_cards_are_named_with_their_kernels():
    first = recording.merged(outputs(card="H100", a=[1], b=[2]), outputs(card="H200", b=[3], c=[4]))
    assert str(first["card"]) == "H100; H200: b c"
    again = recording.merged(first, outputs(card="H100", b=[5]))
    assert str(again["card"]) == "H100; H200: c"
    assert str(recording.merged(again, outputs(card="H100", c=[6]))["card"]) == "H100"
    assert str(recording.merged(again, outputs(card="H200", a=[7]))["card"]) == "H100; H200: a c"


def test_which_kernels_are_chosen():
    names = [kernel.name for kernel in kernels.kernels()]
    assert len(names) == len(set(names)) > 200
    assert recording.choose(Namespace(only=None, missing=False), {}) == names
    assert recording.choose(Namespace(only=None, missing=True), dict.fromkeys(names[1:])) == names[:1]
    assert recording.choose(Namespace(only=["mma_f64"], missing=False), {}) == ["mma_f64"]
    with pytest.raises(SystemExit, match="no kernel 'mma_f65'"):
        recording.choose(Namespace(only=["mma_f65"], missing=False), {})


def test_the_file_is_read_and_assembled_under_distinct_names(tmp_path):
    path = tmp_path / "some.npz"
    assert recording.read(path) == {}
    np.savez_compressed(path, **outputs(card="H100", a=[1]))
    assert recording.read(path)["a"].tolist() == [1]
    files = {kernel.ptx: recording.cubin_name(kernel) for kernel in kernels.kernels()}
    assert len(set(files.values())) == len(files) and all(ptx.exists() for ptx in files)


class Calls(recording.Driver):
    """A driver that notes what it is asked for."""

    def __init__(self):
        self.calls = []

    def call(self, name, *arguments):
        self.calls.append((name, arguments))


def test_maps_are_made_with_the_arguments_of_their_rows():
    driver, address = Calls(), ctypes.c_uint64(1 << 33)
    tiled = tensor_copies.Map("bf16", (40, 5, 3), (16, 2, 2), strides=(112, 1040), swizzle=64, nan=True, interleave=16)
    columns = tensor_copies.Map("u32", (8, 9, 4, 3), (8, 24), lower=(-2, 1), upper=(1, 0), steps=(1, 2, 1, 1))
    made = [driver.tensor_map(row, address) for row in (tiled, columns)]
    assert all(ctypes.addressof(one) % 64 == 0 and ctypes.sizeof(one) == 128 for one in made)
    (name, (to, *given)), (other, (_, *more)) = driver.calls
    assert to is made[0] and (name, other) == ("cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col")
    assert plain(given) == [9, 3, 1 << 33, [40, 5, 3], [112, 1040], [16, 2, 2], [1, 1, 1], 1, 2, 0, 1]
    assert [type(argument)._type_ for argument in given[3:7]] == [ctypes.c_uint64] * 2 + [ctypes.c_uint32] * 2
    compact = [32, 288, 1152]
    assert plain(more) == [2, 4, 1 << 33, [8, 9, 4, 3], compact, [-2, 1], [1, 0], 8, 24, [1, 2, 1, 1], 0, 0, 0, 0]


def plain(arguments):
    """Numbers and arrays of ctypes as those of Python."""
    return [getattr(x, "value", x) if isinstance(x, int | ctypes.c_uint64) else list(x) for x in arguments]


def test_the_words_of_blocks_say_what_each_copies():
    rows = {kernel.name: kernel for kernel in kernels.kernels()}
    words = tensor_copies.table(rows["tensor_load_im2col_4d_tap"]).reshape(4, 16)
    assert words[2].tolist() == [0, -1, -1, 0, 0, 2, 1, 0, 8 * 40 * 4, 0, 11 * 128, 12, 0, 0, 0, 0]
    multicast = tensor_copies.table(rows["tensor_load_multicast"]).reshape(4, 16)
    assert multicast[:, tensor_copies.BYTES].tolist() == [2048, 2048, 1024, 1024]
    assert multicast[:, tensor_copies.MASK].tolist() == [3, 3, 2, 1] and (multicast[:, tensor_copies.MODE] == 18).all()
    reduce = tensor_copies.table(rows["bulk_reduce_dec_u32"]).reshape(2, 16)
    assert (reduce[:, tensor_copies.OPERATION] == 26).all() and (reduce[:, tensor_copies.ROOM] == 2048).all()
