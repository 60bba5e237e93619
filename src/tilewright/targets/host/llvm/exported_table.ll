; What the slots of an exported function's table start with.
declare i32 @tw_first_launch(ptr, ptr, ptr, ptr)
declare i32 @tw_first_enter(ptr, i32, ptr)
declare i32 @tw_first_tensor_map(ptr, i32, i32, ptr, ptr, ptr, ptr, ptr, i32, i32, i32, i32)
declare void @tw_write(ptr, i64)
declare void @tw_print_error(ptr, ptr)
declare void @tw_set_error(ptr, ptr)
declare ptr @TVMFFIEnvGetStream(i32, i32)
