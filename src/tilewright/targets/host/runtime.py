"""The support code that every host object carries, as LLVM IR: errors, printf, launches, 16-bit floats.

`@__tw_launch` is what compiled host code calls for a launch, `@__tw_raise` for a failed assertion, `@__tw_printf`
for printing. They reach the process only through the pointer table (`abi.py`). `@__tw_enter` and `@__tw_leave` make
the launch use the device of the tensors.
"""

from __future__ import annotations

import functools

from tilewright.hw import launches
from tilewright.targets.host import abi
from tilewright.targets.host.halves import HALVES_IR
from tilewright.targets.host.irtext import Strings, name_table

_MESSAGE_SIZE = 2048

_ERRORS = """
declare void @llvm.va_start.p0(ptr)
declare void @llvm.va_copy.p0(ptr, ptr)
declare void @llvm.va_end.p0(ptr)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @vsnprintf(ptr, i64, ptr, ptr)
declare i32 @snprintf(ptr, i64, ptr, ...)
declare i64 @strlen(ptr)

; Sets an error of a kind (a class of tilewright.base.errors) and returns RAISED.
define i32 @__tw_raise(ptr %table, ptr %kind, ptr %message) cold noinline {{
  %slot = getelementptr i64, ptr %table, i64 {set_error}
  %set_error = load ptr, ptr %slot
  call void %set_error(ptr %kind, ptr %message)
  ret i32 {raised}
}}

; The same with a message in printf's notation.
define i32 @__tw_fail(ptr %table, ptr %kind, ptr %format, ...) cold noinline {{
  %message = alloca [{size} x i8]
  %arguments = alloca [32 x i8], align 16
  call void @llvm.va_start.p0(ptr %arguments)
  call i32 @vsnprintf(ptr %message, i64 {size}, ptr %format, ptr %arguments)
  call void @llvm.va_end.p0(ptr %arguments)
  %result = call i32 @__tw_raise(ptr %table, ptr %kind, ptr %message)
  ret i32 %result
}}

; printf, to where the table says. Returns the number of bytes.
define i32 @__tw_printf(ptr %table, ptr %format, ...) noinline {{
  %arguments = alloca [32 x i8], align 16
  %again = alloca [32 x i8], align 16
  call void @llvm.va_start.p0(ptr %arguments)
  call void @llvm.va_copy.p0(ptr %again, ptr %arguments)
  %counted = call i32 @vsnprintf(ptr null, i64 0, ptr %format, ptr %arguments)
  %length = call i32 @llvm.smax.i32(i32 %counted, i32 0)
  %wide = sext i32 %length to i64
  %size = add i64 %wide, 1
  %text = alloca i8, i64 %size
  call i32 @vsnprintf(ptr %text, i64 %size, ptr %format, ptr %again)
  call void @llvm.va_end.p0(ptr %arguments)
  call void @llvm.va_end.p0(ptr %again)
  %slot = getelementptr i64, ptr %table, i64 {write}
  %write = load ptr, ptr %slot
  call void %write(ptr %text, i64 %wide)
  ret i32 %length
}}
"""

