; Appends "(a, b, c)" to %text, which has room for %size bytes; returns the number of bytes.
define internal i64 @list_text(ptr %text, i64 %size, ptr %values, i64 %count) cold noinline {
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
  %format = select i1 %first, ptr $first_item, ptr $next_item
  %written = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %here, i64 %room, ptr %format, i64 %value)
  %wide = sext i32 %written to i64
  %length1 = add i64 %length, %wide
  %i1 = add i64 %i, 1
  br label %next
end:
  store i16 41, ptr %here
  %total = add i64 %length, 1
  ret i64 %total
}

; "f32 (4, 8) : (8, 1) on cpu"
define internal void @tensor_text(ptr %text, i64 %size, ptr %dl) cold noinline {
  %shape_text = alloca [512 x i8]
  %stride_text = alloca [512 x i8]
  %dtype_text = alloca [32 x i8]
  %code_p = getelementptr i8, ptr %dl, i64 $dtype
  %code8 = load i8, ptr %code_p
  %code = zext i8 %code8 to i64
  %code_known = icmp ult i64 %code, $dtype_count
  %code_row = select i1 %code_known, i64 %code, i64 3
  %dtype_format = getelementptr [$dtype_width x i8], ptr @dtype_names, i64 %code_row
  %bits_p = getelementptr i8, ptr %code_p, i64 1
  %bits8 = load i8, ptr %bits_p
  %bits = zext i8 %bits8 to i32
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %dtype_text, i64 32, ptr %dtype_format, i32 %bits)
  %lanes_p = getelementptr i8, ptr %code_p, i64 2
  %lanes16 = load i16, ptr %lanes_p
  %lanes = zext i16 %lanes16 to i32
  %packed = icmp ugt i32 %lanes, 1
  %lanes_format = select i1 %packed, ptr $packed_lanes, ptr $one_lane
  %lanes_text = alloca [16 x i8]
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %lanes_text, i64 16, ptr %lanes_format, i32 %lanes)
  %ndim_p = getelementptr i8, ptr %dl, i64 $ndim
  %ndim32 = load i32, ptr %ndim_p
  %ndim = sext i32 %ndim32 to i64
  %shape_p = getelementptr i8, ptr %dl, i64 $shape
  %shape = load ptr, ptr %shape_p
  call i64 @list_text(ptr %shape_text, i64 512, ptr %shape, i64 %ndim)
  %strides_p = getelementptr i8, ptr %dl, i64 $strides
  %strides = load ptr, ptr %strides_p
  %compact = icmp eq ptr %strides, null
  %stride_count = select i1 %compact, i64 0, i64 %ndim
  call i64 @list_text(ptr %stride_text, i64 512, ptr %strides, i64 %stride_count)
  %stride_shown = select i1 %compact, ptr $compact, ptr %stride_text
  %device_p = getelementptr i8, ptr %dl, i64 $device
  %device = load i32, ptr %device_p
  %device_known = icmp ult i32 %device, $device_count
  %device_row = select i1 %device_known, i32 %device, i32 0
  %device_text = getelementptr [$device_width x i8], ptr @device_names, i32 %device_row
  %id_p = getelementptr i8, ptr %device_p, i64 4
  %id = load i32, ptr %id_p
  %has_id = icmp eq i32 %device, $cuda
  %id_format = select i1 %has_id, ptr $with_id, ptr $without_id
  %id_text = alloca [16 x i8]
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %id_text, i64 16, ptr %id_format, i32 %id)
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 %size, ptr $tensor_format, ptr %dtype_text,
    ptr %lanes_text, ptr %shape_text, ptr %stride_shown, ptr %device_text, ptr %id_text)
  ret void
}

; The word for where tensors must be.
define internal ptr @expected_device(ptr %table) cold noinline {
  %slot = getelementptr i64, ptr %table, i64 $devices
  %mask = load i64, ptr %slot
  %host = and i64 %mask, $cpu_bit
  %is_host = icmp ne i64 %host, 0
  %word = select i1 %is_host, ptr $cpu_word, ptr $cuda_word
  ret ptr %word
}

