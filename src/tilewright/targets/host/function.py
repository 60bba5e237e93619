"""Compiled host functions that Python calls."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tilewright.base.signature import Signature
from tilewright.targets.host import abi, ffi
from tilewright.targets.host.bundle import compile_program, load_program, support_address
from tilewright.targets.host.front import call_key, make_front
from tilewright.targets.host.wrapper import export_name

Device = Literal["cuda", "emu"]
KernelParams = Any
"""`void**`: one pointer for each parameter of the kernel, to its value (a ctypes pointer to `c_void_p`)."""

Launch = Callable[["LaunchConfig", int, KernelParams], None]
"""Runs a launch in Python: configuration, number of the kernel from 0, parameters."""


@dataclass(frozen=True)
class LaunchConfig:
    """A launch: extents in blocks and threads, `smem` in bytes, `stream` a handle (0: the default stream)."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    smem: int
    stream: int
    cooperative: bool
    pdl: bool
    events: tuple[int, ...] = ()  # attributes that record an event, by their ids

    @classmethod
    def read(cls, raw: abi.CUlaunchConfig) -> LaunchConfig:
        """From the structure that `cuLaunchKernelEx` takes."""
        attributes = {raw.attributes[i].id: raw.attributes[i].value for i in range(raw.attribute_count)}
        cluster = attributes.get(abi.ATTRIBUTE_CLUSTER, (1, 1, 1))
        return cls(
            grid=tuple(raw.grid),
            block=tuple(raw.block),
            cluster=(cluster[0], cluster[1], cluster[2]),
            smem=raw.smem,
            stream=raw.stream or 0,
            cooperative=abi.ATTRIBUTE_COOPERATIVE in attributes,
            pdl=abi.ATTRIBUTE_PDL in attributes,
            events=tuple(
                sorted(attributes.keys() & {abi.ATTRIBUTE_PROGRAMMATIC_EVENT, abi.ATTRIBUTE_COMPLETION_EVENT})
            ),
        )


_PLAIN = ffi.needs_nothing()


class HostFunction:
    """A host function, compiled and loaded; calling it checks the arguments and runs it.

    Args:
        program: LLVM IR text (see `bundle.compile_program`), or the `object_bytes` of an earlier one, which need
            neither MLIR nor LLVM.
        signature: what it takes.
        entry: the symbol of the function in the text; by default the name of the signature.
        kernels: the handles of the kernels it launches, in the order of their numbers; or just how many there are,
            then kernel i has the handle i + 1.
        launch: the address of `cuLaunchKernelEx` or a function like it, or a Python function for the emulator.
            An exception that the latter raises comes out of the call.
        plain_launch: the address of `cuLaunchKernel`, for launches without attributes; 0: `launch` takes those too.
        device: `cuda`: tensors must be on a GPU, the current stream is asked for; `emu`: on the host.
        tensor_map: the address of cuTensorMapEncodeTiled, or for the emulator a Python function of its arguments as
            ctypes gives them, see `abi.TensorMapFunction`; 0: there are no tensor maps.
        contexts: addresses of the driver's `abi.CONTEXT_FUNCTIONS`, in that order.
        devices: how many devices there are: with several, a call uses the one of its tensors.
        describe_error: the name of an error number of the driver, for messages.
        keep_alive: held as long as the function.

    Raises:
        CompileError: the text is wrong, or it refers to a function that host code may not call.
    """

    def __init__(
        self,
        program: str | bytes,
        signature: Signature,
        *,
        entry: str | None = None,
        kernels: Sequence[int] | int = (),
        launch: int | Launch = 0,
        plain_launch: int = 0,
        device: Device = "emu",
        tensor_map: int | Callable[..., None] = 0,
        contexts: Sequence[int] = (),
        devices: int = 1,
        describe_error: Callable[[int], str] | None = None,
        keep_alive: object = None,
    ) -> None:
        handles = list(range(1, kernels + 1)) if isinstance(kernels, int) else list(kernels)
        if isinstance(program, str):
            program = compile_program(program, signature, entry=entry or signature.name, kernels=len(handles))
        self.object_bytes = program
        self.signature = signature
        self.launches = bool(handles)
        self._describe_error = describe_error
        self._pending = ffi.Pending()
        loaded = load_program(program)
        callback = None if isinstance(launch, int) else _launch_callback(launch, self._pending)
        address = launch if isinstance(launch, int) else _address(callback)
        functions = (ctypes.c_void_p * len(contexts))(*contexts) if contexts else None
        table = _fill_table(loaded.address(abi.TABLE), address, device, handles)
        table[abi.SLOT_PLAIN] = plain_launch
        if functions is not None:
            table[abi.SLOT_CONTEXTS] = ctypes.addressof(functions)
            table[abi.SLOT_ENTER] = support_address(loaded, "__tw_enter") if devices > 1 else 0
        encoder = None if isinstance(tensor_map, int) else _encoder_callback(tensor_map, self._pending)
        table[abi.SLOT_TENSOR_MAP] = tensor_map if isinstance(tensor_map, int) else _address(encoder)
        self._held = (loaded, callback, functions, encoder, keep_alive)
        self.address = loaded.address(export_name(signature))
        """Of the native function, as tvm-ffi calls it."""
        self.function = self.make_function()
        """The tvm-ffi function itself; its errors are tvm-ffi's."""

    def make_function(self) -> Any:
        """A tvm-ffi function of its own over the same code."""
        return ffi.make_function(self.address, self._held)

    def front(self, other: Callable[..., Any], failed: Callable[..., Any]) -> Callable[..., Any]:
        """A function of Python's own kind around the native code, see `front.make_front`."""
        return make_front(self._held[0].keep_alive, self.address, other, failed, self._held)

    @property
    def call_key(self) -> Callable[..., bytes | None]:
        """See `front.call_key`."""
        return call_key(self._held[0].keep_alive)

    def support_function(self, name: str) -> Any:
        """A tvm-ffi function over a function of the support code, which is the same for all programs."""
        return ffi.make_function(support_address(self._held[0], name), self._held)

    def __call__(self, *arguments: Any) -> None:
        """Check the arguments and run.

        Raises:
            ArgumentError: an argument does not fit its parameter.
            LaunchError: a launch was refused.
        """
        self._pending.error = None  # of a call that an interrupt ended
        held = None
        for argument in arguments:
            if type(argument) not in _PLAIN:
                arguments, held = ffi.prepare(arguments)  # type: ignore[assignment]
                break
        try:
            self.function(*arguments)
        except BaseException as error:  # noqa: BLE001  (tvm-ffi raises whatever class an error names)
            raised = self.raised(error)
        else:
            del held  # the views had to live until here
            if ffi.late.error is None:
                return
            raised = ffi.late.take() or KeyboardInterrupt()
        raise raised from None

    def raised(self, error: BaseException) -> BaseException:
        """The error to raise for one that `function` raised: a callback's own, else what native code said."""
        pending = self._pending.take()
        return pending if pending is not None else ffi.translate(error, self._describe_error)


