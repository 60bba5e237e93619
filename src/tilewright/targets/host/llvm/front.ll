; How Python calls native code: see front.py, which has the layout of a front and of the two tables.

@__tw_python = global [$python_size x ptr] zeroinitializer, align 8
@__tw_tensor_types = global [$most_types x [$type_size x ptr]] zeroinitializer, align 8

; A number to %any; 1 where it is one, 0 where it is none or has more than 64 bits.
define internal i32 @number_of(ptr %argument, ptr %type, ptr %any) {
entry:
  %overflow = alloca i32, align 4
  %value_p = getelementptr i8, ptr %any, i64 $any_value
  %int_p = getelementptr ptr, ptr @__tw_python, i64 $int
  %int = load ptr, ptr %int_p
  %is_int = icmp eq ptr %type, %int
  br i1 %is_int, label %integer, label %ask_float
integer:
  %to_int_p = getelementptr ptr, ptr @__tw_python, i64 $to_int
  %to_int = load ptr, ptr %to_int_p
  %whole = call i64 %to_int(ptr %argument, ptr %overflow)
  store i64 $int_kind, ptr %any
  store i64 %whole, ptr %value_p
  %over = load i32, ptr %overflow
  %fits = icmp eq i32 %over, 0
  %taken = zext i1 %fits to i32
  ret i32 %taken
ask_float:
  %float_p = getelementptr ptr, ptr @__tw_python, i64 $float
  %float = load ptr, ptr %float_p
  %is_float = icmp eq ptr %type, %float
  br i1 %is_float, label %floating, label %ask_single
floating:
  %to_float_p = getelementptr ptr, ptr @__tw_python, i64 $to_float
  %to_float = load ptr, ptr %to_float_p
  %real = call double %to_float(ptr %argument)
  store i64 $float_kind, ptr %any
  store double %real, ptr %value_p
  ret i32 1
ask_single:
  %none_p = getelementptr ptr, ptr @__tw_python, i64 $none
  %none = load ptr, ptr %none_p
  %is_none = icmp eq ptr %argument, %none
  %true_p = getelementptr ptr, ptr @__tw_python, i64 $true
  %true = load ptr, ptr %true_p
  %is_true = icmp eq ptr %argument, %true
  %false_p = getelementptr ptr, ptr @__tw_python, i64 $false
  %false = load ptr, ptr %false_p
  %is_false = icmp eq ptr %argument, %false
  %truth = zext i1 %is_true to i64
  %kind = select i1 %is_none, i64 $none_kind, i64 $bool_kind
  store i64 %kind, ptr %any
  store i64 %truth, ptr %value_p
  %bool = or i1 %is_true, %is_false
  %single = or i1 %bool, %is_none
  %known = zext i1 %single to i32
  ret i32 %known
}

; The row of @__tw_tensor_types for a type, or null.
define internal ptr @tensor_type(ptr %type) {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %other ]
  %row = getelementptr [$type_size x ptr], ptr @__tw_tensor_types, i64 %i
  %known = load atomic ptr, ptr %row acquire, align 8
  %found = icmp eq ptr %known, %type
  br i1 %found, label %here, label %other
here:
  ret ptr %row
other:
  %i1 = add i64 %i, 1
  %end = icmp eq i64 %i1, $most_types
  %last = icmp eq ptr %known, null
  %stop = or i1 %end, %last
  br i1 %stop, label %unknown, label %next
unknown:
  ret ptr null
}

