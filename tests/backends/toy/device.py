"""The device of the toy back end: an interpreter of stage `cute`, over NumPy arrays."""

from __future__ import annotations

import numpy as np

from tests.passes import cute_interpreter
from tilewright.base.errors import ArgumentError, LaunchError
from tilewright.base.signature import ScalarParam, StreamParam, TensorParam
from tilewright.targets.device import Device, check_count


class ToyDevice(Device):
    """Interprets the host function, which launches the kernels."""

    last_stage = "cute"

    def __init__(self, artifact, checks):
        self._artifact = artifact
        self._params = [param for param in artifact.signature.params if not getattr(param, "env", False)]

    def run(self, values):
        check_count(self._params, values)
        arrays, scalars = {}, {}
        for param, value in zip(self._params, values, strict=True):
            if isinstance(param, TensorParam):
                arrays[param.name] = _array(param, value)
            elif isinstance(param, ScalarParam):
                scalars[param.name] = np.dtype(_NUMPY[param.dtype]).type(value)
            elif not isinstance(param, StreamParam):
                raise ArgumentError(f"{param.name}: the toy back end takes arrays and numbers")
        most = self._artifact.options.most_threads
        try:
            after = cute_interpreter.run(self._artifact.stages["cute"], arrays, scalars, most_threads=most)
        except cute_interpreter.Undefined as error:
            raise LaunchError(str(error), hint="--most-threads allows more") from error
        for name, array in arrays.items():
            array[...] = after[name]


_NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}


def _array(param, value):
    """The array given for a tensor, if it is one that the function was compiled for."""
    if not isinstance(value, np.ndarray) or not value.flags.c_contiguous or value.dtype != _NUMPY[param.dtype]:
        raise ArgumentError(f"{param.name}: a contiguous array of {param.dtype} is expected", values={"got": value})
    static = [dim.value for dim in param.shape]
    if len(static) != value.ndim or any(n not in (None, m) for n, m in zip(static, value.shape, strict=True)):
        raise ArgumentError(f"{param.name} has shape {value.shape}", values={"compiled for": static})
    return value
