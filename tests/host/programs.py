"""Hand-written host programs for the tests: one passes its leaves on to a launch, which records them."""

import ctypes
import struct

import ml_dtypes
import numpy as np

from tilewright.base.signature import Dim, ScalarParam, Signature, TensorParam
from tilewright.targets.host.function import HostFunction

DECLARE_LAUNCH = f"declare i32 @__tw_launch(ptr, {', '.join(['i32'] * 11)}, ptr, i32, ptr)\n"


def dyn(**facts):
    return Dim(**facts)


def static(*values):
    return tuple(Dim(value=value) for value in values)


RUNTIME, ONE = dyn(), static(1)


def tensor(name="a", dtype="f32", shape=(RUNTIME,), stride=ONE, align=4):
    return TensorParam(name, dtype, tuple(shape), tuple(stride), align)


SCALE = Signature("scale", (tensor("x", align=4), ScalarParam("factor", "f32")))
SCALE_IR = """
define i32 @scale(ptr %x, i32 %n, float %factor, ptr %table) {
entry:
  br label %next
next:
  %i = phi i32 [ 0, %entry ], [ %i1, %step ]
  %more = icmp slt i32 %i, %n
  br i1 %more, label %step, label %end
step:
  %p = getelementptr float, ptr %x, i32 %i
  %v = load float, ptr %p
  %w = fmul float %v, %factor
  store float %w, ptr %p
  %i1 = add i32 %i, 1
  br label %next
end:
  ret i32 0
}
"""


def parameters(types):
    return ", ".join([*(f"{type_} %l{index}" for index, type_ in enumerate(types)), "ptr %table"])


def launch_call(config=(1,) * 9, smem=0, stream="null", flags=0, params="null", kernel=0):
    numbers = ", ".join(f"i32 {value}" for value in (kernel, *config, smem))
    return f"call i32 @__tw_launch(ptr %table, {numbers}, ptr {stream}, i32 {flags}, ptr {params})"


def leaf_program(signature):
    """A function that launches kernel 0 with its leaves as parameters."""
    types = [leaf.type for leaf in signature.leaves()]
    lines = [f"  %params = alloca [{max(len(types), 1)} x ptr]"]
    for index, type_ in enumerate(types):
        lines += [
            f"  %s{index} = alloca i64, align 16",
            f"  store i64 0, ptr %s{index}",
            f"  store {type_} %l{index}, ptr %s{index}",
            f"  %p{index} = getelementptr ptr, ptr %params, i32 {index}",
            f"  store ptr %s{index}, ptr %p{index}",
        ]
    body = "\n".join(lines)
    return (
        f"{DECLARE_LAUNCH}define i32 @{signature.name}({parameters(types)}) {{\n{body}\n"
        f"  %r = {launch_call(params='%params')}\n  ret i32 %r\n}}\n"
    )


def read_leaf(type_, address):
    """The value of a leaf at `address`, floats as Python floats."""
    raw = ctypes.string_at(address, 8)
    if type_ == "float":
        return struct.unpack("<f", raw[:4])[0]
    if type_ == "double":
        return struct.unpack("<d", raw)[0]
    if type_ in ("half", "bfloat"):
        return float(np.frombuffer(raw[:2], {"half": np.float16, "bfloat": ml_dtypes.bfloat16}[type_])[0])
    bits = {"ptr": 64}.get(type_) or int(type_[1:])
    value = int.from_bytes(raw, "little") & ((1 << bits) - 1)
    return value - (1 << bits) if type_ not in ("ptr", "i1") and value >> (bits - 1) else value


class Recorder:
    """A compiled function of `params` that records the leaves of each call."""

    def __init__(self, *params, name="f", **options):
        self.signature = Signature(name, params)
        self.types = [leaf.type for leaf in self.signature.leaves()]
        self.calls = []
        self.function = HostFunction(leaf_program(self.signature), self.signature, kernels=1, launch=self, **options)

    def __call__(self, config, kernel, params):
        self.calls.append([read_leaf(type_, params[index]) for index, type_ in enumerate(self.types)])

    def leaves(self, *arguments):
        """Call the function; what its leaves were."""
        self.function(*arguments)
        return self.calls[-1]