; A tensor to %any and %view; 1 where native code may take it, 0 where it may not, with no Python exception set.
define internal i32 @tensor_of(ptr %argument, ptr %row, ptr %any, ptr %view) {
entry:
  %lazy_p = getelementptr ptr, ptr %row, i64 $type_lazy
  %lazy = load ptr, ptr %lazy_p
  %never = icmp eq ptr %lazy, null
  br i1 %never, label %read, label %ask
ask:
  %call_one_p = getelementptr ptr, ptr @__tw_python, i64 $call_one
  %call_one = load ptr, ptr %call_one_p
  %answer = call ptr %call_one(ptr %lazy, ptr %argument)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %forget, label %release
release:
  %decref_p = getelementptr ptr, ptr @__tw_python, i64 $decref
  %decref = load ptr, ptr %decref_p
  call void %decref(ptr %answer)
  %false_p = getelementptr ptr, ptr @__tw_python, i64 $false
  %false = load ptr, ptr %false_p
  %is_plain = icmp eq ptr %answer, %false
  br i1 %is_plain, label %read, label %refuse
read:
  %read_p = getelementptr ptr, ptr %row, i64 $type_read
  %function = load ptr, ptr %read_p
  %status = call i32 %function(ptr %argument, ptr %view)
  store i64 $tensor_kind, ptr %any
  %value_p = getelementptr i8, ptr %any, i64 $any_value
  store ptr %view, ptr %value_p
  %read_well = icmp eq i32 %status, 0
  br i1 %read_well, label %taken, label %forget
taken:
  ret i32 1
forget:
  %clear_p = getelementptr ptr, ptr @__tw_python, i64 $clear
  %clear = load ptr, ptr %clear_p
  call void %clear()
  br label %refuse
refuse:
  ret i32 0
}

; A tensor that `from_dlpack` gave to %any, by its DLPack capsule; 1 where it has one.
define internal i32 @wrapped_of(ptr %argument, ptr %any) {
entry:
  %name_p = getelementptr ptr, ptr @__tw_python, i64 $capsule
  %name = load ptr, ptr %name_p
  %attribute_p = getelementptr ptr, ptr @__tw_python, i64 $attribute
  %attribute = load ptr, ptr %attribute_p
  %capsule = call ptr %attribute(ptr %argument, ptr %name)
  %missing = icmp eq ptr %capsule, null
  br i1 %missing, label %forget, label %look
look:
  %decref_p = getelementptr ptr, ptr @__tw_python, i64 $decref
  %decref = load ptr, ptr %decref_p
  call void %decref(ptr %capsule)
  %none_p = getelementptr ptr, ptr @__tw_python, i64 $none
  %none = load ptr, ptr %none_p
  %is_none = icmp eq ptr %capsule, %none
  br i1 %is_none, label %refuse, label %unpack
unpack:
  %open_p = getelementptr ptr, ptr @__tw_python, i64 $open
  %open = load ptr, ptr %open_p
  %tensor = call ptr %open(ptr %capsule, ptr $capsule_name)
  store i64 $tensor_kind, ptr %any
  %value_p = getelementptr i8, ptr %any, i64 $any_value
  store ptr %tensor, ptr %value_p
  %damaged = icmp eq ptr %tensor, null
  br i1 %damaged, label %forget, label %taken
taken:
  ret i32 1
forget:
  %clear_p = getelementptr ptr, ptr @__tw_python, i64 $clear
  %clear = load ptr, ptr %clear_p
  call void %clear()
  br label %refuse
refuse:
  ret i32 0
}

