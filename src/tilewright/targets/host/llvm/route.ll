; Which of several compiled functions takes the arguments of a call, by facts of these: see router.py, which has the
; layout of a route and of its entries.

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Flattens the first %count modes of a tensor: their product to %extent, the stride of the last one that has a second
; element to %step. False where the modes are not those of one run.
define internal i1 @flattened(ptr %shape, ptr %strides, i32 %count, ptr %extent, ptr %step) {
entry:
  br label %next
next:
  %left = phi i32 [ %count, %entry ], [ %mode, %skip ], [ %mode, %take ]
  %size = phi i64 [ 1, %entry ], [ %size, %skip ], [ %size1, %take ]
  %stride = phi i64 [ 1, %entry ], [ %stride, %skip ], [ %stride1, %take ]
  %done = icmp eq i32 %left, 0
  br i1 %done, label %end, label %look
look:
  %mode = sub i32 %left, 1
  %shape_p = getelementptr i64, ptr %shape, i32 %mode
  %here = load i64, ptr %shape_p
  %single = icmp eq i64 %here, 1
  br i1 %single, label %skip, label %check
skip:
  br label %next
check:
  %stride_p = getelementptr i64, ptr %strides, i32 %mode
  %given = load i64, ptr %stride_p
  %first = icmp eq i64 %size, 1
  %wanted = mul i64 %stride, %size
  %run = icmp eq i64 %given, %wanted
  %fits = or i1 %first, %run
  br i1 %fits, label %take, label %apart
take:
  %stride1 = select i1 %first, i64 %given, i64 %stride
  %size1 = mul i64 %size, %here
  br label %next
end:
  store i64 %size, ptr %extent
  store i64 %stride, ptr %step
  ret i1 1
apart:
  ret i1 0
}

