// Recording and replaying of instructions, from TT_OP_REPLAY of ckernel_ops.h: what Tenstorrent's compiler has of its own.
#pragma once

#include <cstdint>

#include "ckernel_ops.h"

namespace lltt {
enum ExecBool : bool { NoExec = false, Exec = true };

template <ExecBool executes = NoExec>
__attribute__((always_inline)) inline void record(std::uint32_t start, std::uint32_t length) {
    ckernel::instrn_buffer[0] = TT_OP_REPLAY(start, length, executes ? 1 : 0, 1);
}

__attribute__((always_inline)) inline void replay(std::uint32_t start, std::uint32_t length) {
    ckernel::instrn_buffer[0] = TT_OP_REPLAY(start, length, 0, 0);
}

constexpr std::uint32_t replay_insn(std::uint32_t start, std::uint32_t length) {
    return TT_OP_REPLAY(start, length, 0, 0);
}
}  // namespace lltt
