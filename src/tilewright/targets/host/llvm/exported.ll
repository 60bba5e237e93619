declare ptr @dlopen(ptr, i32)
declare ptr @dlsym(ptr, ptr)
declare i32 @sched_yield()
declare i32 @printf(ptr, ...)
declare i32 @dprintf(i32, ptr, ...)
declare i32 @fflush(ptr)
declare ptr @strstr(ptr, ptr)
declare i32 @strcmp(ptr, ptr)
declare i32 @__tw_raise(ptr, ptr, ptr)
declare i32 @__tw_fail(ptr, ptr, ptr, ...)
declare i32 @__tw_enter(ptr, i32, ptr)

; 0: not loaded, 1: a thread is loading, 2: loaded
@tw_state = internal global i32 0, align 4
@tw_driver = internal global [$driver_count x ptr] zeroinitializer, align 8
@tw_driver_names = internal constant [$driver_count x ptr] [$driver_names]
@tw_libraries = internal global [$kernel_count x ptr] zeroinitializer, align 8
@tw_images = internal constant [$kernel_count x ptr] [$images]
@tw_kernel_names = internal constant [$kernel_count x ptr] [$kernel_names]

define void @tw_write(ptr %text, i64 %size) {
  %short = trunc i64 %size to i32
  call i32 (ptr, ...) @printf(ptr $write_format, i32 %short, ptr %text)
  call i32 @fflush(ptr null)
  ret void
}

define void @tw_print_error(ptr %kind, ptr %message) {
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr $error_format, ptr %kind, ptr %message)
  ret void
}

$set_error

; Load the kernels for all devices, once. 0, or RAISED after the error is set.
define i32 @$load() {
entry:
  %count_p = alloca i32, align 4
  %value_p = alloca i32, align 4
  %limit_p = alloca i32, align 4
  %handle_p = alloca ptr, align 8
  br label %start
start:
  %exchanged = cmpxchg ptr @tw_state, i32 0, i32 1 acq_rel acquire
  %won = extractvalue { i32, i1 } %exchanged, 1
  br i1 %won, label %open, label %look
look:
  %state = load atomic i32, ptr @tw_state acquire, align 4
  switch i32 %state, label %wait [ i32 2, label %ready
                                   i32 0, label %start ]
wait:
  call i32 @sched_yield()
  br label %look
ready:
  ret i32 0

open:
  %library = call ptr @dlopen(ptr $driver_library, i32 2)
  %no_driver = icmp eq ptr %library, null
  br i1 %no_driver, label %fail_open, label %names
names:
  %i = phi i64 [ 0, %open ], [ %i1, %named ]
  %some = icmp ult i64 %i, $driver_count
  br i1 %some, label %resolve, label %initialise
resolve:
  %name_p = getelementptr ptr, ptr @tw_driver_names, i64 %i
  %name = load ptr, ptr %name_p
  %function = call ptr @dlsym(ptr %library, ptr %name)
  %missing = icmp eq ptr %function, null
  br i1 %missing, label %fail_old, label %named
named:
  %cell = getelementptr ptr, ptr @tw_driver, i64 %i
  store ptr %function, ptr %cell
  %i1 = add i64 %i, 1
  br label %names
initialise:
  %init = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $init)
  %started = call i32 %init(i32 0)
  %is_started = icmp eq i32 %started, 0
  br i1 %is_started, label %count_devices, label %fail_status
count_devices:
  %count_function = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $count)
  %counted = call i32 %count_function(ptr %count_p)
  %is_counted = icmp eq i32 %counted, 0
  br i1 %is_counted, label %kernels, label %fail_status
kernels:
  %k = phi i64 [ 0, %count_devices ], [ %k1, %next_kernel ]
  %more_kernels = icmp ult i64 %k, $kernel_count
  br i1 %more_kernels, label %load_kernel, label %done