# Messages of the argument checks: what is wrong, what was expected, what came. The hint is empty or a whole line.
_REPORTS = """
; Appends "(a, b, c)" to %text, which has room for %size bytes; returns the number of bytes.
define internal i64 @list_text(ptr %text, i64 %size, ptr %values, i64 %count) cold noinline {{
entry:
  store i16 40, ptr %text
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %item ]
  %length = phi i64 [ 1, %entry ], [ %length1, %item ]
  %more = icmp ult i64 %i, %count
  %room = sub i64 %size, %length
  %fits = icmp ugt i64 %room, 32
  %go = and i1 %more, %fits
  %here = getelementptr i8, ptr %text, i64 %length
  br i1 %go, label %item, label %end
item:
  %pointer = getelementptr i64, ptr %values, i64 %i
  %value = load i64, ptr %pointer
  %first = icmp eq i64 %i, 0
  %format = select i1 %first, ptr {first_item}, ptr {next_item}
  %written = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %here, i64 %room, ptr %format, i64 %value)
  %wide = sext i32 %written to i64
  %length1 = add i64 %length, %wide
  %i1 = add i64 %i, 1
  br label %next
end:
  store i16 41, ptr %here
  %total = add i64 %length, 1
  ret i64 %total
}}

; "f32 (4, 8) : (8, 1) on cpu"
define internal void @tensor_text(ptr %text, i64 %size, ptr %dl) cold noinline {{
  %shape_text = alloca [512 x i8]
  %stride_text = alloca [512 x i8]
  %dtype_text = alloca [32 x i8]
  %code_p = getelementptr i8, ptr %dl, i64 {dtype}
  %code8 = load i8, ptr %code_p
  %code = zext i8 %code8 to i64
  %code_known = icmp ult i64 %code, {dtype_count}
  %code_row = select i1 %code_known, i64 %code, i64 3
  %dtype_format = getelementptr [{dtype_width} x i8], ptr @dtype_names, i64 %code_row
  %bits_p = getelementptr i8, ptr %code_p, i64 1
  %bits8 = load i8, ptr %bits_p
  %bits = zext i8 %bits8 to i32
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %dtype_text, i64 32, ptr %dtype_format, i32 %bits)
  %lanes_p = getelementptr i8, ptr %code_p, i64 2
  %lanes16 = load i16, ptr %lanes_p
  %lanes = zext i16 %lanes16 to i32
  %packed = icmp ugt i32 %lanes, 1
  %lanes_format = select i1 %packed, ptr {packed_lanes}, ptr {one_lane}
  %lanes_text = alloca [16 x i8]
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %lanes_text, i64 16, ptr %lanes_format, i32 %lanes)
  %ndim_p = getelementptr i8, ptr %dl, i64 {ndim}
  %ndim32 = load i32, ptr %ndim_p
  %ndim = sext i32 %ndim32 to i64
  %shape_p = getelementptr i8, ptr %dl, i64 {shape}
  %shape = load ptr, ptr %shape_p
  call i64 @list_text(ptr %shape_text, i64 512, ptr %shape, i64 %ndim)
  %strides_p = getelementptr i8, ptr %dl, i64 {strides}
  %strides = load ptr, ptr %strides_p
  %compact = icmp eq ptr %strides, null
  %stride_count = select i1 %compact, i64 0, i64 %ndim
  call i64 @list_text(ptr %stride_text, i64 512, ptr %strides, i64 %stride_count)
  %stride_shown = select i1 %compact, ptr {compact}, ptr %stride_text
  %device_p = getelementptr i8, ptr %dl, i64 {device}
  %device = load i32, ptr %device_p
  %device_known = icmp ult i32 %device, {device_count}
  %device_row = select i1 %device_known, i32 %device, i32 0
  %device_text = getelementptr [{device_width} x i8], ptr @device_names, i32 %device_row
  %id_p = getelementptr i8, ptr %device_p, i64 4
  %id = load i32, ptr %id_p
  %has_id = icmp eq i32 %device, {cuda}
  %id_format = select i1 %has_id, ptr {with_id}, ptr {without_id}
  %id_text = alloca [16 x i8]
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %id_text, i64 16, ptr %id_format, i32 %id)
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 %size, ptr {tensor_format}, ptr %dtype_text,
    ptr %lanes_text, ptr %shape_text, ptr %stride_shown, ptr %device_text, ptr %id_text)
  ret void
}}

; The word for where tensors must be.
define internal ptr @expected_device(ptr %table) cold noinline {{
  %slot = getelementptr i64, ptr %table, i64 {devices}
  %mask = load i64, ptr %slot
  %host = and i64 %mask, {cpu_bit}
  %is_host = icmp ne i64 %host, 0
  %word = select i1 %is_host, ptr {cpu_word}, ptr {cuda_word}
  ret ptr %word
}}

; A tensor fails a check; %what is in printf's notation and may show %value once.
define internal i32 @fail_tensor(ptr %table, ptr %what, i64 %value, ptr %expected, ptr %hint, ptr %dl,
    ptr %signature) cold noinline {{
  %head = alloca [512 x i8]
  %actual = alloca [1280 x i8]
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %head, i64 512, ptr %what, i64 %value)
  call void @tensor_text(ptr %actual, i64 1280, ptr %dl)
  %device = call ptr @expected_device(ptr %table)
  %result = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr {argument_error}, ptr {tensor_report}, ptr %head,
    ptr %expected, ptr %device, ptr %actual, ptr %hint, ptr %signature)
  ret i32 %result
}}

; An argument (a TVMFFIAny) fails a check.
define internal i32 @fail_any(ptr %table, ptr %what, ptr %expected, ptr %hint, ptr %any,
    ptr %signature) cold noinline {{
entry:
  %actual = alloca [1280 x i8]
  %type = load i32, ptr %any
  %value_p = getelementptr i8, ptr %any, i64 {any_value}
  %integer = load i64, ptr %value_p
  %pointer = load ptr, ptr %value_p
  switch i32 %type, label %other [
    i32 {int}, label %number
    i32 {bool}, label %truth
    i32 {float}, label %real
    i32 {dltensor}, label %view
    i32 {tensor}, label %object
  ]
number:
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %actual, i64 1280, ptr {int_format}, i64 %integer)
  br label %report
truth:
  %is_true = icmp ne i64 %integer, 0
  %truth_text = select i1 %is_true, ptr {true_text}, ptr {false_text}
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %actual, i64 1280, ptr {text_format}, ptr %truth_text)
  br label %report
real:
  %double = load double, ptr %value_p
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %actual, i64 1280, ptr {float_format}, double %double)
  br label %report
object:
  %inner = getelementptr i8, ptr %pointer, i64 {object_header}
  br label %view
view:
  %dl = phi ptr [ %pointer, %entry ], [ %inner, %object ]
  call void @tensor_text(ptr %actual, i64 1280, ptr %dl)
  br label %report
other:
  %known = icmp ult i32 %type, {kind_count}
  %row = select i1 %known, i32 %type, i32 64
  %kind = getelementptr [{kind_width} x i8], ptr @kind_names, i32 %row
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %actual, i64 1280, ptr {text_format}, ptr %kind)
  br label %report
report:
  %result = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr {argument_error}, ptr {any_report}, ptr %what,
    ptr %expected, ptr %actual, ptr %hint, ptr %signature)
  ret i32 %result
}}

; A check of the wrapper fails; %message is as abi.py says, %signature shows the function and its parameters.
define i32 @__tw_fail_check(ptr %table, ptr %message, i64 %value, ptr %subject, ptr %signature) cold noinline {{
  %kind = load i8, ptr %message
  %what = getelementptr i8, ptr %message, i64 1
  %what_size = call i64 @strlen(ptr %what)
  %what_end = getelementptr i8, ptr %what, i64 %what_size
  %expected = getelementptr i8, ptr %what_end, i64 1
  %expected_size = call i64 @strlen(ptr %expected)
  %expected_end = getelementptr i8, ptr %expected, i64 %expected_size
  %hint = getelementptr i8, ptr %expected_end, i64 1
  switch i8 %kind, label %status [
    i8 {failed_tensor}, label %tensor
    i8 {failed_argument}, label %argument
    i8 {failed_count}, label %count
  ]
tensor:
  %r0 = call i32 @fail_tensor(ptr %table, ptr %what, i64 %value, ptr %expected, ptr %hint, ptr %subject,
    ptr %signature)
  ret i32 %r0
argument:
  %r1 = call i32 @fail_any(ptr %table, ptr %what, ptr %expected, ptr %hint, ptr %subject, ptr %signature)
  ret i32 %r1
count:
  %r2 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr {argument_error}, ptr %what, i64 %value)
  ret i32 %r2
status:
  %r3 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr {launch_error}, ptr %what, i64 %value)
  ret i32 %r3
}}
"""

