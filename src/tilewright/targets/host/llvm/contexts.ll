@contexts = internal global [$most_devices x ptr] zeroinitializer, align 8

; Makes the primary context of a device current unless it is; %left gets the context that was current, or null where
; nothing was changed. Gives the driver's status.
define i32 @__tw_enter(ptr %table, i32 %device, ptr %left) cold noinline {
entry:
  %found = alloca i32, align 8
  %context_p = alloca ptr, align 8
  store ptr null, ptr %left
  store ptr null, ptr %context_p
  %slot = getelementptr i64, ptr %table, i64 $contexts
  %functions = load ptr, ptr %slot
  %unknown = icmp eq ptr %functions, null
  br i1 %unknown, label %refuse, label %ask
refuse:
  ret i32 $invalid_context
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
  %known_range = icmp ult i32 %device, $most_devices
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
}

; Makes the context current again that `__tw_enter` left; nothing for null.
define void @__tw_leave(ptr %table, ptr %left) cold noinline {
  %none = icmp eq ptr %left, null
  br i1 %none, label %end, label %back
back:
  %slot = getelementptr i64, ptr %table, i64 $contexts
  %functions = load ptr, ptr %slot
  %set_p = getelementptr ptr, ptr %functions, i64 1
  %set_current = load ptr, ptr %set_p
  call i32 %set_current(ptr %left)
  br label %end
end:
  ret void
}

; The attributes for the events of a launch, from a record (EVENT_RECORD in abi.py) that also holds the stream.
define internal void @launch_events(ptr %config, ptr %attributes, ptr %count_p, ptr %record) noinline {
  %stream = load ptr, ptr %record
  %stream_p = getelementptr i8, ptr %config, i64 32
  store ptr %stream, ptr %stream_p
  %completion_p = getelementptr i64, ptr %record, i64 1
  call void @launch_event(ptr %attributes, ptr %count_p, ptr %completion_p, i32 $completion_id, i32 0)
  %programmatic_p = getelementptr i64, ptr %record, i64 3
  %trigger_p = getelementptr i64, ptr %record, i64 5
  %trigger = load i32, ptr %trigger_p
  call void @launch_event(ptr %attributes, ptr %count_p, ptr %programmatic_p, i32 $programmatic_id, i32 %trigger)
  ret void
}

define internal void @launch_event(ptr %attributes, ptr %count_p, ptr %event_p, i32 %id, i32 %trigger) noinline {
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
}