; All arguments to %anys and %views; %device gets the device of the first tensor that is not the host's, and its stream
; to %stream. 1 where native code may take them.
define internal i32 @arguments_of(ptr %args, i64 %count, ptr %anys, ptr %views, ptr %device, ptr %stream) {
entry:
  %offset_p = getelementptr ptr, ptr @__tw_python, i64 $type_offset
  %offset = load i64, ptr %offset_p
  store i64 0, ptr %device
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %go ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %argument_p = getelementptr ptr, ptr %args, i64 %i
  %argument = load ptr, ptr %argument_p
  %type_p = getelementptr i8, ptr %argument, i64 %offset
  %type = load ptr, ptr %type_p
  %any = getelementptr [$any_size x i8], ptr %anys, i64 %i
  %row = call ptr @tensor_type(ptr %type)
  %no_tensor = icmp eq ptr %row, null
  br i1 %no_tensor, label %number, label %tensor
number:
  %wrapped_p = getelementptr ptr, ptr @__tw_python, i64 $wrapped
  %wrapped = load ptr, ptr %wrapped_p
  %is_wrapped = icmp eq ptr %type, %wrapped
  br i1 %is_wrapped, label %unwrap, label %ask_number
unwrap:
  %is_whole = call i32 @wrapped_of(ptr %argument, ptr %any)
  br label %taken
ask_number:
  %is_number = call i32 @number_of(ptr %argument, ptr %type, ptr %any)
  br label %taken
tensor:
  %view = getelementptr [$dl_size x i8], ptr %views, i64 %i
  %is_read = call i32 @tensor_of(ptr %argument, ptr %row, ptr %any, ptr %view)
  %well = icmp ne i32 %is_read, 0
  br i1 %well, label %ask_device, label %stop
ask_device:
  %device_p = getelementptr i8, ptr %view, i64 $dl_device
  %here = load i64, ptr %device_p
  %kind = trunc i64 %here to i32
  %on_host = icmp eq i32 %kind, $cpu
  %before = load i64, ptr %device
  %known = icmp ne i64 %before, 0
  %enough = or i1 %on_host, %known
  br i1 %enough, label %go, label %ask_stream
ask_stream:
  %stream_p = getelementptr ptr, ptr %row, i64 $type_stream
  %ask = load ptr, ptr %stream_p
  %high = lshr i64 %here, 32
  %ordinal = trunc i64 %high to i32
  %asked = call i32 %ask(i32 %kind, i32 %ordinal, ptr %stream)
  store i64 %here, ptr %device
  %refused = icmp ne i32 %asked, 0
  br i1 %refused, label %stop_clearly, label %go
stop_clearly:
  %clear_p = getelementptr ptr, ptr @__tw_python, i64 $clear
  %clear = load ptr, ptr %clear_p
  call void %clear()
  ret i32 0
taken:
  %is_taken = phi i32 [ %is_whole, %unwrap ], [ %is_number, %ask_number ]
  %fine = icmp ne i32 %is_taken, 0
  br i1 %fine, label %go, label %stop
go:
  %i1 = add i64 %i, 1
  br label %next
end:
  ret i32 1
stop:
  ret i32 0
}

; The native code of a front on arguments of tvm-ffi, with the stream of their framework as the current one, and without
; Python's lock. Gives its status.
define internal i32 @run_unlocked(ptr %target, ptr %anys, i32 %count, ptr %result, i64 %device, ptr %stream) {
entry:
  %before = alloca ptr, align 8
  %kind = trunc i64 %device to i32
  %high = lshr i64 %device, 32
  %ordinal = trunc i64 %high to i32
  %set_stream_p = getelementptr ptr, ptr @__tw_python, i64 $set_stream
  %set_stream = load ptr, ptr %set_stream_p
  %no_device = icmp eq i64 %device, 0
  br i1 %no_device, label %run, label %set
set:
  call i32 %set_stream(i32 %kind, i32 %ordinal, ptr %stream, ptr %before)
  br label %run
run:
  %unlock_p = getelementptr ptr, ptr @__tw_python, i64 $unlock
  %unlock = load ptr, ptr %unlock_p
  %state = call ptr %unlock()
  %status = call i32 %target(ptr null, ptr %anys, i32 %count, ptr %result)
  %lock_p = getelementptr ptr, ptr @__tw_python, i64 $lock
  %lock = load ptr, ptr %lock_p
  call void %lock(ptr %state)
  br i1 %no_device, label %end, label %compare
compare:
  %old = load ptr, ptr %before
  %same = icmp eq ptr %old, %stream
  br i1 %same, label %end, label %restore
restore:
  call i32 %set_stream(i32 %kind, i32 %ordinal, ptr %old, ptr null)
  br label %end
end:
  ret i32 %status
}