; A tensor fails a check; %what is in printf's notation and may show %value once.
define internal i32 @fail_tensor(ptr %table, ptr %what, i64 %value, ptr %expected, ptr %hint, ptr %dl,
    ptr %signature) cold noinline {
  %head = alloca [512 x i8]
  %actual = alloca [1280 x i8]
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %head, i64 512, ptr %what, i64 %value)
  call void @tensor_text(ptr %actual, i64 1280, ptr %dl)
  %device = call ptr @expected_device(ptr %table)
  %result = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr $argument_error, ptr $tensor_report, ptr %head,
    ptr %expected, ptr %device, ptr %actual, ptr %hint, ptr %signature)
  ret i32 %result
}

; An argument (a TVMFFIAny) fails a check.
define internal i32 @fail_any(ptr %table, ptr %what, ptr %expected, ptr %hint, ptr %any,
    ptr %signature) cold noinline {
entry:
  %actual = alloca [1280 x i8]
  %type = load i32, ptr %any
  %value_p = getelementptr i8, ptr %any, i64 $any_value
  %integer = load i64, ptr %value_p
  %pointer = load ptr, ptr %value_p
  switch i32 %type, label %other [
    i32 $int, label %number
    i32 $bool, label %truth
    i32 $float, label %real
    i32 $dltensor, label %view
    i32 $tensor, label %object
  ]
number:
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %actual, i64 1280, ptr $int_format, i64 %integer)
  br label %report
truth:
  %is_true = icmp ne i64 %integer, 0
  %truth_text = select i1 %is_true, ptr $true_text, ptr $false_text
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %actual, i64 1280, ptr $text_format, ptr %truth_text)
  br label %report
real:
  %double = load double, ptr %value_p
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %actual, i64 1280, ptr $float_format, double %double)
  br label %report
object:
  %inner = getelementptr i8, ptr %pointer, i64 $object_header
  br label %view
view:
  %dl = phi ptr [ %pointer, %entry ], [ %inner, %object ]
  call void @tensor_text(ptr %actual, i64 1280, ptr %dl)
  br label %report
other:
  %known = icmp ult i32 %type, $kind_count
  %row = select i1 %known, i32 %type, i32 64
  %kind = getelementptr [$kind_width x i8], ptr @kind_names, i32 %row
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %actual, i64 1280, ptr $text_format, ptr %kind)
  br label %report
report:
  %result = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr $argument_error, ptr $any_report, ptr %what,
    ptr %expected, ptr %actual, ptr %hint, ptr %signature)
  ret i32 %result
}

; A check of the wrapper fails; %message is as abi.py says, %signature shows the function and its parameters.
define i32 @__tw_fail_check(ptr %table, ptr %message, i64 %value, ptr %subject, ptr %signature) cold noinline {
  %kind = load i8, ptr %message
  %what = getelementptr i8, ptr %message, i64 1
  %what_size = call i64 @strlen(ptr %what)
  %what_end = getelementptr i8, ptr %what, i64 %what_size
  %expected = getelementptr i8, ptr %what_end, i64 1
  %expected_size = call i64 @strlen(ptr %expected)
  %expected_end = getelementptr i8, ptr %expected, i64 %expected_size
  %hint = getelementptr i8, ptr %expected_end, i64 1
  switch i8 %kind, label %status [
    i8 $failed_tensor, label %tensor
    i8 $failed_argument, label %argument
    i8 $failed_count, label %count
  ]
tensor:
  %r0 = call i32 @fail_tensor(ptr %table, ptr %what, i64 %value, ptr %expected, ptr %hint, ptr %subject,
    ptr %signature)
  ret i32 %r0
argument:
  %r1 = call i32 @fail_any(ptr %table, ptr %what, ptr %expected, ptr %hint, ptr %subject, ptr %signature)
  ret i32 %r1
count:
  %r2 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr $argument_error, ptr %what, i64 %value)
  ret i32 %r2
status:
  %r3 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr $launch_error, ptr %what, i64 %value)
  ret i32 %r3
}