load_kernel:
  %image_p = getelementptr ptr, ptr @tw_images, i64 %k
  %image = load ptr, ptr %image_p
  %load_data = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $load_data)
  %library_p = getelementptr ptr, ptr @tw_libraries, i64 %k
  %loaded = call i32 %load_data(ptr %library_p, ptr %image, ptr null, ptr null, i32 0, ptr null, ptr null, i32 0)
  %is_loaded = icmp eq i32 %loaded, 0
  br i1 %is_loaded, label %get_kernel, label %fail_status
get_kernel:
  %kernel_library = load ptr, ptr %library_p
  %kernel_name_p = getelementptr ptr, ptr @tw_kernel_names, i64 %k
  %kernel_name = load ptr, ptr %kernel_name_p
  %get = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $get_kernel)
  %got = call i32 %get(ptr %handle_p, ptr %kernel_library, ptr %kernel_name)
  %is_got = icmp eq i32 %got, 0
  br i1 %is_got, label %devices, label %fail_status
devices:
  %d = phi i32 [ 0, %get_kernel ], [ %d1, %next_device ]
  %kernel = load ptr, ptr %handle_p
  %device_count = load i32, ptr %count_p
  %more_devices = icmp slt i32 %d, %device_count
  br i1 %more_devices, label %set_up, label %next_kernel
set_up:
  ; What a device refuses here, a launch that needs it reports.
  %attribute = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $kernel_attribute)
  %asked = call i32 %attribute(ptr %value_p, i32 $shared_bytes, ptr %kernel, i32 %d)
  %is_asked = icmp eq i32 %asked, 0
  br i1 %is_asked, label %ask_device, label %next_device
ask_device:
  %device_attribute = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $device_attribute)
  %answered = call i32 %device_attribute(ptr %limit_p, i32 $shared_optin, i32 %d)
  %is_answered = icmp eq i32 %answered, 0
  br i1 %is_answered, label %allow, label %next_device
allow:
  %static = load i32, ptr %value_p
  %limit = load i32, ptr %limit_p
  %dynamic = sub i32 %limit, %static
  %set = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $set_attribute)
  call i32 %set(i32 $max_dynamic_shared, i32 %dynamic, ptr %kernel, i32 %d)
  call i32 %set(i32 $non_portable_cluster, i32 1, ptr %kernel, i32 %d)
  br label %next_device
next_device:
  %d1 = add i32 %d, 1
  br label %devices
next_kernel:
  %slot_number = add i64 %k, $first_kernel
  %slot = getelementptr i64, ptr @$table, i64 %slot_number
  store ptr %kernel, ptr %slot
  %k1 = add i64 %k, 1
  br label %kernels
done:
  %device_total = load i32, ptr %count_p
  store ptr @tw_driver, ptr getelementptr (i64, ptr @$table, i64 $slot_contexts)
  %several = icmp sgt i32 %device_total, 1
  %enter = select i1 %several, ptr @__tw_enter, ptr null
  store ptr %enter, ptr getelementptr (i64, ptr @$table, i64 $slot_enter)
  %encode = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $encode)
  store ptr %encode, ptr getelementptr (i64, ptr @$table, i64 $slot_tensor_map)
  %launch = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $launch)
  store atomic ptr %launch, ptr getelementptr (i64, ptr @$table, i64 $slot_launch) release, align 8
  %plain = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $plain)
  store atomic ptr %plain, ptr getelementptr (i64, ptr @$table, i64 $slot_plain) release, align 8
  store atomic i32 2, ptr @tw_state release, align 4
  ret i32 0

fail_open:
  call i32 @__tw_raise(ptr @$table, ptr $driver_kind, ptr $no_driver_text)
  br label %reset
fail_old:
  call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr @$table, ptr $driver_kind, ptr $old_driver_text, ptr %name)
  br label %reset
fail_status:
  %status = phi i32 [ %started, %initialise ], [ %counted, %count_devices ], [ %loaded, %load_kernel ],
    [ %got, %get_kernel ]
  call void @tw_drop()
  call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr @$table, ptr $launch_kind, ptr $status_text, i32 %status)
  br label %reset