; A vectorcall of Python. It calls the native code of the front in %self; the front's function `other` instead where
; native code cannot take the arguments, and `failed` after it has set an error.
define ptr @__tw_front(ptr %self, ptr %args, i64 %count, ptr %names) {
entry:
  %anys = alloca [$most x [$any_size x i8]], align 8
  %views = alloca [$most x [$dl_size x i8]], align 8
  %result = alloca [$any_size x i8], align 8
  %device = alloca i64, align 8
  %stream_p = alloca ptr, align 8
  %open_p = getelementptr ptr, ptr @__tw_python, i64 $open
  %open = load ptr, ptr %open_p
  %front = call ptr %open(ptr %self, ptr null)
  %call_p = getelementptr ptr, ptr @__tw_python, i64 $call
  %call = load ptr, ptr %call_p
  %named = icmp ne ptr %names, null
  %many = icmp ugt i64 %count, $most
  %odd = or i1 %named, %many
  br i1 %odd, label %otherwise, label %convert
convert:
  store i64 $none_kind, ptr %result
  store ptr null, ptr %stream_p
  %taken = call i32 @arguments_of(ptr %args, i64 %count, ptr %anys, ptr %views, ptr %device, ptr %stream_p)
  %fine = icmp ne i32 %taken, 0
  br i1 %fine, label %run, label %otherwise
run:
  %target = load ptr, ptr %front
  %short = trunc i64 %count to i32
  %where = load i64, ptr %device
  %stream = load ptr, ptr %stream_p
  %status = call i32 @run_unlocked(ptr %target, ptr %anys, i32 %short, ptr %result, i64 %where, ptr %stream)
  %done = icmp eq i32 %status, 0
  br i1 %done, label %give, label %ask_interrupt
give:
  ; None, or True where the native code gave a number.
  %kind = load i32, ptr %result
  %nothing = icmp eq i32 %kind, $none_kind
  %place = select i1 %nothing, i64 $none, i64 $true
  %object_p = getelementptr ptr, ptr @__tw_python, i64 %place
  %object = load ptr, ptr %object_p
  %incref_p = getelementptr ptr, ptr @__tw_python, i64 $incref
  %incref = load ptr, ptr %incref_p
  call void %incref(ptr %object)
  ret ptr %object
ask_interrupt:
  %interrupted = icmp eq i32 %status, $interrupted
  br i1 %interrupted, label %raise, label %fail
raise:
  ret ptr null
fail:
  %failed_p = getelementptr ptr, ptr %front, i64 2
  %failed = load ptr, ptr %failed_p
  %after = call ptr %call(ptr %failed, ptr %args, i64 %count, ptr null)
  ret ptr %after
otherwise:
  %other_p = getelementptr ptr, ptr %front, i64 1
  %other = load ptr, ptr %other_p
  %given = call ptr %call(ptr %other, ptr %args, i64 %count, ptr %names)
  ret ptr %given
}

; The facts of a tensor to %words, from place %at on; the place behind them, or $unknown where it has none. A tensor that
; requires a gradient has none.
define internal i64 @tensor_facts(ptr %argument, ptr %row, ptr %words, i64 %at) {
entry:
  %view = alloca [$dl_size x i8], align 8
  %lazy_p = getelementptr ptr, ptr %row, i64 $type_lazy
  %lazy = load ptr, ptr %lazy_p
  %no_gradients = icmp eq ptr %lazy, null
  br i1 %no_gradients, label %read, label %ask
ask:
  %name_p = getelementptr ptr, ptr @__tw_python, i64 $gradient
  %name = load ptr, ptr %name_p
  %attribute_p = getelementptr ptr, ptr @__tw_python, i64 $attribute
  %attribute = load ptr, ptr %attribute_p
  %answer = call ptr %attribute(ptr %argument, ptr %name)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %forget, label %release
release:
  %decref_p = getelementptr ptr, ptr @__tw_python, i64 $decref
  %decref = load ptr, ptr %decref_p
  call void %decref(ptr %answer)
  %false_p = getelementptr ptr, ptr @__tw_python, i64 $false
  %false = load ptr, ptr %false_p
  %needs_none = icmp eq ptr %answer, %false
  br i1 %needs_none, label %read, label %refuse
read:
  %read_p = getelementptr ptr, ptr %row, i64 $type_read
  %function = load ptr, ptr %read_p
  %status = call i32 %function(ptr %argument, ptr %view)
  %well = icmp eq i32 %status, 0
  br i1 %well, label %room, label %forget
room:
  %ndim_p = getelementptr i8, ptr %view, i64 $dl_ndim
  %ndim = load i32, ptr %ndim_p
  %rank = zext i32 %ndim to i64
  %both = mul i64 %rank, 2
  %size = add i64 %both, 3
  %end = add i64 %at, %size
  %fits = icmp ule i64 %end, $key_words
  %strides_p = getelementptr i8, ptr %view, i64 $dl_strides
  %strides = load ptr, ptr %strides_p
  %shown = icmp ne ptr %strides, null
  %scalar = icmp eq i64 %rank, 0
  %known = or i1 %shown, %scalar
  %good = and i1 %fits, %known
  br i1 %good, label %write, label %refuse
write:
  ; Type, device, rank and element type; then extents and strides.
  %type = load ptr, ptr %row
  %word0 = getelementptr i64, ptr %words, i64 %at
  store ptr %type, ptr %word0
  %device_p = getelementptr i8, ptr %view, i64 $dl_device
  %device = load i64, ptr %device_p
  %word1 = getelementptr i64, ptr %word0, i64 1
  store i64 %device, ptr %word1
  %kind = load i64, ptr %ndim_p
  %word2 = getelementptr i64, ptr %word0, i64 2
  store i64 %kind, ptr %word2
  %shape_p = getelementptr i8, ptr %view, i64 $dl_shape
  %shape = load ptr, ptr %shape_p
  %extents = getelementptr i64, ptr %word0, i64 3
  %bytes = mul i64 %rank, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %extents, ptr %shape, i64 %bytes, i1 0)
  %steps = getelementptr i64, ptr %extents, i64 %rank
  call void @llvm.memcpy.p0.p0.i64(ptr %steps, ptr %strides, i64 %bytes, i1 0)
  ret i64 %end