_CONTEXTS = """
@contexts = internal global [{most_devices} x ptr] zeroinitializer, align 8

; Makes the primary context of a device current unless it is; %left gets the context that was current, or null where
; nothing was changed. Gives the driver's status.
define i32 @__tw_enter(ptr %table, i32 %device, ptr %left) cold noinline {{
entry:
  %found = alloca i32, align 8
  %context_p = alloca ptr, align 8
  store ptr null, ptr %left
  store ptr null, ptr %context_p
  %slot = getelementptr i64, ptr %table, i64 {contexts}
  %functions = load ptr, ptr %slot
  %unknown = icmp eq ptr %functions, null
  br i1 %unknown, label %refuse, label %ask
refuse:
  ret i32 {invalid_context}
ask:
  %get_device_p = getelementptr ptr, ptr %functions, i64 2
  %get_device = load ptr, ptr %get_device_p
  %asked = call i32 %get_device(ptr %found)
  %has_context = icmp eq i32 %asked, 0
  br i1 %has_context, label %compare, label %change
compare:
  %current = load i32, ptr %found
  %same = icmp eq i32 %current, %device
  br i1 %same, label %good, label %keep
good:
  ret i32 0
keep:
  %get_current = load ptr, ptr %functions
  %got = call i32 %get_current(ptr %left)
  br label %change
change:
  %known_range = icmp ult i32 %device, {most_devices}
  br i1 %known_range, label %look, label %refuse
look:
  %wide = zext i32 %device to i64
  %cell = getelementptr ptr, ptr @contexts, i64 %wide
  %cached = load ptr, ptr %cell
  %absent = icmp eq ptr %cached, null
  br i1 %absent, label %retain, label %set
retain:
  ; Retained once for each device and never released: frameworks share it.
  %retain_p = getelementptr ptr, ptr %functions, i64 3
  %retain_function = load ptr, ptr %retain_p
  %retained = call i32 %retain_function(ptr %context_p, i32 %device)
  %is_retained = icmp eq i32 %retained, 0
  br i1 %is_retained, label %remember, label %failed
failed:
  store ptr null, ptr %left
  ret i32 %retained
remember:
  %fresh = load ptr, ptr %context_p
  store ptr %fresh, ptr %cell
  br label %set
set:
  %context = phi ptr [ %cached, %look ], [ %fresh, %remember ]
  %set_p = getelementptr ptr, ptr %functions, i64 1
  %set_current = load ptr, ptr %set_p
  %status = call i32 %set_current(ptr %context)
  ret i32 %status
}}

; Makes the context current again that `__tw_enter` left; nothing for null.
define void @__tw_leave(ptr %table, ptr %left) cold noinline {{
  %none = icmp eq ptr %left, null
  br i1 %none, label %end, label %back
back:
  %slot = getelementptr i64, ptr %table, i64 {contexts}
  %functions = load ptr, ptr %slot
  %set_p = getelementptr ptr, ptr %functions, i64 1
  %set_current = load ptr, ptr %set_p
  call i32 %set_current(ptr %left)
  br label %end
end:
  ret void
}}

; The attributes for the events of a launch, from a record (EVENT_RECORD in abi.py) that also holds the stream.
define internal void @launch_events(ptr %config, ptr %attributes, ptr %count_p, ptr %record) noinline {{
  %stream = load ptr, ptr %record
  %stream_p = getelementptr i8, ptr %config, i64 32
  store ptr %stream, ptr %stream_p
  %completion_p = getelementptr i64, ptr %record, i64 1
  call void @launch_event(ptr %attributes, ptr %count_p, ptr %completion_p, i32 {completion_id}, i32 0)
  %programmatic_p = getelementptr i64, ptr %record, i64 3
  %trigger_p = getelementptr i64, ptr %record, i64 5
  %trigger = load i32, ptr %trigger_p
  call void @launch_event(ptr %attributes, ptr %count_p, ptr %programmatic_p, i32 {programmatic_id}, i32 %trigger)
  ret void
}}

define internal void @launch_event(ptr %attributes, ptr %count_p, ptr %event_p, i32 %id, i32 %trigger) noinline {{
  %event = load ptr, ptr %event_p
  %none = icmp eq ptr %event, null
  br i1 %none, label %end, label %add
add:
  %flags_p = getelementptr i64, ptr %event_p, i64 1
  %flags = load i32, ptr %flags_p
  %count = load i32, ptr %count_p
  %attribute = getelementptr [72 x i8], ptr %attributes, i32 %count
  store i32 %id, ptr %attribute
  %value = getelementptr i8, ptr %attribute, i64 8
  store ptr %event, ptr %value
  %value_flags = getelementptr i8, ptr %attribute, i64 16
  store i32 %flags, ptr %value_flags
  %value_trigger = getelementptr i8, ptr %attribute, i64 20
  store i32 %trigger, ptr %value_trigger
  %more = add i32 %count, 1
  store i32 %more, ptr %count_p
  br label %end
end:
  ret void
}}
"""