; The facts of an argument to %key, four words, and what is passed on for it to %passed. Returns how many are passed
; on, or $unknown where no function takes such an argument as it is. %common has the rows of the arguments before, or less
; than 0.
define internal i32 @look(i64 %kind, ptr %argument, ptr %key, ptr %passed, ptr %view, ptr %common) {
entry:
  %extent = alloca i64
  %step = alloca i64
  store [$facts x i64] zeroinitializer, ptr %key
  %type = load i32, ptr %argument
  %value_p = getelementptr i8, ptr %argument, i64 $any_value
  %value = load i64, ptr %value_p
  %key1 = getelementptr i64, ptr %key, i64 1
  %key2 = getelementptr i64, ptr %key, i64 2
  %key3 = getelementptr i64, ptr %key, i64 3
  %is_number = icmp eq i64 %kind, $number
  br i1 %is_number, label %pass, label %ask_constant
pass:
  call void @llvm.memcpy.p0.p0.i64(ptr %passed, ptr %argument, i64 $any_size, i1 0)
  ret i32 1
ask_constant:
  %is_constant = icmp eq i64 %kind, $constant
  br i1 %is_constant, label %constant, label %ask_none
constant:
  %wide_type = zext i32 %type to i64
  store i64 %wide_type, ptr %key
  store i64 %value, ptr %key1
  ret i32 0
ask_none:
  %is_none = icmp eq i32 %type, $none
  br i1 %is_none, label %none, label %ask_tensor
none:
  ret i32 0
ask_tensor:
  %plain = icmp eq i32 %type, $dltensor
  %boxed = icmp eq i32 %type, $tensor
  %is_tensor = or i1 %plain, %boxed
  br i1 %is_tensor, label %tensor, label %unknown
tensor:
  %header = select i1 %boxed, i64 $object_header, i64 0
  %address = add i64 %value, %header
  %dl = inttoptr i64 %address to ptr
  %ndim_p = getelementptr i8, ptr %dl, i64 $ndim
  %ndim = load i32, ptr %ndim_p
  %shape_p = getelementptr i8, ptr %dl, i64 $shape
  %shape = load ptr, ptr %shape_p
  %strides_p = getelementptr i8, ptr %dl, i64 $strides
  %strides = load ptr, ptr %strides_p
  %compact = icmp eq ptr %strides, null
  %has_modes = icmp ne i32 %ndim, 0
  %unseen = and i1 %compact, %has_modes
  br i1 %unseen, label %unknown, label %split
split:
  ; Matrices and columns end with a mode of neighbours; the modes before it are flattened.
  %is_strided = icmp eq i64 %kind, $strided
  %inner = select i1 %is_strided, i32 0, i32 1
  %outer = sub i32 %ndim, %inner
  %has_inner = icmp sge i32 %outer, 0
  br i1 %has_inner, label %ask_columns, label %unknown
ask_columns:
  %is_columns = icmp eq i64 %kind, $columns
  %no_outer = icmp eq i32 %outer, 0
  %bad_columns = xor i1 %no_outer, true
  %refused = and i1 %is_columns, %bad_columns
  br i1 %refused, label %unknown, label %flatten
flatten:
  %flat = call i1 @flattened(ptr %shape, ptr %strides, i32 %outer, ptr %extent, ptr %step)
  br i1 %flat, label %type_key, label %unknown
type_key:
  %rows = load i64, ptr %extent
  %row_step = load i64, ptr %step
  %device_p = getelementptr i8, ptr %dl, i64 $device
  %device = load i32, ptr %device_p
  %wide_device = zext i32 %device to i64
  %high_device = shl i64 %wide_device, 32
  %dtype_p = getelementptr i8, ptr %dl, i64 $dtype
  %dtype = load i32, ptr %dtype_p
  %wide_dtype = zext i32 %dtype to i64
  %kind_of = or i64 %high_device, %wide_dtype
  store i64 %kind_of, ptr %key
  call void @llvm.memcpy.p0.p0.i64(ptr %view, ptr %dl, i64 $dl_size, i1 0)
  store i32 $dltensor, ptr %passed
  %passed_value = getelementptr i8, ptr %passed, i64 $any_value
  store ptr %view, ptr %passed_value
  %view_shape = getelementptr i8, ptr %view, i64 $dl_size
  %view_strides = getelementptr i64, ptr %view_shape, i64 2
  %view_ndim = getelementptr i8, ptr %view, i64 $ndim
  %view_shape_p = getelementptr i8, ptr %view, i64 $shape
  store ptr %view_shape, ptr %view_shape_p
  %view_strides_p = getelementptr i8, ptr %view, i64 $strides
  store ptr %view_strides, ptr %view_strides_p
  br i1 %is_strided, label %strided, label %neighbours
strided:
  store i32 1, ptr %view_ndim
  store i64 %rows, ptr %view_shape
  store i64 %row_step, ptr %view_strides
  br label %compare
neighbours:
  %count_p = getelementptr i64, ptr %shape, i32 %outer
  %columns = load i64, ptr %count_p
  %unit_p = getelementptr i64, ptr %strides, i32 %outer
  %unit = load i64, ptr %unit_p
  %dense = icmp eq i64 %unit, 1
  %alone = icmp slt i64 %columns, 2
  %near = or i1 %dense, %alone
  br i1 %near, label %inner_key, label %unknown
inner_key:
  store i64 %columns, ptr %key1
  %data_p = getelementptr i8, ptr %dl, i64 $data
  %data = load i64, ptr %data_p
  %offset_p = getelementptr i8, ptr %dl, i64 $offset
  %offset = load i64, ptr %offset_p
  %first = add i64 %data, %offset
  %rest = and i64 %first, $alignment
  store i64 %rest, ptr %key3
  %view_shape1 = getelementptr i64, ptr %view_shape, i64 1
  %view_strides1 = getelementptr i64, ptr %view_strides, i64 1
  br i1 %is_columns, label %vector, label %matrix
vector:
  store i32 1, ptr %view_ndim
  store i64 %columns, ptr %view_shape
  store i64 1, ptr %view_strides
  ret i32 1
matrix:
  %elements = mul i64 %rows, %columns
  %nothing = icmp eq i64 %elements, 0
  br i1 %nothing, label %unknown, label %filled
filled:
  %one_row = icmp eq i64 %rows, 1
  %used_step = select i1 %one_row, i64 %columns, i64 %row_step
  store i64 %used_step, ptr %key2
  store i32 2, ptr %view_ndim
  store i64 %rows, ptr %view_shape
  store i64 %columns, ptr %view_shape1
  store i64 %used_step, ptr %view_strides
  store i64 1, ptr %view_strides1
  %is_free = icmp eq i64 %kind, $free_matrix
  br i1 %is_free, label %good, label %compare
compare:
  %before = load i64, ptr %common
  %is_first = icmp slt i64 %before, 0
  %as_before = icmp eq i64 %before, %rows
  %agrees = or i1 %is_first, %as_before
  store i64 %rows, ptr %common
  br i1 %agrees, label %good, label %unknown
good:
  ret i32 1
unknown:
  ret i32 $unknown
}

