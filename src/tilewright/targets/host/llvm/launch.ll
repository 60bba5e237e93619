declare i32 @llvm.smin.i32(i32, i32)

; Gives a launch to the driver: by cuLaunchKernel where it has no attributes and the table has that.
define internal i32 @submit(ptr %table, ptr %config, ptr %kernel_p, ptr %params) {
entry:
  %count_p = getelementptr i8, ptr %config, i64 48
  %count = load i32, ptr %count_p
  %bare = icmp eq i32 %count, 0
  br i1 %bare, label %look, label %extended
look:
  ; In this order, and so below: an exported function stores its kernels, then the driver's launch functions.
  %plain_p = getelementptr i64, ptr %table, i64 $plain
  %plain = load atomic ptr, ptr %plain_p acquire, align 8
  %none = icmp eq ptr %plain, null
  br i1 %none, label %extended, label %short
short:
  %gx = load i32, ptr %config
  %gy_p = getelementptr i8, ptr %config, i64 4
  %gy = load i32, ptr %gy_p
  %gz_p = getelementptr i8, ptr %config, i64 8
  %gz = load i32, ptr %gz_p
  %bx_p = getelementptr i8, ptr %config, i64 12
  %bx = load i32, ptr %bx_p
  %by_p = getelementptr i8, ptr %config, i64 16
  %by = load i32, ptr %by_p
  %bz_p = getelementptr i8, ptr %config, i64 20
  %bz = load i32, ptr %bz_p
  %smem_p = getelementptr i8, ptr %config, i64 24
  %smem = load i32, ptr %smem_p
  %stream_p = getelementptr i8, ptr %config, i64 32
  %stream = load ptr, ptr %stream_p
  %handle = load ptr, ptr %kernel_p
  %begun = call i32 %plain(ptr %handle, i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz, i32 %smem, ptr %stream,
                           ptr %params, ptr null)
  ret i32 %begun
extended:
  %launch_p = getelementptr i64, ptr %table, i64 $launch
  %function = load atomic ptr, ptr %launch_p acquire, align 8
  %kernel = load ptr, ptr %kernel_p
  %status = call i32 %function(ptr %config, ptr %kernel, ptr %params, ptr null)
  ret i32 %status
}

