declare void @llvm.va_start.p0(ptr)
declare void @llvm.va_copy.p0(ptr, ptr)
declare void @llvm.va_end.p0(ptr)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @vsnprintf(ptr, i64, ptr, ptr)
declare i32 @snprintf(ptr, i64, ptr, ...)
declare i64 @strlen(ptr)

; Sets an error of a kind (a class of tilewright.base.errors) and returns RAISED.
define i32 @__tw_raise(ptr %table, ptr %kind, ptr %message) cold noinline {
  %slot = getelementptr i64, ptr %table, i64 $set_error
  %set_error = load ptr, ptr %slot
  call void %set_error(ptr %kind, ptr %message)
  ret i32 $raised
}

; The same with a message in printf's notation.
define i32 @__tw_fail(ptr %table, ptr %kind, ptr %format, ...) cold noinline {
  %message = alloca [$size x i8]
  %arguments = alloca [32 x i8], align 16
  call void @llvm.va_start.p0(ptr %arguments)
  call i32 @vsnprintf(ptr %message, i64 $size, ptr %format, ptr %arguments)
  call void @llvm.va_end.p0(ptr %arguments)
  %result = call i32 @__tw_raise(ptr %table, ptr %kind, ptr %message)
  ret i32 %result
}

; printf, to where the table says. Returns the number of bytes.
define i32 @__tw_printf(ptr %table, ptr %format, ...) noinline {
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
  %slot = getelementptr i64, ptr %table, i64 $write
  %write = load ptr, ptr %slot
  call void %write(ptr %text, i64 %wide)
  ret i32 %length
}
