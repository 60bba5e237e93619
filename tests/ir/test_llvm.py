"""LLVM IR to PTX and to objects: results, diagnostics, the child process, threads, leaks."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tilewright.base.errors import CompileError
from tilewright.ir import llvm
from tilewright.targets.host import elf

ADD = """
define ptx_kernel void @k(ptr addrspace(1) %a, float %x) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr float, ptr addrspace(1) %a, i32 %t
  %v = load float, ptr addrspace(1) %p
  %w = fadd float %v, %x
  store float %w, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
"""
ADD_LINE = "%w = fadd float %v, %x"
ELECT = ADD.replace(
    ADD_LINE,
    "%e = call { i32, i1 } @llvm.nvvm.elect.sync(i32 -1)\n %f = extractvalue { i32, i1 } %e, 0\n"
    " %w = sitofp i32 %f to float",
)
ELECT += "declare { i32, i1 } @llvm.nvvm.elect.sync(i32)\n"


def ptx_of(text, chip="sm_90a", ptx_version="8.7", **arguments):
    return llvm.emit_ptx(text, chip=chip, ptx_version=ptx_version, **arguments)


def test_ptx_of_a_kernel():
    ptx = ptx_of(ADD)
    assert ".version 8.7\n.target sm_90a\n.address_size 64" in ptx
    assert ".visible .entry k(" in ptx
    assert re.search(r"mov\.u32 \s*%r\d+, %tid\.x;", ptx)
    assert ptx.count("add.rn.f32") == 1


@pytest.mark.parametrize(
    ("chip", "version"),
    [("sm_80", "7.0"), ("sm_86", "7.1"), ("sm_89", "7.8"), ("sm_90", "7.8"), ("sm_90a", "8.0"), ("sm_100a", "8.6"),
     ("sm_103a", "8.8"), ("sm_110a", "9.0"), ("sm_120", "8.7")],
)  # fmt: skip
def test_every_chip(chip, version):
    assert f".version {version}\n.target {chip}\n" in ptx_of(ADD, chip, version)


def test_same_text_twice():
    assert ptx_of(ADD) == ptx_of(ADD)


def test_optimisation_level_changes_the_code():
    source = ADD.replace(ADD_LINE, "%w = call float @f(float %v, float %x)")
    source += "define internal float @f(float %v, float %x) {\n  %w = fadd float %v, %x\n  ret float %w\n}\n"
    assert "call.uni" in ptx_of(source, opt_level=0)
    assert "call.uni" not in ptx_of(source, opt_level=3)


def test_malformed_text_names_its_line():
    with pytest.raises(llvm.LlvmError) as caught:
        ptx_of(ADD.replace("fadd", "fadx"))
    error = caught.value
    assert (error.line, error.column) == (6, 8)
    assert error.message == "LLVM IR does not parse: line 6, column 8: expected instruction opcode"
    assert error.values == {"line 6": "%w = fadx float %v, %x"}
    assert "fadx" in error.nvvm_error
    assert isinstance(error, CompileError)


def test_empty_and_binary_rubbish_are_refused():
    with pytest.raises(llvm.LlvmError, match="does not parse"):
        ptx_of("this is no IR")
    with pytest.raises(llvm.LlvmError):
        ptx_of(b"BC\xc0\xde rubbish")


def test_invalid_module_is_refused():
    text = "define void @f(i32 %x) {\n  %y = add i32 %z, 1\n  %z = add i32 %x, 1\n  ret void\n}\n"
    with pytest.raises(llvm.LlvmError, match="Instruction does not dominate all uses"):
        ptx_of(text)


def test_unknown_assembly_constraint_is_a_diagnostic():
    text = ADD.replace(ADD_LINE, '%w = call float asm "mov $0, $1;", "=Q,f"(float %x)')
    with pytest.raises(llvm.LlvmError, match="couldn't allocate output register for constraint 'Q'"):
        ptx_of(text)


def test_wrong_number_of_assembly_operands_names_its_line():
    text = ADD.replace(ADD_LINE, '%w = call float asm "mov $0, $1;", "=f,f"()')
    with pytest.raises(llvm.LlvmError, match="line 6, column 19: number of input constraints does not match"):
        ptx_of(text)


def test_unknown_ptx_version_is_refused():
    with pytest.raises(llvm.LlvmError, match=r"LLVM does not know \.version 9\.9") as caught:
        ptx_of(ADD, ptx_version="9.9")
    assert caught.value.values["asked for"] == "9.9"


def test_links():
    caller = "declare i32 @twice(i32)\ndefine ptx_kernel void @k(ptr %p, i32 %x) {\n" \
        "  %y = call i32 @twice(i32 %x)\n  store i32 %y, ptr %p\n  ret void\n}\n"  # fmt: skip
    callee = "define internal i32 @unused() {\n ret i32 0\n}\n" \
        "define i32 @twice(i32 %x) alwaysinline {\n  %y = shl i32 %x, 1\n  ret i32 %y\n}\n"  # fmt: skip
    ptx = ptx_of(caller, links=[callee])
    assert re.search(r"shl\.b32", ptx)
    assert "call" not in ptx.replace("// callseq", "")


def test_linking_a_symbol_twice_names_it():
    with pytest.raises(llvm.LlvmError, match="'k': symbol multiply defined"):
        ptx_of(ADD, links=[ADD])


def test_child_gives_the_same_text():
    assert llvm.emit_ptx_in_child(ADD, chip="sm_90a", ptx_version="8.7") == ptx_of(ADD)


def test_child_passes_errors_on():
    with pytest.raises(llvm.LlvmError) as caught:
        llvm.emit_ptx_in_child(ADD.replace("fadd", "fadx"), chip="sm_90a", ptx_version="8.7")
    assert (caught.value.line, caught.value.column) == (6, 8)
    assert caught.value.values == {"line 6": "%w = fadx float %v, %x"}


@pytest.mark.parametrize(
    ("text", "chip", "version", "message"),
    [
        (ELECT, "sm_80", "8.0", "Cannot select: intrinsic %llvm.nvvm.elect.sync"),
        (ADD, "sm_120", "8.6", "PTX version 8.6 does not support target 'sm_120'"),
    ],
)
def test_what_aborts_llvm_is_an_error_of_the_child(text, chip, version, message):
    with pytest.raises(llvm.LlvmError) as caught:
        llvm.emit_ptx_in_child(text, chip=chip, ptx_version=version)
    assert message in caught.value.message
    assert message in caught.value.nvvm_error
    assert caught.value.values["exit status"] != 0


def test_child_has_a_time_limit():
    with pytest.raises(llvm.LlvmError, match=r"LLVM took more than 0\.001 s"):
        llvm.emit_ptx_in_child(ADD, chip="sm_90a", ptx_version="8.7", time_limit=0.001)


def test_child_needs_no_working_directory(tmp_path, monkeypatch):
    (tmp_path / "pickle.py").write_text("raise SystemExit('a module of the user')")
    monkeypatch.chdir(tmp_path)
    assert ".entry k(" in llvm.emit_ptx_in_child(ADD, chip="sm_90a", ptx_version="8.7")


def test_host_object_is_relocatable_and_for_this_machine():
    data = llvm.emit_object("define i32 @f(i32 %x) {\n ret i32 %x\n}\n")
    assert data[:4] == b"\x7fELF"
    assert int.from_bytes(data[16:18], "little") == 1  # ET_REL


def test_host_object_keeps_what_it_is_told():
    text = "define i32 @kept() {\n ret i32 1\n}\ndefine i32 @dropped() {\n ret i32 2\n}\n"
    assert b"dropped" in llvm.emit_object(text)
    assert b"dropped" not in llvm.emit_object(text, keep=["kept"])
    assert b"kept" in llvm.emit_object(text, keep=["kept"])


def test_frame_is_linked_after_optimisation():
    text = "define i32 @inner(i32 %x) {\n  %y = add i32 %x, 1\n  ret i32 %y\n}\n"
    frame = "declare i32 @inner(i32)\ndefine i32 @outer(i32 %x) {\n  %y = call i32 @inner(i32 %x)\n  ret i32 %y\n}\n"
    data = llvm.emit_object(text, frame=[frame], keep=["outer"], defines={"inner": "i32 (i32)"})
    symbols = {symbol.name: symbol.section for symbol in elf.parse(data).symbols}
    assert {"inner", "outer"} <= symbols.keys()  # a private function keeps its name, and is not inlined
    assert 0 not in (symbols["inner"], symbols["outer"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("declare i32 @f(i32)", "does not define the function 'f'"),
        ("define i32 @g(i32 %x) {\n ret i32 %x\n}", "does not define the function 'f'"),
        ("define i32 @f(i64 %x) {\n ret i32 0\n}", "expected  i32 (i32)\n  found     i32 (i64)"),
    ],
)
def test_functions_that_must_be_defined(text, message):
    with pytest.raises(llvm.LlvmError) as caught:
        llvm.emit_object(text, defines={"f": "i32 (i32)"})
    assert message in str(caught.value)


def test_code_generation_level():
    text = """
