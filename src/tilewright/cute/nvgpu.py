"""`cute.nvgpu`: copy atoms."""

from tilewright.lang.copying import CopyUniversalOp
