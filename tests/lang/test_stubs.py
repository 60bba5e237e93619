"""Names of hardware that is not built: they resolve, stand where such names stand, and refuse when they are used."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from abc import ABC
from dataclasses import dataclass

import pytest

from tilewright.base.errors import TilewrightError
from tilewright.base.stubs import NotBuiltError, is_stub, stub
from tilewright.cute.nvgpu import tcgen05
from tilewright.cute.nvgpu.warp import MmaF16BF16Op


def test_a_stub_stands_where_names_of_hardware_stand():
    assert is_stub(tcgen05) and is_stub(tcgen05.CtaGroup.ONE) and not is_stub(MmaF16BF16Op)
    assert tcgen05.CtaGroup.ONE is tcgen05.CtaGroup.ONE != tcgen05.CtaGroup.TWO
    assert not isinstance(MmaF16BF16Op, tcgen05.MmaOp) and not issubclass(MmaF16BF16Op, tcgen05.MmaOp)
    assert {tcgen05.A: 1}[tcgen05.A] == 1 and tcgen05.Table["sm_100"] is tcgen05.Table

    @dataclass
    class Options:
        group: tcgen05.CtaGroup | None = tcgen05.CtaGroup.ONE

    assert Options().group is tcgen05.CtaGroup.ONE
    assert not hasattr(tcgen05, "__wrapped__")


@pytest.mark.parametrize(
    "use",
    (
        lambda: tcgen05.make_umma_smem_desc(3, layout=4),
        lambda: type("Mine", (tcgen05.PipelineTmaUmma, ABC), {})(),
        lambda: list(tcgen05.CtaGroup),
    ),
)
def test_a_stub_refuses_to_be_used_and_names_the_line(use):
    with pytest.raises(NotBuiltError, match=r"cute\.nvgpu\.tcgen05\..* needs sm_100 \(Blackwell\)") as raised:
        use()
    assert isinstance(raised.value, TilewrightError) and isinstance(raised.value, AttributeError)
    assert raised.value.location.file == __file__ and "lambda:" in str(raised.value)


def test_stubs_of_one_name_are_one():
    assert stub("a.b", "needs nothing").c is stub("a.b.c", "needs nothing")
    assert repr(stub("a.b", "needs nothing")) == "<stub a.b>"


def test_modules_of_hardware_to_come_are_imported_through_the_drop_in(tmp_path):
    source = """
        import tilewright.dropin
        import cutlass.utils.blackwell_helpers as helpers
        from cutlass.cute.nvgpu import tcgen05
        from cutlass.cute.nvgpu.tcgen05 import OperandMajorMode
        import cutlass.utils.gemm.sm100
        import cutlass._mlir.dialects.cute as dialect
        from cutlass._mlir.dialects import cute_nvgpu
        from cutlass.experimental import primitives
        import cutlass.cute as cute

        assert OperandMajorMode is tcgen05.OperandMajorMode
        for use in (helpers.make_smem_layout_a, cute.arch.alloc_tmem, dialect.PtrType.get, cute_nvgpu.make_atom,
                    primitives.tcgen05_alloc, cute.experimental.Pipeline, cutlass.memory.TmemAllocator):
            try:
                use(1)
            except AttributeError as error:
                print(str(error).splitlines()[0])
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(source))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    blackwell = "needs sm_100 (Blackwell), whose tensor memory and tcgen05 are not built yet"
    dialect = "is a dialect of NVIDIA's compiler: atoms, layouts and launches are Python objects here"
    assert done.stdout.splitlines() == [
        f"utils.blackwell_helpers.make_smem_layout_a {blackwell}",
        f"cute.arch.alloc_tmem {blackwell}",
        f"cutlass._mlir.dialects.cute.PtrType.get {dialect}",
        f"cutlass._mlir.dialects.cute_nvgpu.make_atom {dialect}",
        "cutlass.experimental.primitives.tcgen05_alloc belongs to CuTe DSL's experimental primitives and is not built "
        "yet",
        "cute.experimental.Pipeline belongs to CuTe DSL's experimental part and is not built yet",
        f"memory.TmemAllocator {blackwell}",
    ]