_POLL = """
; Called in each turn of a loop: now and then, INTERRUPTED if a signal handler of Python has raised an exception.
define i32 @__tw_poll(ptr %table, ptr %turns, i32 %mask) alwaysinline {{
  %before = load i32, ptr %turns
  %now = add i32 %before, 1
  store i32 %now, ptr %turns
  %low = and i32 %now, %mask
  %due = icmp eq i32 %low, 0
  br i1 %due, label %look, label %go
look:
  %slot = getelementptr i64, ptr %table, i64 {signals}
  %check = load ptr, ptr %slot
  %none = icmp eq ptr %check, null
  br i1 %none, label %go, label %ask
ask:
  %raised = call i32 %check()
  %fine = icmp eq i32 %raised, 0
  br i1 %fine, label %go, label %stop
go:
  ret i32 0
stop:
  ret i32 {interrupted}
}}
"""

_LAUNCH = """
declare i32 @llvm.smin.i32(i32, i32)

define i32 @__tw_launch(ptr %table, i32 %index, i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz,
                        i32 %cx, i32 %cy, i32 %cz, i32 %smem, ptr %stream, i32 %flags, ptr %params) noinline {{
entry:
  %config = alloca [56 x i8], align 8
  %attributes = alloca [6 x [72 x i8]], align 8
  %gx1 = icmp slt i32 %gx, 1
  %gy0 = sub i32 %gy, 1
  %gy1 = icmp uge i32 %gy0, 65535
  %gz0 = sub i32 %gz, 1
  %gz1 = icmp uge i32 %gz0, 65535
  %gxy = or i1 %gx1, %gy1
  %bad_grid = or i1 %gxy, %gz1
  br i1 %bad_grid, label %grid_error, label %check_block
check_block:
  %bx0 = sub i32 %bx, 1
  %bx1 = icmp uge i32 %bx0, 1024
  %by0 = sub i32 %by, 1
  %by1 = icmp uge i32 %by0, 1024
  %bz0 = sub i32 %bz, 1
  %bz1 = icmp uge i32 %bz0, 64
  %bxy = mul i32 %bx, %by
  %threads = mul i32 %bxy, %bz
  %many = icmp ugt i32 %threads, 1024
  %b1 = or i1 %bx1, %by1
  %b2 = or i1 %bz1, %many
  %bad_block = or i1 %b1, %b2
  br i1 %bad_block, label %block_error, label %check_cluster
check_cluster:
  %cx0 = sub i32 %cx, 1
  %cx1 = icmp uge i32 %cx0, 16
  %cy0 = sub i32 %cy, 1
  %cy1 = icmp uge i32 %cy0, 16
  %cz0 = sub i32 %cz, 1
  %cz1 = icmp uge i32 %cz0, 16
  %cxy = mul i32 %cx, %cy
  %blocks = mul i32 %cxy, %cz
  %large = icmp ugt i32 %blocks, 16
  %c1 = or i1 %cx1, %cy1
  %c2 = or i1 %cz1, %large
  %bad_cluster = or i1 %c1, %c2
  br i1 %bad_cluster, label %cluster_error, label %check_division
check_division:
  %rx = urem i32 %gx, %cx
  %ry = urem i32 %gy, %cy
  %rz = urem i32 %gz, %cz
  %rxy = or i32 %rx, %ry
  %rest = or i32 %rxy, %rz
  %divides = icmp eq i32 %rest, 0
  br i1 %divides, label %check_smem, label %division_error
check_smem:
  %bad_smem = icmp slt i32 %smem, 0
  br i1 %bad_smem, label %smem_error, label %launch

launch:
  store i32 %gx, ptr %config
{config_stores}
  ; Each attribute is written behind the last that counts; the count moves on where it applies.
  store i32 {cluster_id}, ptr %attributes
  %cluster_x = getelementptr i8, ptr %attributes, i64 8
  store i32 %cx, ptr %cluster_x
  %cluster_y = getelementptr i8, ptr %attributes, i64 12
  store i32 %cy, ptr %cluster_y
  %cluster_z = getelementptr i8, ptr %attributes, i64 16
  store i32 %cz, ptr %cluster_z
  %is_cluster = icmp ugt i32 %blocks, 1
  %n1 = zext i1 %is_cluster to i32
  %cooperative = getelementptr [72 x i8], ptr %attributes, i32 %n1
  store i32 {cooperative_id}, ptr %cooperative
  %cooperative_value = getelementptr i8, ptr %cooperative, i64 8
  store i32 1, ptr %cooperative_value
  %is_cooperative = and i32 %flags, 1
  %n2 = add i32 %n1, %is_cooperative
  %pdl = getelementptr [72 x i8], ptr %attributes, i32 %n2
  store i32 {pdl_id}, ptr %pdl
  %pdl_value = getelementptr i8, ptr %pdl, i64 8
  store i32 1, ptr %pdl_value
  %pdl_bit = lshr i32 %flags, 1
  %is_pdl = and i32 %pdl_bit, 1
  %n3 = add i32 %n2, %is_pdl
  %stream_p = getelementptr i8, ptr %config, i64 32
  store ptr %stream, ptr %stream_p
  %attributes_p = getelementptr i8, ptr %config, i64 40
  store ptr %attributes, ptr %attributes_p
  %count_p = getelementptr i8, ptr %config, i64 48
  store i32 %n3, ptr %count_p
  %event_bit = and i32 %flags, 4
  %has_events = icmp ne i32 %event_bit, 0
  br i1 %has_events, label %add_events, label %send
add_events:
  call void @launch_events(ptr %config, ptr %attributes, ptr %count_p, ptr %stream)
  br label %send
send:
  ; In this order: an exported function stores its kernels, then the driver's launch function.
  %launch_p = getelementptr i64, ptr %table, i64 {launch}
  %function = load atomic ptr, ptr %launch_p acquire, align 8
  %number = zext i32 %index to i64
  %kernel_slot = add i64 %number, {first_kernel}
  %kernel_p = getelementptr i64, ptr %table, i64 %kernel_slot
  %kernel = load ptr, ptr %kernel_p
  %first = call i32 %function(ptr %config, ptr %kernel, ptr %params, ptr null)
  %done = icmp eq i32 %first, 0
  br i1 %done, label %success, label %check_raised
success:
  ret i32 0
check_raised:
  %raised = icmp eq i32 %first, {raised}
  br i1 %raised, label %pass_on, label %check_context
pass_on:
  ret i32 {raised}
check_context:
  ; A thread that has not used CUDA yet has no context: take the first device's, as frameworks do.
  %no_context = icmp eq i32 %first, {invalid_context}
  br i1 %no_context, label %enter, label %launch_error
enter:
  %left = alloca ptr, align 8
  %entered = call i32 @__tw_enter(ptr %table, i32 0, ptr %left)
  %is_entered = icmp eq i32 %entered, 0
  br i1 %is_entered, label %again, label %launch_error
again:
  %second = call i32 %function(ptr %config, ptr %kernel, ptr %params, ptr null)
  %done_now = icmp eq i32 %second, 0
  br i1 %done_now, label %success, label %launch_error

grid_error:
  %gzy = call i32 @llvm.smin.i32(i32 %gy, i32 %gz)
  %gleast = call i32 @llvm.smin.i32(i32 %gx, i32 %gzy)
  %gnone = icmp slt i32 %gleast, 1
  %gless = icmp slt i32 %gleast, 0
  %ghint0 = select i1 %gnone, ptr {nothing}, ptr {along_x}
  %ghint = select i1 %gless, ptr {negative}, ptr %ghint0
  %e1 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr {launch_kind}, ptr {grid_text},
    i32 %gx, i32 %gy, i32 %gz, ptr %ghint)
  ret i32 %e1
block_error:
  %ex = sext i32 %bx to i64
  %ey = sext i32 %by to i64
  %ez = sext i32 %bz to i64
  %exy = mul i64 %ex, %ey
  %exyz = mul i64 %exy, %ez
  %bzy = call i32 @llvm.smin.i32(i32 %by, i32 %bz)
  %bleast = call i32 @llvm.smin.i32(i32 %bx, i32 %bzy)
  %bnone = icmp slt i32 %bleast, 1
  %bless = icmp slt i32 %bleast, 0
  %few = icmp ule i64 %exyz, 1024
  %bhint0 = select i1 %few, ptr {not_along_z}, ptr {fewer}
  %bhint1 = select i1 %bnone, ptr {no_threads}, ptr %bhint0
  %bhint = select i1 %bless, ptr {negative}, ptr %bhint1
  %e2 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr {launch_kind}, ptr {block_text},
    i32 %bx, i32 %by, i32 %bz, i64 %exyz, ptr %bhint)
  ret i32 %e2
cluster_error:
  %czy = call i32 @llvm.smin.i32(i32 %cy, i32 %cz)
  %cleast = call i32 @llvm.smin.i32(i32 %cx, i32 %czy)
  %cnone = icmp slt i32 %cleast, 1
  %chint = select i1 %cnone, ptr {no_cluster}, ptr {small_cluster}
  %e3 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr {launch_kind}, ptr {cluster_text},
    i32 %cx, i32 %cy, i32 %cz, ptr %chint)
  ret i32 %e3
division_error:
  %e4 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr {launch_kind}, ptr {division_text},
    i32 %gx, i32 %gy, i32 %gz, i32 %cx, i32 %cy, i32 %cz)
  ret i32 %e4
smem_error:
  %e5 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr {launch_kind}, ptr {smem_text}, i32 %smem)
  ret i32 %e5
launch_error:
  %status = phi i32 [ %first, %check_context ], [ %entered, %enter ], [ %second, %again ]
  %e6 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr {launch_kind}, ptr {refused_text}, i32 %status,
    i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz, i32 %cx, i32 %cy, i32 %cz, i32 %smem)
  ret i32 %e6
}}
"""