reset:
  store atomic i32 0, ptr @tw_state release, align 4
  ret i32 $raised
}

; Unload what is loaded.
define internal void @tw_drop() {
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %step ]
  %more = icmp ult i64 %k, $kernel_count
  br i1 %more, label %one, label %end
one:
  %library_p = getelementptr ptr, ptr @tw_libraries, i64 %k
  %library = load ptr, ptr %library_p
  %none = icmp eq ptr %library, null
  br i1 %none, label %step, label %unload
unload:
  %function = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $unload_library)
  call i32 %function(ptr %library)
  store ptr null, ptr %library_p
  br label %step
step:
  %k1 = add i64 %k, 1
  br label %next
end:
  ret void
}

; Unload the kernels; a later call loads them again. No call may be under way.
define void @$unload() {
  %state = load atomic i32, ptr @tw_state acquire, align 4
  %loaded = icmp eq i32 %state, 2
  br i1 %loaded, label %drop, label %end
drop:
  store ptr null, ptr getelementptr (i64, ptr @$table, i64 $slot_plain)
  store ptr @tw_first_launch, ptr getelementptr (i64, ptr @$table, i64 $slot_launch)
  store ptr @tw_first_tensor_map, ptr getelementptr (i64, ptr @$table, i64 $slot_tensor_map)
  store ptr $first_enter, ptr getelementptr (i64, ptr @$table, i64 $slot_enter)
  call void @tw_drop()
  store atomic i32 0, ptr @tw_state release, align 4
  br label %end
end:
  ret void
}

; What the launch slot holds until the kernels are loaded; until then a kernel's slot holds its number, from 1.
define i32 @tw_first_launch(ptr %config, ptr %kernel, ptr %params, ptr %extra) {
entry:
  %status = call i32 @$load()
  %loaded = icmp eq i32 %status, 0
  br i1 %loaded, label %launch, label %end
launch:
  %number = ptrtoint ptr %kernel to i64
  %is_number = icmp ule i64 %number, $kernel_count
  %before = add i64 $first_kernel, -1
  %slot_number = add i64 %number, %before
  %bounded = select i1 %is_number, i64 %slot_number, i64 $first_kernel
  %slot = getelementptr i64, ptr @$table, i64 %bounded
  %handle = load ptr, ptr %slot
  %real = select i1 %is_number, ptr %handle, ptr %kernel
  %function = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $launch)
  %result = call i32 %function(ptr %config, ptr %real, ptr %params, ptr %extra)
  ret i32 %result
end:
  ret i32 %status
}

; What the enter slot holds until then.
define i32 @tw_first_enter(ptr %table, i32 %device, ptr %left) {
entry:
  store ptr null, ptr %left
  %status = call i32 @$load()
  %loaded = icmp eq i32 %status, 0
  br i1 %loaded, label %look, label %end
look:
  %enter = load ptr, ptr getelementptr (i64, ptr @$table, i64 $slot_enter)
  %alone = icmp eq ptr %enter, null
  br i1 %alone, label %end, label %change
change:
  %changed = call i32 %enter(ptr %table, i32 %device, ptr %left)
  ret i32 %changed
end:
  ret i32 %status
}

; What the slot for tensor maps holds until the driver is open.
define i32 @tw_first_tensor_map(ptr %map, i32 %type, i32 %rank, ptr %address, ptr %extents, ptr %strides, ptr %box,
                                ptr %steps, i32 %interleave, i32 %swizzle, i32 %promotion, i32 %fill) {
entry:
  %status = call i32 @$load()
  %loaded = icmp eq i32 %status, 0
  br i1 %loaded, label %encode, label %end
encode:
  %function = load ptr, ptr getelementptr (ptr, ptr @tw_driver, i64 $encode)
  %result = call i32 %function(ptr %map, i32 %type, i32 %rank, ptr %address, ptr %extents, ptr %strides, ptr %box,
    ptr %steps, i32 %interleave, i32 %swizzle, i32 %promotion, i32 %fill)
  ret i32 %result
end:
  ret i32 %status
}