forget:
  %clear_p = getelementptr ptr, ptr @__tw_python, i64 $clear
  %clear = load ptr, ptr %clear_p
  call void %clear()
  br label %refuse
refuse:
  ret i64 $unknown
}

; A vectorcall of Python: the facts of the arguments that decide the program which a call runs, as bytes, or None where
; that is not for native code to say.
define ptr @__tw_call_key(ptr %self, ptr %args, i64 %count, ptr %names) {
entry:
  %words = alloca [$key_words x i64], align 8
  %any = alloca [$any_size x i8], align 8
  %offset_p = getelementptr ptr, ptr @__tw_python, i64 $type_offset
  %offset = load i64, ptr %offset_p
  %named = icmp ne ptr %names, null
  br i1 %named, label %nothing, label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %go ]
  %at = phi i64 [ 0, %entry ], [ %behind, %go ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %argument_p = getelementptr ptr, ptr %args, i64 %i
  %argument = load ptr, ptr %argument_p
  %type_p = getelementptr i8, ptr %argument, i64 %offset
  %type = load ptr, ptr %type_p
  %row = call ptr @tensor_type(ptr %type)
  %no_tensor = icmp eq ptr %row, null
  br i1 %no_tensor, label %number, label %tensor
tensor:
  %told = call i64 @tensor_facts(ptr %argument, ptr %row, ptr %words, i64 %at)
  %bad = icmp slt i64 %told, 0
  br i1 %bad, label %nothing, label %go
number:
  %is_number = call i32 @number_of(ptr %argument, ptr %type, ptr %any)
  %fine = icmp ne i32 %is_number, 0
  %last = add i64 %at, 1
  %fits = icmp ult i64 %last, $key_words
  %good = and i1 %fine, %fits
  br i1 %good, label %class, label %nothing
class:
  ; Its kind, and whether an integer needs more than 32 bits.
  %kind = load i64, ptr %any
  %value_p = getelementptr i8, ptr %any, i64 $any_value
  %value = load i64, ptr %value_p
  %low = shl i64 %value, 32
  %narrow = ashr i64 %low, 32
  %is_wide = icmp ne i64 %narrow, %value
  %is_int = icmp eq i64 %kind, $int_kind
  %wide = and i1 %is_int, %is_wide
  %wide_word = zext i1 %wide to i64
  %kind_p = getelementptr i64, ptr %words, i64 %at
  store i64 %kind, ptr %kind_p
  %wide_p = getelementptr i64, ptr %words, i64 %last
  store i64 %wide_word, ptr %wide_p
  %behind_number = add i64 %last, 1
  br label %go
go:
  %behind = phi i64 [ %told, %tensor ], [ %behind_number, %class ]
  %i1 = add i64 %i, 1
  br label %next
end:
  %size = mul i64 %at, 8
  %bytes_p = getelementptr ptr, ptr @__tw_python, i64 $bytes
  %bytes = load ptr, ptr %bytes_p
  %made = call ptr %bytes(ptr %words, i64 %size)
  ret ptr %made
nothing:
  %incref_p = getelementptr ptr, ptr @__tw_python, i64 $incref
  %incref = load ptr, ptr %incref_p
  %none_p = getelementptr ptr, ptr @__tw_python, i64 $none
  %none = load ptr, ptr %none_p
  call void %incref(ptr %none)
  ret ptr %none
}
