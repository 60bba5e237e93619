; The kinds of errors by the names that every language knows.
declare void @TVMFFIErrorSetRaisedFromCStr(ptr, ptr)

define void @tw_set_error(ptr %kind, ptr %message) {
entry:
  %order = call i32 @strcmp(ptr %kind, ptr $argument_kind)
  %is_argument = icmp eq i32 %order, 0
  br i1 %is_argument, label %next, label %runtime
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %step ]
  %more = icmp ult i64 %i, $phrase_count
  br i1 %more, label %compare, label %value
compare:
  %phrase_p = getelementptr ptr, ptr @tw_phrases, i64 %i
  %phrase = load ptr, ptr %phrase_p
  %found = call ptr @strstr(ptr %message, ptr %phrase)
  %is_type = icmp ne ptr %found, null
  br i1 %is_type, label %set, label %step
step:
  %i1 = add i64 %i, 1
  br label %next
runtime:
  br label %set
value:
  br label %set
set:
  %name = phi ptr [ $type_kind, %compare ], [ $value_kind, %value ], [ $runtime_kind, %runtime ]
  call void @TVMFFIErrorSetRaisedFromCStr(ptr %name, ptr %message)
  ret void
}
@tw_phrases = internal constant [$phrase_count x ptr] [$phrases]
