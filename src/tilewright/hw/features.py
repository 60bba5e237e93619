"""Which chip and which PTX version each instruction needs.

Source: PTX ISA, "PTX ISA Notes" and "Target ISA Notes" of each instruction; every row is checked against
ptxas by `tests/nvidia/test_features_ptxas.py`. Names are PTX spellings, a suffix after the instruction picks a form.

Compilers abort or fail late on an instruction that the target lacks, so lowering calls `require` first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.hw.chips import CHIPS, Chip, chip, version_key


@dataclass(frozen=True)
class Need:
    """What one feature needs: PTX version, and either a chip number or one of a few exact targets.

    With `only` empty every target whose number is at least `since` has it. `ptx_by_chip` has the PTX
    versions of chips, by number, that got it after the others.
    """

    ptx: str
    since: int = 75
    only: frozenset[str] = frozenset()
    ptx_by_chip: Mapping[int, str] = field(default_factory=dict)

    def met_by(self, target: Chip) -> bool:
        return target.arch in self.only if self.only else target.number >= self.since

    def ptx_on(self, target: Chip) -> str:
        """The first PTX version that has the feature on this target."""
        return self.ptx_by_chip.get(target.number, self.ptx)

    def targets(self) -> tuple[str, ...]:
        """The targets that have the feature, oldest first."""
        return tuple(arch for arch, target in CHIPS.items() if self.met_by(target))


def _targets(text: str) -> frozenset[str]:
    return frozenset(f"sm_{part}" for part in text.split())


_SPECIFIC: Final = _targets("90a 100a 100f 103a 103f 110a 110f 120a 120f 121a 121f")
_BLACKWELL: Final = _SPECIFIC - _targets("90a")
_DATACENTER: Final = _targets("100a 100f 103a 103f")
_TENSOR_MEMORY: Final = _DATACENTER | _targets("110a 110f")
_GEFORCE: Final = _targets("120a 120f 121a 121f")

# One row: the features that share a chip condition, each with its PTX version.
_ROWS: Final[tuple[tuple[int | frozenset[str], dict[str, str]], ...]] = (
    (
        75,
        {
            "activemask": "6.3",
            "match.sync": "6.3",
            "shfl.sync": "6.3",
            "nanosleep": "6.3",
            "f16.fma": "6.3",
            "dp4a": "6.3",
            "ld.acquire": "6.3",
            "atom.add.f16x2": "6.3",
            "atom.add.f64": "6.3",
            "atom.cas.b16": "6.3",
            "ldmatrix": "6.5",
            "mma.m16n8k8.f16": "6.5",
            "tanh.approx.f32": "7.0",
            "tanh.approx.f16x2": "7.0",
            "ex2.approx.f16x2": "7.0",
            "alloca": "7.3",
            "ld.L1::evict_last": "7.4",
            "ld.L1::no_allocate": "7.4",
            "ld.L2::128B": "7.4",
            "fence.proxy.alias": "7.5",
            "szext": "7.6",
            "bmsk": "7.6",
            "movmatrix": "7.8",
            "ld.b128": "8.3",
        },
    ),
    (
        80,
        {
            "cp.async": "7.0",
            "cp.async.mbarrier": "7.0",
            "mbarrier": "7.0",
            "redux.sync": "7.0",
            "mma.m16n8k16.f16": "7.0",
            "mma.bf16": "7.0",
            "mma.tf32": "7.0",
            "mma.s8": "7.0",
            "mma.f64": "7.0",
            "cvt.bf16": "7.0",
            "cvt.bf16x2": "7.0",
            "cvt.f16x2": "7.0",
            "cvt.satfinite.f16x2": "8.1",
            "cvt.tf32": "7.0",
            "bf16.fma": "7.0",
            "bf16.min": "7.0",
            "f16.min": "7.0",
            "min.NaN": "7.0",
            "mbarrier.test_wait.parity": "7.1",
            "mma.sp": "7.1",
            "cvt.f32.bf16": "7.1",
            "ld.L2::cache_hint": "7.4",
            "createpolicy": "7.4",
            "applypriority": "7.4",
            "discard": "7.4",
        },
    ),
    (86, {"min.xorsign": "7.2"}),
    (89, {"cvt.f8x2": "7.8", "cvt.f16x2.f8x2": "7.8", "mma.f8": "8.4"}),
    (
        90,
        {
            "cluster": "7.8",
            "barrier.cluster": "7.8",
            "mapa": "7.8",
            "getctarank": "7.8",
            "ld.shared::cluster": "7.8",
            "isspacep.shared::cluster": "7.8",
            "fence.cluster": "7.8",
            "mbarrier.try_wait": "7.8",
            "stmatrix": "7.8",
            "bf16.add": "7.8",
            "tanh.approx.bf16x2": "7.8",
            "ex2.approx.bf16x2": "7.8",
            "griddepcontrol": "7.8",
            "atom.add.bf16x2": "7.8",
            "elect.sync": "8.0",
            "barrier.cluster.relaxed": "8.0",
            "mbarrier.expect_tx": "8.0",
            "mbarrier.remote_arrive": "8.0",
            "fence.proxy.async": "8.0",
            "fence.mbarrier_init": "8.0",
            "cp.async.bulk": "8.0",
            "cp.async.bulk.prefetch": "8.0",
            "cp.reduce.async.bulk": "8.0",
            "cp.async.bulk.tensor": "8.0",
            "cp.async.bulk.tensor.multicast": "8.0",
            "cp.reduce.async.bulk.tensor": "8.0",
            "prefetch.tensormap": "8.0",
            "st.async": "8.1",
            "red.async": "8.1",
            "multimem": "8.1",
            "red.v4.f32": "8.1",
            "red.v4.bf16x2": "8.1",
            "tensormap.cp_fenceproxy": "8.3",
            "fence.proxy.tensormap": "8.3",
            "atom.b128": "8.3",
            "fence.sync_restrict": "8.6",
            "cp.async.bulk.shared::cta": "8.6",
            "cp.async.bulk.tensor.shared::cta": "8.6",
        },
    ),
    (
        100,
        {
            "f32x2": "8.6",
            "cp.async.bulk.tensor.gather4": "8.6",
            "clusterlaunchcontrol": "8.6",
            "min.f32.3": "8.8",
            "ld.v8.b32": "8.8",
        },
    ),
    (_targets("90a"), {"wgmma": "8.0", "wgmma.sp": "8.2", "wgmma.s8.u8": "8.4"}),
    (_SPECIFIC, {"setmaxnreg": "8.0", "tensormap.replace": "8.3"}),
    (
        _BLACKWELL,
        {"ldmatrix.b8": "8.6", "stmatrix.b8": "8.6", "cvt.f4x2": "8.6", "cvt.f6x2": "8.6", "cvt.ue8m0x2": "8.6"},
    ),
    (
        _TENSOR_MEMORY,
        {"tcgen05": "8.6", "tcgen05.mma": "8.6", "tcgen05.ld": "8.6", "cp.async.bulk.tensor.cta_group": "8.6"},
    ),
    (_DATACENTER, {"redux.sync.f32": "8.6"}),
    (_targets("100a 103a"), {"cvt.rs": "8.7"}),
    (_targets("100a 110a"), {"tcgen05.mma.i8": "8.6"}),
    (_targets("100a 103a 110a"), {"tcgen05.mma.mxf4": "8.6"}),
    (_GEFORCE, {"mma.f8f6f4": "8.7", "mma.block_scale": "8.7"}),
)

# Ada got Hopper's conversions to and from 8-bit floats three versions after Hopper.
_PTX_BY_CHIP: Final[dict[str, dict[int, str]]] = {"cvt.f8x2": {89: "8.1"}, "cvt.f16x2.f8x2": {89: "8.1"}}


def _table() -> dict[str, Need]:
    table: dict[str, Need] = {}
    for where, versions in _ROWS:
        for name, ptx in versions.items():
            ptx_by_chip = _PTX_BY_CHIP.get(name, {})
            exact: frozenset[str] = frozenset() if isinstance(where, int) else where
            table[name] = Need(ptx, where if isinstance(where, int) else 0, exact, ptx_by_chip)
    return table


FEATURES: Final[dict[str, Need]] = _table()
"""Every feature by name."""

LLVM_PTX_VERSIONS: Final = (
    "3.2", "4.0", "4.1", "4.2", "4.3", "5.0", "6.0", "6.1", "6.2", "6.3", "6.4", "6.5",
    "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8",
    "8.0", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6", "8.7", "8.8", "9.0",
)  # fmt: skip
"""The PTX versions for which LLVM 22's NVPTX backend has a feature; it ignores others without a word."""