def _launch_callback(launch: Launch, pending: ffi.Pending) -> Any:
    """`launch` with the C signature of `cuLaunchKernelEx`; what it raises waits in `pending`."""

    def call(config: Any, kernel: int, params: KernelParams, _: int) -> int:
        try:
            launch(LaunchConfig.read(config.contents), kernel - 1, params)
        except BaseException as error:  # noqa: BLE001  (must not cross native code; raised again behind it)
            pending.error = error
            return 1
        return 0

    return abi.LaunchFunction(call)


def _encoder_callback(encode: Callable[..., None], pending: ffi.Pending) -> Any:
    """`encode` with the C signature of `cuTensorMapEncodeTiled`; what it raises waits in `pending`."""

    def call(*arguments: Any) -> int:
        try:
            encode(*arguments)
        except BaseException as error:  # noqa: BLE001  (must not cross native code; raised again behind it)
            pending.error = error
            return 1
        return 0

    return abi.TensorMapFunction(call)


def _write(text: int, length: int) -> None:
    try:
        sys.stdout.write(ctypes.string_at(text, length).decode(errors="replace"))
    except BaseException as error:  # noqa: BLE001  (must not cross native code; raised again behind it)
        ffi.late.error = error


_write_callback = abi.WriteFunction(_write)


def _address(callback: Any) -> int:
    return ctypes.cast(callback, ctypes.c_void_p).value or 0


def _fill_table(address: int, launch: int, device: Device, kernels: Sequence[int]) -> Any:
    table = (ctypes.c_uint64 * (abi.FIRST_KERNEL + len(kernels))).from_address(address)
    table[abi.SLOT_LAUNCH] = launch
    table[abi.SLOT_SET_ERROR] = ffi.error_setter()
    table[abi.SLOT_ENV_STREAM] = ffi.c_function("TVMFFIEnvGetStream") if device == "cuda" else 0
    table[abi.SLOT_WRITE] = _address(_write_callback)
    table[abi.SLOT_SIGNALS] = ffi.c_function("TVMFFIEnvCheckSignals")
    table[abi.SLOT_DEVICES] = sum(1 << kind for kind in abi.DEVICES_OF[device])
    for index, handle in enumerate(kernels):
        table[abi.FIRST_KERNEL + index] = handle
    return table
