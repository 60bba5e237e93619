"""Run any PTX on NumPy arrays, without a GPU."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilewright.base import settings
from tilewright.base.errors import ArgumentError, EmulationError
from tilewright.targets.emu import Buffer, Debugger, Device, Devices, Options, Report, Step, Stop, launch, load
from tilewright.targets.emu.checks import (
    STANDARD,
    Access,
    AsyncCopies,
    Barriers,
    Batch,
    Bounds,
    HappensBefore,
    Observer,
    Proxies,
    Races,
    Unwritten,
    WgmmaRegisters,
)
from tilewright.targets.emu.debug import Spectator
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.options import Checks
from tilewright.targets.emu.ptx import Module, Variable
from tilewright.targets.emu.ptx import parse as parse_ptx
from tilewright.targets.emu.ptx.edit import edit as edit_ptx
from tilewright.targets.emu.recording import reports_of

__all__ = [
    "Access", "AsyncCopies", "Barriers", "Batch", "Bounds", "Debugger", "Device", "Devices", "EmulationError", "Fault",
    "HappensBefore", "Module", "Observer", "Proxies", "Races", "Report", "STANDARD", "Spectator", "Step", "Stop",
    "Unwritten", "WgmmaRegisters", "devices", "edit_ptx", "observe", "parse_ptx", "run_ptx", "trace",
]  # fmt: skip


def run_ptx(
    ptx: str,
    kernel: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    cluster: int | Sequence[int] = (1, 1, 1),
    smem: int = 0,
    checks: Checks = True,
    *,
    seed: int | None = None,
    limit: int | None = None,
    counters: bool = False,
    lockstep: bool = False,
    debugger: Spectator | None = None,
    progress: bool | None = None,
    timeout: float | None = None,
    collect: bool = False,
    thread_clock: bool = False,
) -> Report:
    """Run a kernel of a PTX text; arrays are read and written in place.

    Args:
        ptx: the text, of any producer.
        kernel: the name of the entry.
        grid, block, cluster: (x, y, z), in blocks, threads and blocks; a number stands for (x, 1, 1).
        args: one for each parameter: NumPy arrays or CPU tensors for pointers (a read-only array makes writes an
            error), numbers for scalars (a Python float fits the parameter's width), `bytes` for structures, None for
            a null pointer.
        smem: dynamic shared memory in bytes.
        checks: True raises at the first error or race; "collect" gathers all findings in the report; False is fast
            and finds only accesses out of bounds. A list has the classes of the checkers (`Observer`), in which True
            stands for all standard ones: `[True, Mine]` adds one, `[Races, Mine]` looks for these alone.
        seed: the order of blocks and warps; default: the setting `TILEWRIGHT_SEED`.
        limit: the most blocks of code to run, for kernels that may not end.
        counters: count sectors of global memory and wavefronts of shared memory, by instruction.
        debugger: traces threads, stops at lines, watches addresses; see `tilewright.emulate.Debugger`.
        lockstep: report races within a warp too, and take votes, shuffles and the like for no order; these races show
            on no hardware while a warp runs in lockstep.
        progress: whether a kernel that takes long says how far it is and which loop it is in: a bar on stderr from the
            first second on, if that is a terminal; else, and in pytest and CI, a line after 5 seconds, 10, 20, and so
            on. Default: the setting `TILEWRIGHT_PROGRESS`; True is a bar in every terminal.
        timeout: the most seconds that the kernel may run; default: the setting `TILEWRIGHT_TIMEOUT`.
        collect: gather findings in the report whatever the checks.
        thread_clock: `%clock64` counts the instructions that the thread has executed, not the time of the launch.

    Raises:
        EmulationError: the text is not PTX that is known here, or the kernel did something undefined. It names the
            PTX line, the source line where the text has one, block and thread.
        ArgumentError: the launch does not fit the kernel.
    """
    if not isinstance(ptx, str):
        raise ArgumentError(
            f"the PTX is a text, not {type(ptx).__name__}",
            hint="compiled.stages['ptx'], or Path('file.ptx').read_text()",
        )
    chosen = settings.get("seed") if seed is None else seed
    options = Options(
        checks,
        chosen,
        limit,
        counters=counters,
        lockstep=lockstep,
        debugger=debugger,
        progress=progress,
        timeout=timeout,
        collect=collect,
        thread_clock=thread_clock,
    )
    program = load(ptx)
    program.reset()
    image = program.image(kernel, options.checked)
    formals = image.kernel.params
    if len(args) != len(formals):
        raise ArgumentError(
            f"kernel {kernel} takes {len(formals)} parameters, {len(args)} were given",
            values={"parameters": ", ".join(f"{formal.name} ({formal.size} bytes)" for formal in formals) or "none"},
            hint="an array for an address (8 bytes), a number for the others",
        )
    buffers: list[Buffer] = []
    params = [
        _encode(arg, formal, index, buffers) for index, (arg, formal) in enumerate(zip(args, formals, strict=True))
    ]
    if debugger is not None:
        debugger.learn(program)
        debugger.check()
    return launch(program, kernel, grid, block, params, cluster=cluster, smem=smem, buffers=buffers, options=options)


def devices(count: int, *, seed: int | None = None, late: bool | None = None) -> Devices:
    """Emulate several devices: what this thread calls in a block `with emulate.devices(2) as them` is queued on them.

    A call runs on the device whose memory its arrays are in (`them[0].empty`), on the one chosen by `with them[1]:`
    otherwise, on device 0 by default. Launches queue by stream, and all devices' queues run together, under one
    scheduler, at `them.synchronize()` and at the end of the block: kernels of different devices can wait for each
    other. All memory made by `empty` is visible to all devices.

    Args:
        seed: the order in which devices, blocks and warps take turns; default: the setting `TILEWRIGHT_SEED`.
        late: whether a device sees what another one writes as late as it may, in any order, until that is released in
            scope sys; default: with an odd seed.

    Raises:
        ArgumentError: a number of devices that cannot be.
    """
    return Devices(count, seed, late)


@contextmanager
def observe(
    *,
    checks: Checks | None = None,
    seed: int | None = None,
    limit: int | None = None,
    counters: bool | None = None,
    lockstep: bool | None = None,
    debugger: Spectator | None = None,
    progress: bool | None = None,
    timeout: float | None = None,
    collect: bool | None = None,
) -> Iterator[list[Report]]:
    """Look on at compiled functions: what this thread calls inside the block runs on the emulator with these options.

    The value is the list of reports, one for each kernel launched, in order. The options are those of `run_ptx`; those
    left out stay as they are. Functions of target `cuda` are not seen.

    Raises:
        ArgumentError: at the end of the block, if the debugger should have stopped at a line of no instruction.
    """
    given: dict[str, Any] = {
        "checks": checks, "seed": seed, "limit": limit, "counters": counters, "lockstep": lockstep,
        "debugger": debugger, "progress": progress, "timeout": timeout, "collect": collect,
    }  # fmt: skip
    with reports_of(**{name: value for name, value in given.items() if value is not None}) as reports:
        yield reports
    if debugger is not None and reports:
        debugger.check()


def trace(
    ptx: str,
    kernel: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    *,
    at_block: int | tuple[int, int, int] = 0,
    at_thread: int | tuple[int, int, int] = 0,
    **options: Any,
) -> list[Step]:
    """Run a kernel and return what one thread did: its instructions with the registers that each wrote.

    `options` are those of `run_ptx`. Printing a step shows its line, instruction and values.
    """
    debugger = Debugger(block=at_block, thread=at_thread)
    run_ptx(ptx, kernel, grid, block, args, debugger=debugger, **options)
    return debugger.steps


def _encode(arg: Any, formal: Variable, index: int, buffers: list[Buffer]) -> bytes:
    """The bytes of an argument; memory that it brings is added to `buffers`."""
    if arg is None:
        return bytes(formal.size)
    if isinstance(arg, bytes | bytearray):
        return bytes(arg)
    buffer = _memory(arg, index)
    if buffer is not None:
        if formal.size != 8:
            raise _misfit(arg, formal, index, "an array goes to a 64-bit parameter")
        buffers.append(buffer)
        return struct.pack("<Q", buffer.address)
    if isinstance(arg, np.generic):
        if arg.nbytes != formal.size:
            raise _misfit(arg, formal, index, f"{arg.dtype} has {arg.nbytes} bytes")
        return arg.tobytes()
    if isinstance(arg, float):
        return _encode_float(arg, formal, index)
    if isinstance(arg, int):
        return _encode_int(arg, formal, index)
    raise _misfit(arg, formal, index, "pass an array, a number, bytes or None")


def _encode_float(arg: float, formal: Variable, index: int) -> bytes:
    kinds = {2: "<f2", 4: "<f4", 8: "<f8"}
    if formal.size not in kinds or formal.type[0] in "us":
        raise _misfit(arg, formal, index, "a float does not fit here")
    return np.array(arg, kinds[formal.size]).tobytes()


def _encode_int(arg: int, formal: Variable, index: int) -> bytes:
    if formal.type in ("f32", "f64", "f16"):
        return _encode_float(float(arg), formal, index)
    bits = 8 * formal.size
    if bits > 64 or not -(1 << (bits - 1)) <= arg < 1 << bits:
        raise _misfit(arg, formal, index, f"it does not fit in {bits} bits")
    return (arg & (1 << bits) - 1).to_bytes(formal.size, "little")


def _memory(arg: Any, index: int) -> Buffer | None:
    """The memory behind an array or a CPU tensor."""
    name = f"argument {index}"
    if isinstance(arg, np.ndarray):
        low, high = np.lib.array_utils.byte_bounds(arg)
        return Buffer(low, high - low if arg.size else 0, bool(arg.flags.writeable), name)
    if hasattr(arg, "data_ptr") and hasattr(arg, "untyped_storage"):
        storage = arg.untyped_storage()
        return Buffer(int(storage.data_ptr()), int(storage.nbytes()), True, name)
    return None


def _misfit(arg: Any, formal: Variable, index: int, why: str) -> ArgumentError:
    kind = f".{formal.type}" + (f" ({formal.size} bytes)" if formal.size > 8 else "")
    return ArgumentError(f"argument {index} does not fit parameter {formal.name}: {why}",
                         values={"argument": repr(arg)[:80], "parameter": kind})  # fmt: skip