_LAUNCH_TEXTS = {
    "grid_text": "a grid has 1 to 2147483647 blocks along x and 1 to 65535 along y and z\n  grid  (%d, %d, %d)\n"
    "  hint: %s",
    "block_text": "a block has at most 1024 threads, 1 to 1024 along x and y and 1 to 64 along z\n"
    "  block    (%d, %d, %d)\n  threads  %lld\n  hint: %s",
    "cluster_text": "a cluster has 1 to 16 blocks\n  cluster  (%d, %d, %d)\n  hint: %s",
    "division_text": "the grid is not a whole number of clusters\n  grid     (%d, %d, %d)\n  cluster  (%d, %d, %d)\n"
    f"  hint: {launches.WHOLE_CLUSTERS}",
    "smem_text": "the size of dynamic shared memory is negative\n  smem  %d\n"
    "  hint: look at the difference that it comes from, or leave smem= out for what the kernel allocates",
    "refused_text": "the launch was refused\n  error    %d\n  grid     (%d, %d, %d)\n  block    (%d, %d, %d)\n"
    "  cluster  (%d, %d, %d)\n  smem     %d",
}

_LAUNCH_HINTS = {
    "nothing": launches.NOTHING,
    "negative": launches.NEGATIVE,
    "along_x": launches.ALONG_X,
    "no_threads": launches.NO_THREADS,
    "fewer": launches.FEWER,
    "not_along_z": launches.NOT_ALONG_Z,
    "no_cluster": launches.NO_CLUSTER,
    "small_cluster": launches.SMALL_CLUSTER,
}

