"""Products by `gemm_sm90` for tensors of given shapes and strides: whether it takes them, and what runs.

The copy engine takes matrices whose address and strides are multiples of 16 bytes, with one contiguous mode, which is K
for elements of other than 16 bits. `gemm_sm80` has the others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright.cute as cute
from tilewright.base import settings
from tilewright.compiler.target_choice import choose_arch
from tilewright.hw.chips import chip
from tilewright.kernels import views
from tilewright.kernels.gemm_epilogue import Fused
from tilewright.kernels.gemm_sm90 import launch_gemm_sm90, launch_gemm_sm90_fused
from tilewright.kernels.gemm_sm90_plans import CONSUMERS, GRAIN_BITS, Kind, Sm90Plan, sm90_plans
from tilewright.kernels.launching import address_of, on_gpu
from tilewright.utils import HardwareInfo

_MOST_BATCH_MODES = 3
_MOST_EXTENT = 1 << 31
_EMULATED_MULTIPROCESSORS = 132  # those of an H100


@dataclass(frozen=True)
class Sm90Call:
    """What runs for tensors of one configuration: the executor, the views that it takes, and its workspace.

    `views` are those of A, of B and of D, where the caller has no epilogue; `stores` is whether one `stores` D then.
    """

    executor: Callable[..., None]
    views: tuple[views.Strided | None, ...]
    clusters: int
    accumulator: type[cute.Numeric]
    workspace: int
    counters: int
    stores: bool

    def plain(self, out: Any, a: Any, b: Any) -> None:
        """out = a · b."""
        result = _seen(self.views[2], out)
        self._run(a, (result,) if self.stores else result, a, b)

    def fused(self, a: Any, b: Any, arguments: tuple[Any, ...]) -> None:
        """The epilogue of a · b, on its arguments."""
        self._run(a, arguments, a, b)

    def _run(self, like: Any, results: Any, a: Any, b: Any) -> None:
        a, b = _seen(self.views[0], a), _seen(self.views[1], b)
        if not self.workspace:
            self.executor(a, b, results, self.clusters)
            return
        counters = views.empty(like, (self.counters,), cute.Int32)
        counters.fill(0) if isinstance(counters, np.ndarray) else counters.zero_()
        workspace = views.empty(like, (self.workspace,), self.accumulator)
        self.executor(a, b, results, self.clusters, workspace, counters)


def _seen(view: views.Strided | None, tensor: Any) -> Any:
    return tensor if view is None else view.of(tensor)


def has_sm90(gpu: bool) -> bool:
    """Whether code is compiled for sm_90a, which has `wgmma`."""
    return _arch(gpu, settings.get("arch")) == "sm_90a"


@functools.cache
def _arch(gpu: bool, wanted: str) -> str:
    return choose_arch(wanted, "cuda" if gpu else "emu")


def candidates(matrices: Sequence[views.Strided], tensors: Sequence[Any], splits: bool = True) -> list[Sm90Plan]:
    """The plans for A, B and D, seen as (batch..., rows, columns), the best first; none where TMA cannot copy A and B.

    D is left out where an epilogue stores. A D that TMA cannot copy is stored by an epilogue, too.
    """
    gpu = on_gpu(tensors[0])
    if not has_sm90(gpu):
        return []
    kind = kind_of(matrices, tensors)
    if kind is None:
        return []
    (*batch, m, k), n = matrices[0].shape, matrices[1].shape[-1]
    return sm90_plans(kind, (m, n, k, math.prod(batch)), multiprocessors(gpu), shared_capacity(gpu), splits)


def kind_of(matrices: Sequence[views.Strided], tensors: Sequence[Any]) -> Kind | None:
    """What is multiplied, where the copy engine and `wgmma` take A and B; A may have 8 bits where B has 16."""
    held, dtype = views.dtype_of(tensors[0]), views.dtype_of(tensors[1])
    narrow = None if held is dtype else held
    if dtype.width > 32 or 0 in (*matrices[0].shape, *matrices[1].shape):
        return None
    if not all(is_copied(*pair) for pair in zip(matrices[:2], tensors[:2], strict=True)):
        return None
    a, b, *results = matrices
    for matrix in (a, b):  # either one for each of the batch, or one matrix
        if any(matrix.strides[:-2]) and not all(matrix.strides[:-2]):
            return None
    if len(a.shape) > 2 and not any((*a.strides[:-2], *b.strides[:-2])):
        return None
    k_major = _last_is_contiguous(a), not _last_is_contiguous(b)
    if (dtype.width != 16 and not all(k_major)) or (narrow and not k_major[0]):
        return None
    if not results or not is_copied(results[0], tensors[2]):
        return Kind(dtype, k_major, None, True, narrow)
    return Kind(dtype, k_major, views.dtype_of(tensors[2]), _last_is_contiguous(results[0]), narrow)


def is_copied(matrix: views.Strided, tensor: Any) -> bool:
    """Whether a tensor map can describe a tensor, seen as this matrix."""
    dtype, start = views.dtype_of(tensor), address_of(tensor)
    if start * 8 % GRAIN_BITS or len(matrix.shape) > 2 + _MOST_BATCH_MODES or max(matrix.shape) >= _MOST_EXTENT:
        return False
    inner = _inner(matrix)
    for mode, (extent, stride) in enumerate(zip(matrix.shape, matrix.strides, strict=True)):
        step = stride * dtype.width
        if mode - len(matrix.shape) == inner:
            if stride != 1 and extent > 1:
                return False
        elif extent > 1 and (step < 0 or step % GRAIN_BITS or (step == 0 and mode - len(matrix.shape) >= -2)):
            return False
    return True


def _inner(matrix: views.Strided) -> int:
    """Which mode is contiguous: -1, or -2 where only that one is."""
    (rows, columns), (down, along) = matrix.shape[-2:], matrix.strides[-2:]
    return -2 if down == 1 and rows > 1 and (along != 1 or columns == 1) else -1


def _last_is_contiguous(matrix: views.Strided) -> bool:
    return _inner(matrix) == -1


def described(matrix: views.Strided, dtype: type[cute.Numeric]) -> views.Strided:
    """The matrix with strides that a tensor map takes where an extent is 1, and one batch where all are the same."""
    grain, inner = GRAIN_BITS // dtype.width, _inner(matrix)
    shared = len(matrix.shape) > 2 and not any(matrix.strides[:-2])
    shape, strides = list(matrix.shape), list(matrix.strides)
    for mode in range(-len(shape), 0):
        if mode < -2 and shared:
            shape[mode] = 1
        if mode == inner:
            strides[mode] = 1
        elif shape[mode] == 1:
            strides[mode] = grain
    return views.Strided(tuple(shape), tuple(strides))


def prepare(
    matrices: Sequence[views.Strided], tensors: Sequence[Any], plan: Sm90Plan, fused: Fused | None = None
) -> Sm90Call:
    """What runs for A, B and D, seen as (batch..., rows, columns), with this plan and the epilogue that is `fused`."""
    gpu = on_gpu(tensors[0])
    seen, clusters = shape_of_call(matrices, tensors, plan, fused is None)
    works = works_of(matrices, plan)
    size = plan.cluster[0] * plan.cluster[1]
    shared = plan.splits > 1
    counters = works * size * CONSUMERS if shared else 0
    sums = works * size * plan.tile[0] * plan.tile[1] if shared else 0
    executor = _executor(plan, fused, len(matrices[0].shape), "cuda" if gpu else "emu")
    return Sm90Call(executor, seen, clusters, plan.accumulator, sums, counters, fused is not None)


def works_of(matrices: Sequence[views.Strided], plan: Sm90Plan) -> int:
    """Tiles of clusters, times the blocks that share each."""
    (*batch, m, _), n = matrices[0].shape, matrices[1].shape[-1]
    down, along = -(-m // (plan.tile[0] * plan.cluster[0])), -(-n // (plan.tile[1] * plan.cluster[1]))
    return down * along * math.prod(batch) * plan.splits


def shape_of_call(
    matrices: Sequence[views.Strided], tensors: Sequence[Any], plan: Sm90Plan, stores: bool = True
) -> tuple[tuple[views.Strided | None, ...], int]:
    """The views that a call takes of A, B and D, which the copy engine `stores` or not, and how many clusters run."""
    copied = len(matrices) if stores else 2
    seen = tuple(
        (described(matrix, views.dtype_of(tensor)) if number < copied else matrix).unless_of(
            tensor.shape, views.strides_of(tensor)
        )
        for number, (matrix, tensor) in enumerate(zip(matrices, tensors, strict=True))
    )
    resident = resident_clusters(on_gpu(tensors[0]), plan.cluster[0] * plan.cluster[1])
    return seen, max(min(works_of(matrices, plan), resident), 1)


@functools.cache
def _executor(plan: Sm90Plan, fused: Fused | None, rank: int, target: str) -> Any:
    """What runs `compiled`."""
    return views.quick(compiled(plan, fused, rank, target))


def compiled(plan: Sm90Plan, fused: Fused | None, rank: int, target: str, options: str = "") -> Any:
    """The compiled function of A and B of so many modes, with any extents and strides, and D or what is fused takes."""
    a = fake(plan.held[0], rank, plan.k_major[0])
    b = fake(plan.held[1], rank, not plan.k_major[1])
    workspace = counters = None
    if plan.splits > 1:
        workspace, counters = (
            cute.runtime.make_fake_tensor(dtype, (cute.sym_int64(),), stride=(1,), assumed_align=16)
            for dtype in (plan.accumulator, cute.Int32)
        )
    clusters = cute.Int32(1)
    if fused is not None:
        given = fused.epilogue.fake_arguments()
        fakes: tuple[Any, ...] = a, b, given, clusters, workspace, counters, plan, fused
        return cute.compile(launch_gemm_sm90_fused, *fakes, target=target, options=options)
    assert plan.result is not None
    d = fake(plan.result, rank, plan.n_major)
    fakes = a, b, d, clusters, workspace, counters, plan
    return cute.compile(launch_gemm_sm90, *fakes, target=target, options=options)


def fake(dtype: type[cute.Numeric], rank: int, last: bool) -> Any:
    """A tensor to compile for, whose last mode is contiguous, or the one before it."""
    grain = GRAIN_BITS // dtype.width
    strides: list[Any] = [cute.sym_int64(divisibility=grain) for _ in range(rank)]
    strides[-1 if last else -2] = 1
    return cute.runtime.make_fake_tensor(dtype, views.symbols(rank), stride=tuple(strides), assumed_align=16)


@functools.cache
def resident_clusters(gpu: bool, size: int) -> int:
    """How many clusters run at once."""
    return HardwareInfo().get_max_active_clusters(size) if gpu else _EMULATED_MULTIPROCESSORS // size


def shared_capacity(gpu: bool) -> int:
    """Bytes of shared memory that a block may have."""
    return chip(_arch(gpu, settings.get("arch"))).shared_optin


@functools.cache
def multiprocessors(gpu: bool) -> int:
    """Multiprocessors of the device; of an H100 on the emulator."""
    return HardwareInfo().get_device_multiprocessor_count() if gpu else _EMULATED_MULTIPROCESSORS