define i32 @__tw_launch(ptr %table, i32 %index, i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz,
                        i32 %cx, i32 %cy, i32 %cz, i32 %smem, ptr %stream, i32 %flags, ptr %params) noinline {
entry:
  %config = alloca [56 x i8], align 8
  %attributes = alloca [6 x [72 x i8]], align 8
  %gx1 = icmp slt i32 %gx, 1
  %gy0 = sub i32 %gy, 1
  %gy1 = icmp uge i32 %gy0, 65535
  %gz0 = sub i32 %gz, 1
  %gz1 = icmp uge i32 %gz0, 65535
  %gxy = or i1 %gx1, %gy1
  %bad_grid = or i1 %gxy, %gz1
  br i1 %bad_grid, label %grid_error, label %check_block
check_block:
  %bx0 = sub i32 %bx, 1
  %bx1 = icmp uge i32 %bx0, 1024
  %by0 = sub i32 %by, 1
  %by1 = icmp uge i32 %by0, 1024
  %bz0 = sub i32 %bz, 1
  %bz1 = icmp uge i32 %bz0, 64
  %bxy = mul i32 %bx, %by
  %threads = mul i32 %bxy, %bz
  %many = icmp ugt i32 %threads, 1024
  %b1 = or i1 %bx1, %by1
  %b2 = or i1 %bz1, %many
  %bad_block = or i1 %b1, %b2
  br i1 %bad_block, label %block_error, label %check_cluster
check_cluster:
  %cx0 = sub i32 %cx, 1
  %cx1 = icmp uge i32 %cx0, 16
  %cy0 = sub i32 %cy, 1
  %cy1 = icmp uge i32 %cy0, 16
  %cz0 = sub i32 %cz, 1
  %cz1 = icmp uge i32 %cz0, 16
  %cxy = mul i32 %cx, %cy
  %blocks = mul i32 %cxy, %cz
  %large = icmp ugt i32 %blocks, 16
  %c1 = or i1 %cx1, %cy1
  %c2 = or i1 %cz1, %large
  %bad_cluster = or i1 %c1, %c2
  br i1 %bad_cluster, label %cluster_error, label %check_division
check_division:
  %rx = urem i32 %gx, %cx
  %ry = urem i32 %gy, %cy
  %rz = urem i32 %gz, %cz
  %rxy = or i32 %rx, %ry
  %rest = or i32 %rxy, %rz
  %divides = icmp eq i32 %rest, 0
  br i1 %divides, label %check_smem, label %division_error
check_smem:
  %bad_smem = icmp slt i32 %smem, 0
  br i1 %bad_smem, label %smem_error, label %launch

launch:
  store i32 %gx, ptr %config
  %gy_p = getelementptr i8, ptr %config, i64 4
  store i32 %gy, ptr %gy_p
  %gz_p = getelementptr i8, ptr %config, i64 8
  store i32 %gz, ptr %gz_p
  %bx_p = getelementptr i8, ptr %config, i64 12
  store i32 %bx, ptr %bx_p
  %by_p = getelementptr i8, ptr %config, i64 16
  store i32 %by, ptr %by_p
  %bz_p = getelementptr i8, ptr %config, i64 20
  store i32 %bz, ptr %bz_p
  %smem_p = getelementptr i8, ptr %config, i64 24
  store i32 %smem, ptr %smem_p
  ; Each attribute is written behind the last that counts; the count moves on where it applies.
  store i32 $cluster_id, ptr %attributes
  %cluster_x = getelementptr i8, ptr %attributes, i64 8
  store i32 %cx, ptr %cluster_x
  %cluster_y = getelementptr i8, ptr %attributes, i64 12
  store i32 %cy, ptr %cluster_y
  %cluster_z = getelementptr i8, ptr %attributes, i64 16
  store i32 %cz, ptr %cluster_z
  %is_cluster = icmp ugt i32 %blocks, 1
  %n1 = zext i1 %is_cluster to i32
  %cooperative = getelementptr [72 x i8], ptr %attributes, i32 %n1
  store i32 $cooperative_id, ptr %cooperative
  %cooperative_value = getelementptr i8, ptr %cooperative, i64 8
  store i32 1, ptr %cooperative_value
  %is_cooperative = and i32 %flags, 1
  %n2 = add i32 %n1, %is_cooperative
  %pdl = getelementptr [72 x i8], ptr %attributes, i32 %n2
  store i32 $pdl_id, ptr %pdl
  %pdl_value = getelementptr i8, ptr %pdl, i64 8
  store i32 1, ptr %pdl_value
  %pdl_bit = lshr i32 %flags, 1
  %is_pdl = and i32 %pdl_bit, 1
  %n3 = add i32 %n2, %is_pdl
  %stream_p = getelementptr i8, ptr %config, i64 32
  store ptr %stream, ptr %stream_p
  %attributes_p = getelementptr i8, ptr %config, i64 40
  store ptr %attributes, ptr %attributes_p
  %count_p = getelementptr i8, ptr %config, i64 48
  store i32 %n3, ptr %count_p
  %event_bit = and i32 %flags, 4
  %has_events = icmp ne i32 %event_bit, 0
  br i1 %has_events, label %add_events, label %send
add_events:
  call void @launch_events(ptr %config, ptr %attributes, ptr %count_p, ptr %stream)
  br label %send
send:
  %number = zext i32 %index to i64
  %kernel_slot = add i64 %number, $first_kernel
  %kernel_p = getelementptr i64, ptr %table, i64 %kernel_slot
  %first = call i32 @submit(ptr %table, ptr %config, ptr %kernel_p, ptr %params)
  %done = icmp eq i32 %first, 0
  br i1 %done, label %success, label %check_raised
success:
  ret i32 0
check_raised:
  %raised = icmp eq i32 %first, $raised
  br i1 %raised, label %pass_on, label %check_context
pass_on:
  ret i32 $raised
check_context:
  ; A thread that has not used CUDA yet has no context: take the first device's, as frameworks do.
  %no_context = icmp eq i32 %first, $invalid_context
  br i1 %no_context, label %enter, label %launch_error
enter:
  %left = alloca ptr, align 8
  %entered = call i32 @__tw_enter(ptr %table, i32 0, ptr %left)
  %is_entered = icmp eq i32 %entered, 0
  br i1 %is_entered, label %again, label %launch_error
again:
  %second = call i32 @submit(ptr %table, ptr %config, ptr %kernel_p, ptr %params)
  %done_now = icmp eq i32 %second, 0
  br i1 %done_now, label %success, label %launch_error

grid_error:
  %gzy = call i32 @llvm.smin.i32(i32 %gy, i32 %gz)
  %gleast = call i32 @llvm.smin.i32(i32 %gx, i32 %gzy)
  %gnone = icmp slt i32 %gleast, 1
  %gless = icmp slt i32 %gleast, 0
  %ghint0 = select i1 %gnone, ptr $nothing, ptr $along_x
  %ghint = select i1 %gless, ptr $negative, ptr %ghint0
  %e1 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr $launch_kind, ptr $grid_text,
    i32 %gx, i32 %gy, i32 %gz, ptr %ghint)
  ret i32 %e1