; Looks at all arguments behind the first; returns how many are passed on, or $unknown.
define internal i32 @look_at_all(ptr %route, ptr %arguments, ptr %key, ptr %passed, ptr %views) {
entry:
  %common = alloca i64
  store i64 -1, ptr %common
  %count = load i64, ptr %route
  %kinds = getelementptr i64, ptr %route, i64 $first_kind
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %go ]
  %taken = phi i32 [ 0, %entry ], [ %taken1, %go ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %kind_p = getelementptr i64, ptr %kinds, i64 %i
  %kind = load i64, ptr %kind_p
  %argument = getelementptr [$any_size x i8], ptr %arguments, i64 %i
  %key_p = getelementptr [$facts x i64], ptr %key, i64 %i
  %passed_p = getelementptr [$any_size x i8], ptr %passed, i32 %taken
  %view = getelementptr [$view_size x i8], ptr %views, i64 %i
  %found = call i32 @look(i64 %kind, ptr %argument, ptr %key_p, ptr %passed_p, ptr %view, ptr %common)
  %bad = icmp slt i32 %found, 0
  br i1 %bad, label %stop, label %go
go:
  %taken1 = add i32 %taken, %found
  %i1 = add i64 %i, 1
  br label %next
end:
  ret i32 %taken
stop:
  ret i32 %found
}

; A tvm-ffi function: (route, arguments...) calls the function whose entry has the facts of the arguments. Its result is
; None when that is done, True where no entry has them.
define i32 @__tw_route(ptr %handle, ptr %args, i32 %given, ptr %result) {
entry:
  %key = alloca [$most x [$facts x i64]], align 8
  %passed = alloca [$most x [$any_size x i8]], align 8
  %views = alloca [$most x [$view_size x i8]], align 8
  store i32 $none, ptr %result
  %route_p = getelementptr i8, ptr %args, i64 $any_value
  %route = load ptr, ptr %route_p
  %count = load i64, ptr %route
  %wide_given = sext i32 %given to i64
  %behind = sub i64 %wide_given, 1
  %right = icmp eq i64 %behind, %count
  br i1 %right, label %look, label %miss
look:
  %arguments = getelementptr i8, ptr %args, i64 $any_size
  %found = call i32 @look_at_all(ptr %route, ptr %arguments, ptr %key, ptr %passed, ptr %views)
  %unknown = icmp slt i32 %found, 0
  br i1 %unknown, label %miss, label %search
search:
  %entry_count_p = getelementptr i64, ptr %route, i64 1
  %entry_count = load atomic i64, ptr %entry_count_p acquire, align 8
  %entries_p = getelementptr i64, ptr %route, i64 2
  %entries = load ptr, ptr %entries_p
  %words = mul i64 %count, $facts
  %stride = add i64 %words, 1
  br label %next
next:
  %i = phi i64 [ 0, %search ], [ %i1, %other ]
  %more = icmp ult i64 %i, %entry_count
  br i1 %more, label %start, label %miss
start:
  %place = mul i64 %i, %stride
  %target_p = getelementptr i64, ptr %entries, i64 %place
  %entry_key = getelementptr i64, ptr %target_p, i64 1
  br label %compare
compare:
  %w = phi i64 [ 0, %start ], [ %w1, %same ]
  %all = icmp eq i64 %w, %words
  br i1 %all, label %run, label %word
word:
  %a_p = getelementptr i64, ptr %key, i64 %w
  %a = load i64, ptr %a_p
  %b_p = getelementptr i64, ptr %entry_key, i64 %w
  %b = load i64, ptr %b_p
  %equal = icmp eq i64 %a, %b
  br i1 %equal, label %same, label %other
same:
  %w1 = add i64 %w, 1
  br label %compare
other:
  %i1 = add i64 %i, 1
  br label %next
run:
  %target = load ptr, ptr %target_p
  %status = call i32 %target(ptr null, ptr %passed, i32 %found, ptr %result)
  ret i32 %status
miss:
  store i32 $bool, ptr %result
  %value_p = getelementptr i8, ptr %result, i64 $any_value
  store i64 1, ptr %value_p
  br label %done
done:
  ret i32 0
}

; A tvm-ffi function: (route, key, arguments...) writes the facts of the arguments to the words at `key`. Its result is
; True where a function may be chosen by them, else False.
define i32 @__tw_facts(ptr %handle, ptr %args, i32 %given, ptr %result) {
  %passed = alloca [$most x [$any_size x i8]], align 8
  %views = alloca [$most x [$view_size x i8]], align 8
  %route_p = getelementptr i8, ptr %args, i64 $any_value
  %route = load ptr, ptr %route_p
  %second = getelementptr i8, ptr %args, i64 $any_size
  %key_p = getelementptr i8, ptr %second, i64 $any_value
  %key = load ptr, ptr %key_p
  %arguments = getelementptr i8, ptr %second, i64 $any_size
  %found = call i32 @look_at_all(ptr %route, ptr %arguments, ptr %key, ptr %passed, ptr %views)
  %known = icmp sge i32 %found, 0
  %shown = zext i1 %known to i64
  store i32 $bool, ptr %result
  %value_p = getelementptr i8, ptr %result, i64 $any_value
  store i64 %shown, ptr %value_p
  ret i32 0
}
