; What the checked entry of a host function calls, see runtime.py.
declare i16 @__tw_half(double)
declare i16 @__tw_bfloat(double)
declare i32 @__tw_fail_check(ptr, ptr, i64, ptr, ptr)
declare void @__tw_leave(ptr, ptr)
