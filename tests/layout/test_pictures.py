"""The pictures in the documentation are what the code draws."""

import pytest

from tests.layout.pictures import FOLDER, pictures


@pytest.mark.parametrize(("name", "picture"), pictures().items(), ids=pictures())
def test_pictures_of_the_documentation_are_up_to_date(name, picture):
    assert (FOLDER / name).read_text(encoding="utf-8") == picture, "run: python -m tests.layout.pictures"
