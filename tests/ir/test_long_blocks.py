"""Blocks of many instructions: their code, and the time that it takes."""

import re
import time

from tilewright.ir import long_blocks
from tilewright.ir.llvm import emit_ptx


def sums(loads):
    """A kernel that adds so many numbers, 128 bytes apart."""
    lines = ["define ptx_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %q) {"]
    for number in range(loads):
        lines.append(f"  %a{number} = getelementptr i8, ptr addrspace(1) %p, i64 {number * 128}")
        lines.append(f"  %x{number} = load float, ptr addrspace(1) %a{number}")
        before = f"%s{number - 1}" if number else "0.0"
        lines.append(f"  %s{number} = fadd float {before}, %x{number}")
    return "\n".join([*lines, f"  store float %s{loads - 1}, ptr addrspace(1) %q", "  ret void", "}"])


def ptx_of(source):
    return emit_ptx(source, chip="sm_90a", ptx_version="8.7")


def instructions(ptx):
    return sorted(re.findall(r"^\t+([a-z][\w.:]+)[^;]*;", ptx, re.MULTILINE))


def test_pieces_have_the_code_of_the_whole(monkeypatch):
    source = sums(2000)
    monkeypatch.setattr(long_blocks, "LONG", 1 << 20)
    whole = ptx_of(source)
    monkeypatch.setattr(long_blocks, "LONG", 256)
    monkeypatch.setattr(long_blocks, "PIECE", 100)
    pieces = ptx_of(source)
    assert "piece" not in pieces and "inline asm" not in pieces
    assert instructions(pieces) == instructions(whole)


def test_pieces_end_searches_for_vectors_and_nothing_else(monkeypatch):
    """Loads of neighbours become vectors on either side of an end."""
    source = sums(512).replace("* 128", "").replace("%p, i64 ", "%p, i64 ")
    source = re.sub(r"%p, i64 (\d+)", lambda found: f"%p, i64 {int(found[1]) // 128 * 4}", source)
    source = re.sub(r"(load float, ptr addrspace\(1\) %a\d+)", r"\1, align 16", source)
    monkeypatch.setattr(long_blocks, "LONG", 1 << 20)
    whole = ptx_of(source).count("ld.global.v4")
    monkeypatch.setattr(long_blocks, "LONG", 100)
    monkeypatch.setattr(long_blocks, "PIECE", 64)
    assert whole == 128
    assert ptx_of(source).count("ld.global.v4") >= 100


def test_short_modules_are_not_looked_through():
    assert not long_blocks.may_have_long_blocks(sums(100))
    assert long_blocks.may_have_long_blocks(sums(2000))
    assert long_blocks.may_have_long_blocks('!1 = !{!"llvm.loop.unroll.full"}')


def test_time_grows_with_the_instructions():
    def seconds(loads):
        source = sums(loads)
        start = time.thread_time()
        ptx_of(source)
        return time.thread_time() - start

    seconds(100)
    assert seconds(16000) < 9 * seconds(4000)  # 17 times when LLVM got the whole blocks
