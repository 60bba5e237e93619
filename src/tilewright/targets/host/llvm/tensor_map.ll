; The driver's cuTensorMapEncodeTiled, or what stands for it, by the table; 0, or RAISED after the error is set.
define i32 @__tw_tensor_map(ptr %table, ptr %map, i32 %type, i32 %rank, ptr %address, ptr %extents, ptr %strides,
                            ptr %box, ptr %steps, i32 %swizzle) noinline {
entry:
  %slot = getelementptr i64, ptr %table, i64 $tensor_map
  %ready = load ptr, ptr %slot
  %none = icmp eq ptr %ready, null
  br i1 %none, label %absent, label %call
absent:
  %e0 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr $launch_kind, ptr $no_maps_text)
  ret i32 %e0
call:
  %status = call i32 %ready(ptr %map, i32 %type, i32 %rank, ptr %address, ptr %extents, ptr %strides, ptr %box,
    ptr %steps, i32 0, i32 %swizzle, i32 $promotion, i32 0)
  %done = icmp eq i32 %status, 0
  br i1 %done, label %success, label %refused
success:
  ret i32 0
refused:
  %contiguous = load i64, ptr %extents
  %e1 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr $launch_kind, ptr $refused_map_text, i32 %status,
    ptr %address, i32 %rank, i64 %contiguous)
  ret i32 %e1
}
