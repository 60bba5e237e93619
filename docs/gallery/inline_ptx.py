# %% [markdown]
# # Inline PTX
#
# This page teaches how to use an instruction that the language has no name for, with and without a result, and how
# to make an operation of it that reads like any other.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute

# %% [markdown]
# ## Without a result
#
# `cute.arch.inline_ptx` puts text into the PTX. `{$r0}` is the first of `read_only_args`: a number, or a pointer.
# Here it writes past the first level of cache.


# %%
@cute.kernel
def store_kernel(x: cute.Tensor, y: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    cute.arch.inline_ptx("st.global.cg.f32 [{$r0}], {$r1};", read_only_args=[y.iterator + i, x[i]])


@cute.jit
def store(x: cute.Tensor, y: cute.Tensor):
    store_kernel(x, y).launch(grid=1, block=cute.size(x))


x = np.arange(64, dtype=np.float32)
y = np.zeros_like(x)
compiled = cute.compile(store, x, y)
compiled(x, y)
print(np.array_equal(x, y), "st.global.cg.f32" in compiled.stages["ptx"])

# %% [markdown]
# ## With a result
#
# `inline_ptx` gives results too: `write_only_types` lists their types, and `{$w0}` is the first one
# ([the language](../language.md#tensors) has an example). Sources for CuTe DSL often use `llvm.inline_asm` of the MLIR
# dialects instead, which works here as well. Its operands are `$0`, `$1`, ..., results first; the constraints
# say in which registers they lie: `r` 32 bits, `l` 64 bits, `f` float, `=` a result. `dsl_user_op` makes the
# function an operation of the language: errors inside name the line of whoever calls it.
#
# `lop3.b32` computes any function of three bits, given as a table of eight bits. `0xE8` is the majority.

# %%
from tilewright.compat.dialects import llvm
from tilewright.cutlass_dsl import T


@cutlass.dsl_user_op
def majority(a: cute.Int32, b: cute.Int32, c: cute.Int32, *, loc=None, ip=None) -> cute.Int32:
    """Each bit as at least two of the three have it."""
    words = [cute.Int32(value).ir_value(loc=loc, ip=ip) for value in (a, b, c)]
    result = llvm.inline_asm(
        T.i32(), words, "lop3.b32 $0, $1, $2, $3, 0xE8;", "=r,r,r,r", has_side_effects=False, loc=loc, ip=ip
    )
    return cute.Int32(result)


@cute.kernel
def vote_kernel(votes: cute.Tensor, out: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    out[i] = majority(votes[0, i], votes[1, i], votes[2, i])


@cute.jit
def vote(votes: cute.Tensor, out: cute.Tensor):
    vote_kernel(votes, out).launch(grid=1, block=cute.size(out))


votes = np.random.default_rng(0).integers(0, 2**31, (3, 64), dtype=np.int32)
out = np.zeros(64, np.int32)
vote(votes, out)
a, b, c = votes
print(np.array_equal(out, (a & b) | (a & c) | (b & c)))

# %% [markdown]
# ## When the text is wrong
#
# Constraints are checked before LLVM sees them, and PTX that the assembler refuses is an error with its message.
# The emulator reads the same PTX, so a wrong instruction is found without a GPU as well.


# %%
@cute.kernel
def wrong_kernel(y: cute.Tensor):
    cute.arch.inline_ptx("st.global.f32 [{$r0}], {$r1};", read_only_args=[y.iterator])


@cute.jit
def wrong(y: cute.Tensor):
    wrong_kernel(y).launch(grid=1, block=1)


try:
    cute.compile(wrong, y)
except cutlass.CompileError as error:
    print(error.message.split(",")[0])

# %% [markdown]
# ## Where to go on
#
# * [Extending the compiler](../extending.md): operations with rules of their own, which passes understand.
# * [The emulator](../emulator-reference.md#what-it-executes): the instructions that it knows.
