"""`EnvironmentVarManager`: the settings as attributes."""

from __future__ import annotations

from typing import Any

from tilewright.base import settings

_NAMES = {
    "arch": "arch", "dump_dir": "dump_dir", "keep_ptx": "keep_ptx", "keep_cubin": "keep_cubin", "lineinfo": "lineinfo",
    "enable_assertions": "assertions", "enable_tvm_ffi": "tvm_ffi", "cuda_toolkit": "toolkit",
}  # fmt: skip


class EnvironmentVarManager:
    """Reads a setting at each access, so that changes of the environment are seen."""

    def __init__(self, prefix: str = "CUTE_DSL") -> None:
        self.prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(f"no setting {name!r}; there are {', '.join(_NAMES)}")
        return settings.get(_NAMES[name])
