"""The instructions that record timed regions, in the form of `profile_buffer`.

Nothing stands between a region and its two readings of the clock but the store of the first. Where the clock counts
instructions, `own` tells those of the recording from the kernel's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tilewright.targets.nvidia.profiling.profile_buffer import (
    EVENT_BYTES,
    HEAD_BYTES,
    IDLE,
    RECORD_HEAD_BYTES,
    WarpRecord,
    record_bytes,
)

CLOCK: Final = "%clock64"


def begin(warps: int, events: int) -> str:
    """$0 is the warp's record, $1 the number with which its events begin, $2 the memory."""
    return f"""{{
.reg .pred on;
.reg .b32 thread, most, at;
.reg .b64 x, y, z;
mov.u32 thread, %tid.z;
mov.u32 at, %tid.y;
mov.u32 most, %ntid.y;
mad.lo.u32 thread, thread, most, at;
mov.u32 at, %tid.x;
mov.u32 most, %ntid.x;
mad.lo.u32 thread, thread, most, at;
and.b32 at, thread, 31;
setp.eq.u32 on, at, 0;
mov.u32 at, 0xffffffff;
@on atom.global.add.u32 at, [$2], 1;
setp.lt.u32 on, at, {warps};
selp.b32 $1, 0, {IDLE}, on;
mul.wide.u32 x, at, {record_bytes(events)};
add.u64 x, x, $2;
add.u64 $0, x, {HEAD_BYTES};
shr.u32 thread, thread, 5;
mov.u64 x, %gridid;
@on st.global.u64 [$0], x;
mov.u32 at, %ctaid.z;
cvt.u64.u32 x, at;
mov.u32 at, %nctaid.y;
cvt.u64.u32 y, at;
mov.u32 at, %ctaid.y;
cvt.u64.u32 z, at;
mad.lo.u64 x, x, y, z;
mov.u32 at, %nctaid.x;
cvt.u64.u32 y, at;
mov.u32 at, %ctaid.x;
cvt.u64.u32 z, at;
mad.lo.u64 x, x, y, z;
@on st.global.u64 [$0+8], x;
@on st.global.u32 [$0+16], thread;
mov.u32 at, %smid;
@on st.global.u32 [$0+20], at;
mov.u64 x, %globaltimer;
@on st.global.u64 [$0+24], x;
mov.u64 x, {CLOCK};
@on st.global.u64 [$0+32], x;
}}"""


def event(code: int, events: int) -> str:
    """$0 is the number of the next event, $1 of this one, $2 the warp's record."""
    first = f"mov.u64 now, {CLOCK};\n"
    begins = not code & 1
    return f"""{{
.reg .pred on;
.reg .b64 now, code, at;
{"" if begins else first}mov.u64 code, {code};
mad.wide.u32 at, $1, {EVENT_BYTES}, $2;
setp.lt.u32 on, $1, {events};
add.u32 $0, $1, 1;
{first if begins else ""}@on st.global.v2.u64 [at+{RECORD_HEAD_BYTES}], {{now, code}};
}}"""


END: Final = f"""{{
.reg .pred on;
.reg .b32 one;
.reg .b64 x;
mov.u64 x, {CLOCK};
setp.lt.u32 on, $0, {IDLE};
@on st.global.u64 [$1+48], x;
mov.u64 x, %globaltimer;
@on st.global.u64 [$1+40], x;
@on st.global.u32 [$1+56], $0;
mov.u32 one, 1;
@on st.global.u32 [$1+60], one;
}}"""
"""$0 is the number of events that there were, $1 the warp's record."""


def _instructions(text: str) -> int:
    return sum(line.endswith(";") and not line.startswith(".reg") for line in text.splitlines())


def _before_clock(text: str) -> int:
    return _instructions(text.partition(CLOCK)[0].rpartition("\n")[0])


_HEAD = _instructions(begin(1, 1)) - _before_clock(begin(1, 1))
_EACH = _instructions(event(0, 1))
_BEFORE = _before_clock(event(0, 1)), _before_clock(event(1, 1))


def own(record: WarpRecord) -> WarpRecord:
    """The record of a warp whose clock counts its first thread's instructions, without those of the recording."""
    events = tuple(
        (clock - record.begin - _HEAD - _EACH * number - _BEFORE[ends], region, ends)
        for number, (clock, region, ends) in enumerate(record.events)
    )
    recording = _HEAD + _EACH * (len(events) + record.lost)
    return replace(record, begin=0, end=record.end - record.begin - recording, events=events)
