"""Write docs/vector-add.md: one kernel at every stage of the pipeline, for sm_90a."""

import re
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "pipeline"))

import vector_add  # noqa: E402

import tilewright.cute as cute  # noqa: E402

PAGE = ROOT / "docs" / "vector-add.md"
HEAD = """# Vector add at every stage

This page shows one kernel in full at every stage, from Python to machine code for sm_90a. [pipeline.md](pipeline.md)
says what each stage is. `scripts/write_vector_add.py` writes this page; this command writes the same texts:

```bash
tilewright compile examples/pipeline/vector_add.py:vector_add --arg 'f32[?]' --arg 'f32[?]' --arg 'f32[?]' \\
    --arch sm_90a --emit all -o out
```

## The source

```python skip
{source}
```
"""
TITLES = {
    "python": "control flow rewritten",
    "cute": "tensors with layouts, after the passes of this stage",
    "nvvm": "addresses and intrinsics; the host function has become native code",
    "llvm": "LLVM IR, as MLIR translates it",
    "ptx": "LLVM's NVPTX back end",
    "sass": "ptxas's machine code, without encodings",
}
LANGUAGES = {"python": "text", "cute": "mlir", "nvvm": "mlir", "llvm": "llvm", "ptx": "ptx", "sass": "text"}


def stages() -> dict[str, str]:
    """The text of each stage that the page shows."""
    a, b, c = (np.ones(1000, np.float32) for _ in range(3))
    compiled = cute.compile(vector_add.vector_add, a, b, c, options="--gpu-arch sm_90a", target="emu")
    (kernel,) = compiled.kernels.values()
    texts = {name: str(kernel.stages[name]) for name in TITLES if name != "sass"}
    texts["cute"] = str(compiled.stages["cute"])
    texts["sass"] = "\n".join(item.text for item in compiled.machine_code().instructions)
    return {name: _plain(texts[name]) for name in TITLES}


def _plain(text: str) -> str:
    """The text without the folder of this checkout, and without blanks at the ends of lines."""
    text = text.replace(f"{ROOT}/", "")
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip("\n")


def page() -> str:
    """The whole document."""
    source = (ROOT / "examples" / "pipeline" / "vector_add.py").read_text(encoding="utf-8").strip()
    parts = [HEAD.format(source=source)]
    for name, text in stages().items():
        parts.append(f"## `{name}`: {TITLES[name]}\n\n```{LANGUAGES[name]}\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
