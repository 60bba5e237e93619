"""DLPack's numbers of devices and element types, as data (`dlpack/dlpack.h`)."""

from __future__ import annotations

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
DEVICE_NAMES = {CPU: "cpu", CUDA: "cuda", CUDA_HOST: "pinned host memory", CUDA_MANAGED: "managed memory"}

# (DLPack code, bits) of the types that a tensor may have.
DTYPES = {
    "bool": (6, 8),
    **{f"i{bits}": (0, bits) for bits in (4, 8, 16, 32, 64)},
    **{f"u{bits}": (1, bits) for bits in (4, 8, 16, 32, 64)},
    **{f"f{bits}": (2, bits) for bits in (16, 32, 64)},
    "tf32": (2, 32),
    "bf16": (4, 16),
    "f8e3m4": (7, 8),
    "f8e4m3": (8, 8),
    "f8e4m3b11fnuz": (9, 8),
    "f8e4m3fn": (10, 8),
    "f8e4m3fnuz": (11, 8),
    "f8e5m2": (12, 8),
    "f8e5m2fnuz": (13, 8),
    "f8e8m0fnu": (14, 8),
    "f6e2m3fn": (15, 6),
    "f6e3m2fn": (16, 6),
    "f4e2m1fn": (17, 4),
}
# How a DLPack code prints in a message, as a printf format of the number of bits.
DTYPE_FORMATS = {0: "i%d", 1: "u%d", 2: "f%d", 3: "handle%d", 4: "bf%d", 5: "complex%d"} | {
    code: name for name, (code, _) in DTYPES.items() if code >= 6
}
