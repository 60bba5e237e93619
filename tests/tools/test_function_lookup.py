"""`FILE:FUNCTION`."""

import sys

import pytest

from tilewright.base.errors import ArgumentError
from tilewright.tools.function_lookup import load_function, load_module


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "helper.py").write_text("VALUE = 7\n")
    file = tmp_path / "kernels.py"
    file.write_text(
        "import helper\n"
        "MAIN = __name__ == '__main__'\n"
        "def add(): return helper.VALUE\n"
        "class Group:\n"
        "    @staticmethod\n"
        "    def scale(): return 3\n"
        "SIZE = 4\n"
    )
    yield file
    sys.modules.pop("helper", None)


def test_function_of_a_file_that_imports_its_neighbour(kernels):
    assert load_function(f"{kernels}:add")() == 7
    assert load_function(f"{kernels}:Group.scale")() == 3


def test_file_does_not_run_as_main(kernels):
    assert load_module(kernels).MAIN is False


def test_two_files_of_one_name_do_not_mix(tmp_path):
    for folder, value in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "k.py").write_text(f"def f(): return {value}\n")
    assert [load_function(f"{tmp_path / folder / 'k.py'}:f")() for folder in "ab"] == [1, 2]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (":add", "':add' names no function"),
        ("kernels.py", "'kernels.py' names no function"),
        ("{file}:ad", "did you mean add?"),
        ("{file}:subtract", "it has: Group, add"),
        ("{file}:SIZE", "is no function but int"),
        ("{folder}/none.py:add", "there is no file"),
    ],
)
def test_errors(kernels, name, message):
    with pytest.raises(ArgumentError) as error:
        load_function(name.format(file=kernels, folder=kernels.parent))
    assert message in str(error.value)


def test_error_in_the_file_is_the_users_own(tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("raise RuntimeError('mine')\n")
    with pytest.raises(ArgumentError, match="RuntimeError: mine") as caught:
        load_function(f"{file}:f")
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert (caught.value.location.file, caught.value.location.line) == (str(file), 1)
