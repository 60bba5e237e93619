"""Stack slots read unwritten become registers that nothing writes, whatever their type."""

import re

import pytest

from tilewright.ir.llvm import emit_ptx


def ptx(body, level=3):
    text = f"define ptx_kernel void @k(ptr addrspace(1) %out, i32 %n) {{\n{body}\n  ret void\n}}\n"
    return emit_ptx(text, chip="sm_90a", ptx_version="8.0", opt_level=level)


def copy(type_, size):
    return f"""  %slot = alloca [{size} x i8], align 16
  %value = load {type_}, ptr %slot, align 1
  store {type_} %value, ptr addrspace(1) %out, align 1"""


@pytest.mark.parametrize(("type_", "size", "registers"), [
    ("i8", 1, "%rs"), ("i16", 2, "%rs"), ("i32", 4, "%r"), ("i64", 8, "%rd"), ("half", 2, "%rs"), ("bfloat", 2, "%rs"),
    ("float", 4, "%r"), ("double", 8, "%rd"), ("i128", 16, "%rd"), ("i40", 8, "%rd"), ("ptr", 8, "%rd"),
    ("<4 x float>", 16, "%r"), ("<2 x half>", 4, "%rs"), ("<3 x i16>", 8, "%rs"),
])  # fmt: skip
@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_value_of_any_type_stays(type_, size, registers, level):
    text = ptx(copy(type_, size), level)
    marked = re.findall(r"// unwritten \d+ (%[a-z]+)(\d+)", text)
    assert marked and {name for name, _ in marked} == {registers}
    assert "st.global" in text and "__local_depot" not in text
    for name, number in marked:
        assert not re.search(rf"^\s*(ld|mov|add)\S*\s+{name}{number},", text, re.MULTILINE)  # nothing writes it


def test_what_is_written_on_all_paths_leaves_the_module_as_it_is():
    text = ptx("""  %slot = alloca [16 x i8], align 16
  store <4 x i32> <i32 1, i32 2, i32 3, i32 4>, ptr %slot, align 16
  %at = getelementptr i32, ptr %slot, i32 2
  %value = load i32, ptr %at, align 4
  store i32 %value, ptr addrspace(1) %out, align 4""")
    assert "unwritten" not in text and re.search(r"st\.global\.b32\s+\[%rd1\], 3;", text)


def test_a_part_that_is_written_later_leaves_the_rest():
    text = ptx("""  %slot = alloca [16 x i8], align 16
  store float 1.0, ptr %slot, align 4
  %all = load <4 x float>, ptr %slot, align 16
  store <4 x float> %all, ptr addrspace(1) %out, align 16""")
    assert len(re.findall("// unwritten", text)) == 3


def test_a_slot_that_stays_in_memory_is_written_by_the_program_only():
    text = ptx("""  %slot = alloca [64 x i8], align 16
  %at = getelementptr i32, ptr %slot, i32 %n
  store i32 7, ptr %at, align 4
  %next = add i32 %n, 1
  %there = getelementptr i32, ptr %slot, i32 %next
  %value = load volatile i32, ptr %there, align 4
  %other = load volatile i32, ptr %at, align 4
  %sum = add i32 %value, %other
  store i32 %sum, ptr addrspace(1) %out, align 4""")
    assert len(re.findall(r"st\.(?:volatile\.)?local", text)) == 1 and text.count("// empty at first") == 1
    assert "// unwritten" not in text


def test_without_optimisation_slots_stay_in_memory():
    text = ptx(copy("float", 4), 0)
    assert "__local_depot" in text and "unwritten" not in text


@pytest.mark.parametrize("type_", ["{ i32, i64 }", "[4 x float]", "[2 x [4 x i8]]", "i64", "<4 x i32>"])
def test_slots_of_others_stay_as_they_are(type_):
    """What `printf` takes its arguments from, for one, is no register tensor."""
    text = ptx(f"""  %slot = alloca {type_}, align 16
  %at = getelementptr i32, ptr %slot, i32 %n
  store volatile i32 7, ptr %at, align 4
  %tensor = alloca [16 x i8], align 16
  store i32 %n, ptr %tensor, align 4
  %value = load i32, ptr %tensor, align 4
  store i32 %value, ptr addrspace(1) %out, align 4""")
    assert "unwritten" not in text and "empty at first" not in text


def in_branches(*elements):
    """A slot of four halves: all written in one branch, some `elements` in the other; a word of it is read."""
    stores = "\n".join(
        f"  %at{k} = getelementptr half, ptr %slot, i32 {k}\n"
        f"  %from{k} = getelementptr half, ptr addrspace(1) %out, i32 {k + 8}\n"
        f"  %half{k} = load half, ptr addrspace(1) %from{k}, align 2\n"
        f"  store half %half{k}, ptr %at{k}, align 2\n  br label %next{k}\nnext{k}:"
        for k in elements
    )
    return f"""  %slot = alloca [8 x i8], align 16
  %all = icmp eq i32 %n, 0
  br i1 %all, label %vector, label %parts
vector:
  %value = load <4 x half>, ptr addrspace(1) %out, align 8
  store <4 x half> %value, ptr %slot, align 8
  br label %end
parts:
{stores}
  br label %end
end:
  %word = load i32, ptr %slot, align 4
  store i32 %word, ptr addrspace(1) %out, align 4"""


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize(
    ("elements", "missing"), [((0, 1, 2, 3), 0), ((1, 0), 0), ((0, 2, 3), 1), ((1,), 1), ((3,), 2)]
)
def test_elements_between_two_writes_are_not_read(elements, missing, level):
    assert len(re.findall("// unwritten", ptx(in_branches(*elements), level))) == missing