_REPORT_TEXTS = {
    "first_item": "%lld",
    "next_item": ", %lld",
    "packed_lanes": "x%d",
    "one_lane": "",
    "compact": "compact",
    "with_id": ":%d",
    "without_id": "",
    "tensor_format": "%s%s %s : %s on %s%s",
    "cpu_word": "cpu",
    "cuda_word": "cuda",
    "argument_error": "ArgumentError",
    "launch_error": "LaunchError",
    # The signature is last: where it is too long for the buffer, only it is cut.
    "tensor_report": "%s\n  expected  %s on %s\n  actual    %s%s\n  calling   %s",
    "any_report": "%s\n  expected  %s\n  actual    %s%s\n  calling   %s",
    "int_format": "int %lld",
    "float_format": "float %g",
    "text_format": "%s",
    "true_text": "bool True",
    "false_text": "bool False",
}


def _config_stores() -> str:
    fields = ("gy", "gz", "bx", "by", "bz", "smem")  # gx lies at 0
    lines = []
    for position, name in enumerate(fields, 1):
        lines.append(f"  %{name}_p = getelementptr i8, ptr %config, i64 {4 * position}")
        lines.append(f"  store i32 %{name}, ptr %{name}_p")
    return "\n".join(lines)


@functools.cache
def runtime_ir() -> str:
    """LLVM IR of the support functions; the same for every program."""
    strings = Strings("rt")
    kinds, kind_width = name_table("kind_names", abi.KIND_NAMES, 80, "object")
    dtypes, dtype_width = name_table("dtype_names", abi.DTYPE_FORMATS, 18, "unknown")
    devices, device_width = name_table("device_names", abi.DEVICE_NAMES, 20, "another device")
    errors = _ERRORS.format(set_error=abi.SLOT_SET_ERROR, raised=abi.RAISED, size=_MESSAGE_SIZE, write=abi.SLOT_WRITE)
    reports = _REPORTS.format(
        **{name: strings(text) for name, text in _REPORT_TEXTS.items()},
        dtype=abi.DL_DTYPE, ndim=abi.DL_NDIM, shape=abi.DL_SHAPE, strides=abi.DL_STRIDES, device=abi.DL_DEVICE,
        dtype_count=18, dtype_width=dtype_width, device_count=20, device_width=device_width,
        kind_count=80, kind_width=kind_width, cuda=abi.CUDA, devices=abi.SLOT_DEVICES, cpu_bit=1 << abi.CPU,
        any_value=abi.ANY_VALUE, object_header=abi.OBJECT_HEADER, int=abi.INT, bool=abi.BOOL, float=abi.FLOAT,
        dltensor=abi.DLTENSOR, tensor=abi.TENSOR, failed_tensor=ord(abi.FAILED_TENSOR),
        failed_argument=ord(abi.FAILED_ARGUMENT), failed_count=ord(abi.FAILED_COUNT),
    )  # fmt: skip
    launch = _LAUNCH.format(
        **{name: strings(text) for name, text in (_LAUNCH_TEXTS | _LAUNCH_HINTS).items()},
        launch_kind=strings("LaunchError"), config_stores=_config_stores(), launch=abi.SLOT_LAUNCH,
        first_kernel=abi.FIRST_KERNEL, cluster_id=abi.ATTRIBUTE_CLUSTER, cooperative_id=abi.ATTRIBUTE_COOPERATIVE,
        pdl_id=abi.ATTRIBUTE_PDL, raised=abi.RAISED, invalid_context=abi.INVALID_CONTEXT,
    )  # fmt: skip
    contexts = _CONTEXTS.format(
        contexts=abi.SLOT_CONTEXTS, most_devices=abi.MOST_DEVICES, invalid_context=abi.INVALID_CONTEXT,
        completion_id=abi.ATTRIBUTE_COMPLETION_EVENT, programmatic_id=abi.ATTRIBUTE_PROGRAMMATIC_EVENT,
    )  # fmt: skip
    poll = _POLL.format(signals=abi.SLOT_SIGNALS, interrupted=abi.INTERRUPTED)
    texts = [kinds, dtypes, devices, *strings.definitions(), errors, reports, contexts, poll, launch, HALVES_IR]
    return "\n".join(texts)
