"""The texts of stages with the lines of Python that they come from."""

import pytest

from tests.tools.explorer import cases
from tilewright.passes.located_text import located_text
from tilewright.tools import demo_kernels
from tilewright.tools.located import located


@pytest.fixture(scope="module")
def row_sum():
    executor, _ = cases.row_sum()
    return executor, located(executor)


def test_texts_are_those_of_the_stages(row_sum):
    executor, found = row_sum
    stages = executor.kernels["row_sum_kernel"].stages
    texts = {text.name: text.text for text in found.kernels["row_sum_kernel"]}
    assert list(texts) == ["python", "cute", "nvvm", "llvm", "ptx", "sass"]
    assert texts == {name: stages[name] for name in texts}


def test_each_line_has_a_place(row_sum):
    _, found = row_sum
    for text in found.kernels["row_sum_kernel"]:
        assert len(text.places) == len(text.text.splitlines()), text.name


def test_places_agree_with_the_source_map(row_sum):
    executor, found = row_sum
    texts = {text.name: text for text in found.kernels["row_sum_kernel"]}
    for stage, table in (("ptx", executor.source_map.ptx), ("sass", executor.source_map.sass)):
        assert table
        for place, instructions in table.items():
            assert all(texts[stage].places[item.line - 1] == place for item in instructions), stage


@pytest.mark.parametrize(
    ("stage", "word"),
    [("cute", "cute.load"), ("nvvm", "llvm.load"), ("llvm", "= load"), ("ptx", "ld.global"), ("sass", "LDG")],
)
def test_the_load_of_a_row_is_found_in_every_stage(row_sum, stage, word):
    _, found = row_sum
    line = cases.line_of(demo_kernels.row_sum_kernel, "total += x[row, column]")
    text = next(item for item in found.kernels["row_sum_kernel"] if item.name == stage)
    texts = zip(text.text.splitlines(), text.places, strict=True)
    lines = [number[1] for content, number in texts if word in content and "smem" not in content and number]
    assert line in lines


def test_machine_code_knows_its_line_of_ptx(row_sum):
    _, found = row_sum
    texts = {text.name: text for text in found.kernels["row_sum_kernel"]}
    ptx = texts["ptx"].text.splitlines()
    lines = zip(texts["sass"].text.splitlines(), texts["sass"].ptx_lines, strict=True)
    loads = [ptx[number - 1] for content, number in lines if " LDG" in content]
    assert len(loads) == 8
    assert all("ld.global" in line for line in loads)


def test_a_region_begins_where_its_operation_stands(row_sum):
    _, found = row_sum
    text = next(item for item in found.kernels["row_sum_kernel"] if item.name == "cute")
    line = cases.line_of(demo_kernels.row_sum_kernel, "for tile in range(cute.ceil_div(columns, threads)):")
    opened = [
        place[1] for content, place in zip(text.text.splitlines(), text.places, strict=True) if "scf.for" in content
    ]
    assert opened == [line]


def test_several_kernels_have_texts_of_their_own():
    executor, _ = cases.two_kernels()
    found = located(executor)
    assert list(found.kernels) == ["first_kernel", "second_kernel"]
    for name, texts in found.kernels.items():
        assert all(text.text == executor.kernels[name].stages[text.name] for text in texts)
        cute = next(text for text in texts if text.name == "cute")
        assert sum(place is not None for place in cute.places) > len(cute.places) // 2


def test_a_function_from_the_cache_is_shown_too(cache_dir):
    cases.row_sum(8, 64)
    executor, _ = cases.row_sum(8, 64)
    assert executor.cached
    texts = located(executor).kernels["row_sum_kernel"]
    assert {text.name: text.text for text in texts}["sass"] == executor.stages["sass"]


class Printed:
    """A module that prints as given."""

    def __init__(self, text):
        self.text = text

    def get_asm(self, **_):
        return self.text


def test_locations_of_any_form():
    text, places = located_text(
        Printed(
            'func @f(%a: i32 loc("a b.py":3:0), %b: i32 loc(unknown)) {\n'
            '  %0 = "x.y"() {text = " loc(no"} : () -> i32 loc(#loc1)\n'
            "  %1 = z %0 loc(#loc2)\n"
            "  w loc(#loc3)\n"
            '} loc(fused<"m">[#loc, "c.py":9:1])\n'
            "#loc = loc(unknown)\n"
            '#loc1 = loc("a b.py":5:7)\n'
            '#loc2 = loc(callsite(#loc1 at "caller.py":1:1))\n'
            '#loc3 = loc("name"(#loc2))\n'
        )
    )
    assert text == ('func @f(%a: i32, %b: i32) {\n  %0 = "x.y"() {text = " loc(no"} : () -> i32\n  %1 = z %0\n  w\n}\n')
    assert places == [("c.py", 9), ("a b.py", 5), ("a b.py", 5), ("a b.py", 5), ("c.py", 9)]
