"""Recording on a GPU, as far as it needs none: what is recorded, and how recordings are merged."""

from argparse import Namespace

import numpy as np
import pytest

from scripts import record_emu_reference as recording
from tests.emu import kernels


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
