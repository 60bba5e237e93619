"""`cute.nvgpu.cpasync`: asynchronous copies."""

from tilewright.lang.nvgpu.cpasync import CopyG2SOp, LoadCacheMode