def _need(feature: str) -> Need:
    need = FEATURES.get(feature)
    if need is None:
        raise CompileError(f"unknown hardware feature {feature!r}", hint=f"features: {', '.join(sorted(FEATURES))}")
    return need


def supports(feature: str, arch: str) -> bool:
    """Whether `arch` has the feature, in whatever PTX version."""
    return _need(feature).met_by(chip(arch))


def require(feature: str, arch: str, *, operation: str = "", location: SourceLocation | None = None) -> None:
    """Refuse an operation that the target lacks.

    Args:
        feature: a key of `FEATURES`.
        arch: the target.
        operation: what the user wrote, for the message; the feature's name if empty.
        location: the user's line.

    Raises:
        CompileError: naming the operation, the target, and the targets that have it.
    """
    need = _need(feature)
    target = chip(arch)
    if need.met_by(target):
        return
    values = {"operation": operation or feature, "architecture": target.arch, "instruction": feature}
    raise CompileError(
        f"{operation or feature} is not available on {target.arch} ({target.name})",
        location=location,
        values=values,
        hint=f"compile for {_choice(need)}, or choose another operation",
    )


def _choice(need: Need) -> str:
    if not need.only:
        return f"sm_{need.since} or newer"
    return f"one of {', '.join(need.targets())}"


def ptx_version(arch: str, features: Iterable[str] = ()) -> str:
    """The lowest PTX version that knows the target and every one of `features`.

    Old drivers refuse new PTX, so no higher version than needed is asked for.

    Raises:
        CompileError: the target lacks one of the features, or a feature is unknown.
    """
    target = chip(arch)
    version = target.ptx
    for feature in features:
        require(feature, arch)
        version = max(version, FEATURES[feature].ptx_on(target), key=version_key)
    return version