define i32 @f(i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i1, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum1, %loop ]
  %square = mul i32 %i, %sum
  %sum1 = xor i32 %square, %n
  %i1 = add i32 %i, 1
  %more = icmp slt i32 %i1, %n
  br i1 %more, label %loop, label %end
end:
  ret i32 %sum1
}
"""
    assert llvm.emit_object(text, codegen_level=0) != llvm.emit_object(text, codegen_level=2)
    assert llvm.emit_object(text, codegen_level=2) == llvm.emit_object(text)


def test_host_object_for_a_named_processor():
    text = "define void @f(ptr %p) {\n %v = load <16 x float>, ptr %p\n %w = fadd <16 x float> %v, %v\n" \
        " store <16 x float> %w, ptr %p\n ret void\n}\n"  # fmt: skip
    assert llvm.emit_object(text, cpu="x86-64") != llvm.emit_object(text, cpu="x86-64-v4")


def test_threads_compile_side_by_side():
    texts = {name: ADD.replace("@k(", f"@{name}(") for name in ("one", "two", "three", "four")}
    expected = {name: ptx_of(text) for name, text in texts.items()}

    def work(name):
        for _ in range(10):
            assert ptx_of(texts[name]) == expected[name]
            with pytest.raises(llvm.LlvmError, match="line 6"):
                ptx_of(texts[name].replace("fadd", name))
        return name

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, texts)) == list(texts)


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_no_memory_is_lost():
    bad = ADD.replace("fadd", "fadx")

    def round_trip(count):
        for _ in range(count):
            ptx_of(ADD)
            llvm.emit_object("define i32 @f(i32 %x) {\n ret i32 %x\n}\n")
            with pytest.raises(llvm.LlvmError):
                ptx_of(bad)
            with pytest.raises(llvm.LlvmError):
                ptx_of(ADD, links=[ADD])

    round_trip(15)
    before = resident_bytes()
    round_trip(60)
    # A context kept alive by each round would be over 100 KB.
    assert resident_bytes() - before < 60 * 40_000


def test_importing_loads_no_llvm():
    code = "import tilewright.ir.llvm; print(any('libLLVM' in line for line in open('/proc/self/maps')))"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout.strip() == "False"


@pytest.mark.parametrize(("constant", "instruction"), [("1.0", "max.f64"), ("0.0", "selp.f64"), ("-0.0", "selp.f64")])
def test_selections_between_zeros_stay_selections(constant, instruction):
    text = f"""define double @chosen(double %x) {{
      %better = fcmp ogt double %x, {constant}
      %best = select i1 %better, double %x, double {constant}
      ret double %best
    }}"""
    ptx = llvm.emit_ptx(text, chip="sm_90a", ptx_version="8.0")
    assert [word for word in ("max.f64", "selp.f64") if word in ptx] == [instruction]