block_error:
  %ex = sext i32 %bx to i64
  %ey = sext i32 %by to i64
  %ez = sext i32 %bz to i64
  %exy = mul i64 %ex, %ey
  %exyz = mul i64 %exy, %ez
  %bzy = call i32 @llvm.smin.i32(i32 %by, i32 %bz)
  %bleast = call i32 @llvm.smin.i32(i32 %bx, i32 %bzy)
  %bnone = icmp slt i32 %bleast, 1
  %bless = icmp slt i32 %bleast, 0
  %few = icmp ule i64 %exyz, 1024
  %bhint0 = select i1 %few, ptr $not_along_z, ptr $fewer
  %bhint1 = select i1 %bnone, ptr $no_threads, ptr %bhint0
  %bhint = select i1 %bless, ptr $negative, ptr %bhint1
  %e2 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr $launch_kind, ptr $block_text,
    i32 %bx, i32 %by, i32 %bz, i64 %exyz, ptr %bhint)
  ret i32 %e2
cluster_error:
  %czy = call i32 @llvm.smin.i32(i32 %cy, i32 %cz)
  %cleast = call i32 @llvm.smin.i32(i32 %cx, i32 %czy)
  %cnone = icmp slt i32 %cleast, 1
  %chint = select i1 %cnone, ptr $no_cluster, ptr $small_cluster
  %e3 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr $launch_kind, ptr $cluster_text,
    i32 %cx, i32 %cy, i32 %cz, ptr %chint)
  ret i32 %e3
division_error:
  %e4 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr $launch_kind, ptr $division_text,
    i32 %gx, i32 %gy, i32 %gz, i32 %cx, i32 %cy, i32 %cz)
  ret i32 %e4
smem_error:
  %e5 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr $launch_kind, ptr $smem_text, i32 %smem)
  ret i32 %e5
launch_error:
  %status = phi i32 [ %first, %check_context ], [ %entered, %enter ], [ %second, %again ]
  %e6 = call i32 (ptr, ptr, ptr, ...) @__tw_fail(ptr %table, ptr $launch_kind, ptr $refused_text, i32 %status,
    i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz, i32 %cx, i32 %cy, i32 %cz, i32 %smem)
  ret i32 %e6
}
