"""Parameters of CuTe DSL's functions as its API reference names them (docs.nvidia.com/cutlass, CuTe DSL API).

One line for each function: its name and its parameters in order; `loc` and `ip` go without saying.
"""

FUNCTIONS = """
cute.is_static x
cute.has_underscore a
cute.pretty_str arg
cute.front input
cute.is_major mode stride
cute.assume src divby
cute.make_swizzle b m s
cute.depth a
cute.rank a mode
cute.size a mode
cute.cosize a mode
cute.get input mode
cute.select input mode
cute.is_congruent a b
cute.is_weakly_congruent a b
cute.group_modes input begin end
cute.slice_ src coord
cute.dice src dicer
cute.prepend input elem up_to_rank
cute.append input elem up_to_rank
cute.prepend_ones t up_to_rank
cute.append_ones t up_to_rank
cute.repeat_as_tuple x n
cute.repeat x n
cute.repeat_like x target
cute.flatten a
cute.filter_zeros input target_profile
cute.filter input
cute.shape_div lhs rhs
cute.ceil_div input tiler
cute.round_up a b
cute.make_layout shape stride
cute.make_identity_layout shape
cute.make_ordered_layout shape order
cute.make_layout_like input
cute.make_composed_layout inner offset outer
cute.size_in_bytes dtype layout
cute.coalesce input target_profile
cute.crd2idx coord layout
cute.idx2crd idx shape
cute.increment_coord coord shape
cute.recast_layout new_type_bits old_type_bits src_layout
cute.slice_and_offset coord src
cute.recast_ptr ptr swizzle_ dtype
cute.make_ptr dtype value mem_space assumed_align
cute.composition lhs rhs
cute.complement input cotarget
cute.right_inverse input
cute.left_inverse input
cute.logical_product block tiler
cute.zipped_product block tiler
cute.tiled_product block tiler
cute.flat_product block tiler
cute.raked_product block tiler
cute.blocked_product block tiler
cute.logical_divide target tiler
cute.zipped_divide target tiler
cute.tiled_divide target tiler
cute.flat_divide target tiler
cute.max_common_layout a b
cute.max_common_vector a b
cute.tile_to_shape atom trg_shape order
cute.local_partition target tiler index proj
cute.local_tile input tiler coord proj
cute.make_layout_image_mask lay coord mode
cute.leading_dim shape stride
cute.make_layout_tv thr_layout val_layout
cute.get_nonswizzle_portion layout
cute.get_swizzle_portion layout
cute.nullspace layout
cute.get_divisibility x
cute.print_tensor tensor verbose
cute.make_tensor iterator layout
cute.make_identity_tensor shape
cute.make_fragment_like src dtype
cute.make_rmem_tensor layout_or_shape dtype
cute.make_rmem_tensor_like src dtype
cute.recast_tensor src dtype swizzle_
cute.find t x hierarchical
cute.find_if t pred_fn hierarchical
cute.transform_leaf f
cute.basis_value e
cute.basis_get basis t
cute.flatten_to_tuple a
cute.unflatten sequence profile
cute.product a
cute.product_like a target_profile
cute.product_each a
cute.elem_less lhs rhs
cute.transform_apply f g
cute.filter_tuple f
cute.unwrap x
cute.wrap x
cute.domain_offset coord tensor
cute.make_mma_atom op
cute.make_tiled_mma op_or_atom atom_layout_mnk permutation_mnk
cute.make_copy_atom op copy_internal_type
cute.make_tiled_copy_tv atom thr_layout val_layout
cute.make_tiled_copy atom layout_tv tiler_mn
cute.make_tiled_copy_S atom tiled_copy
cute.make_tiled_copy_D atom tiled_copy
cute.make_tiled_copy_A atom tiled_mma
cute.make_tiled_copy_B atom tiled_mma
cute.make_tiled_copy_C atom tiled_mma
cute.make_tiled_copy_C_atom atom mma
cute.make_cotiled_copy atom atom_layout_tv data_layout
cute.copy_atom_call atom src dst pred
cute.mma_atom_call atom d a b c
cute.basic_copy src dst
cute.basic_copy_if pred src dst
cute.autovec_copy src dst
cute.copy atom src dst pred
cute.prefetch atom src
cute.gemm atom d a b c
cute.full shape fill_value dtype
cute.full_like a fill_value dtype
cute.empty_like a dtype
cute.ones_like a dtype
cute.zeros_like a dtype
cute.where cond x y
cute.any_ x
cute.all_ x
cute.FastDivmodDivisor divisor is_power_of_2
cute.FastDivmodDivisorV2 divisor is_power_of_2
cute.fast_divmod_create_divisor divisor
cute.fast_divmod_create_divisor_v2 divisor
cute.TensorSSA value shape dtype
cute.TensorSSA.broadcast_to target_shape
cute.TensorSSA.reshape shape
cute.TensorSSA.to dtype
cute.TensorSSA.bitcast dtype
cute.TensorSSA.reduce op init_val reduction_profile
cute.TiledCopy.get_slice thr_idx
cute.TiledCopy.retile src
cute.ThrCopy.partition_S src
cute.ThrCopy.partition_D dst
cute.TiledMma.get_slice thr_idx
cute.TiledMma.get_tile_size mode_idx
cute.TiledMma.make_fragment_A input
cute.TiledMma.make_fragment_B input
cute.TiledMma.make_fragment_C input
cute.TiledMma.partition_shape_A shape_mk
cute.TiledMma.partition_shape_B shape_nk
cute.TiledMma.partition_shape_C shape_mn
cute.ThrMma.partition_A input_mk
cute.ThrMma.partition_B input_nk
cute.ThrMma.partition_C input_mn
cute.arch.make_warp_uniform value
cute.arch.mbarrier_init mbar_ptr cnt
cute.arch.mbarrier_arrive_and_expect_tx mbar_ptr bytes peer_cta_rank_in_cluster
cute.arch.mbarrier_expect_tx mbar_ptr bytes peer_cta_rank_in_cluster
cute.arch.mbarrier_wait mbar_ptr phase
cute.arch.mbarrier_try_wait mbar_ptr phase
cute.arch.mbarrier_conditional_try_wait cond mbar_ptr phase
cute.arch.mbarrier_arrive mbar_ptr peer_cta_rank_in_cluster arrive_count
cute.arch.barrier barrier_id number_of_threads
cute.arch.barrier_arrive barrier_id number_of_threads aligned
cute.arch.sync_warp mask
cute.arch.cp_async_wait_group n
cute.arch.cluster_arrive aligned
cute.arch.cluster_arrive_relaxed aligned
cute.arch.vote_ballot_sync pred mask
cute.arch.vote_any_sync pred mask
cute.arch.vote_all_sync pred mask
cute.arch.vote_uni_sync pred mask
cute.arch.warp_redux_sync value kind mask_and_clamp abs nan
cute.arch.atomic_fmax ptr val sign_bit sem scope
cute.arch.atomic_fmin ptr val sign_bit sem scope
cute.arch.atomic_add ptr val sem scope
cute.arch.atomic_and ptr val sem scope
cute.arch.atomic_or ptr val sem scope
cute.arch.atomic_xor ptr val sem scope
cute.arch.atomic_max ptr val sem scope
cute.arch.atomic_min ptr val sem scope
cute.arch.atomic_exch ptr val sem scope
cute.arch.atomic_cas ptr cmp val sem scope
cute.arch.store ptr val
cute.arch.load ptr dtype
cute.arch.red ptr val op dtype sem scope
cute.arch.popc value
cute.arch.fence_proxy kind space use_intrinsic
cute.arch.fmax a b abs nan ftz
cute.arch.fmin a b abs nan ftz
cute.arch.rcp_approx a
cute.arch.exp2 a
cute.arch.match_sync mask value kind
cute.arch.clz value
cute.arch.bfind value
cute.arch.brev value
cute.arch.bfe value start length
cute.arch.bfi replacement value start length
cute.arch.mul_hi a b
cute.arch.mul_wide a b
cute.arch.mul24 a b hi
cute.arch.mad24 a b c hi
cute.arch.add_sat_int a b
cute.arch.sub_sat_int a b
cute.arch.lop3 a b c lut
cute.arch.shf a b shift kind
cute.arch.alloc_smem element_type size_in_elems alignment
cute.arch.get_dyn_smem element_type alignment
cute.arch.prmt src src_reg_shifted prmt_indices
cute.math.sin x fastmath approx ftz
cute.math.cos x fastmath approx ftz
cute.math.exp2 x fastmath approx ftz
cute.math.log2 x fastmath approx ftz
cute.math.tanh x fastmath approx
cute.math.rsqrt x fastmath approx ftz
cute.math.sqrt x fastmath approx ftz
cute.math.exp x fastmath
cute.math.log x fastmath
cute.math.log10 x fastmath
cute.math.tan x fastmath
cute.math.acos x fastmath
cute.math.asin x fastmath
cute.math.atan x fastmath
cute.math.atan2 y x fastmath
cute.math.sinh x fastmath
cute.math.cosh x fastmath
cute.math.acosh x fastmath
cute.math.asinh x fastmath
cute.math.atanh x fastmath
cute.math.erf x fastmath
cute.math.erfc x fastmath
cute.math.pow base exponent fastmath
cute.math.cbrt x fastmath
cute.math.sincos x fastmath
cute.math.abs x fastmath
cute.math.absi x
cute.math.absf x fastmath
cute.math.copysign mag sign fastmath
cute.math.ceil x fastmath
cute.math.floor x fastmath
cute.math.round x fastmath
cute.math.roundeven x fastmath
cute.math.trunc x fastmath
cute.math.clamp x lo hi fastmath propagate_nan ftz
cute.math.min x y propagate_nan ftz
cute.math.max x y propagate_nan ftz
cute.math.isnan x fastmath
cute.math.isinf x fastmath
cute.math.isfinite x fastmath
cute.math.fma a b c fastmath
cute.math.rcp x fastmath approx ftz
cute.runtime.make_fake_compact_tensor dtype shape stride_order memspace assumed_align use_32bit_stride
cute.runtime.make_fake_tensor dtype shape stride memspace assumed_align
cute.runtime.from_dlpack tensor assumed_align use_32bit_stride enable_tvm_ffi
cute.nvgpu.warp.MmaF16BF16Op ab_dtype acc_dtype shape_mnk
cute.nvgpu.warp.MmaTF32Op shape_mnk
cute.nvgpu.warp.MmaFP8Op ab_dtype acc_dtype shape_mnk
cute.nvgpu.warp.LdMatrix8x8x16bOp transpose num_matrices
cute.nvgpu.warp.StMatrix8x8x16bOp transpose num_matrices
cutlass.utils.get_smem_capacity_in_bytes compute_capability
cutlass.utils.SmemAllocator.capacity_in_bytes compute_capability
cutlass.utils.SmemAllocator.allocate size_or_type byte_alignment
cutlass.utils.SmemAllocator.allocate_array element_type num_elems byte_alignment
cutlass.utils.SmemAllocator.allocate_tensor element_type layout byte_alignment swizzle
cutlass.pipeline.CooperativeGroup agent size alignment
cutlass.pipeline.MbarrierArray barrier_storage num_stages agent tx_count
cutlass.pipeline.MbarrierArray.arrive index dst cta_group
cutlass.pipeline.MbarrierArray.arrive_mbarrier index dst_rank
cutlass.pipeline.MbarrierArray.arrive_cp_async_mbarrier index
cutlass.pipeline.MbarrierArray.arrive_and_expect_tx index tx_count
cutlass.pipeline.MbarrierArray.try_wait index phase
cutlass.pipeline.MbarrierArray.wait index phase
cutlass.pipeline.MbarrierArray.get_barrier index
cutlass.pipeline.NamedBarrier barrier_id num_threads
cutlass.pipeline.PipelineOrder.create barrier_storage depth length group_id producer_group defer_sync
cutlass.pipeline.PipelineState stages count index phase
cutlass.pipeline.PipelineAsync.create num_stages producer_group consumer_group barrier_storage producer_mask consumer_mask defer_sync
cutlass.pipeline.PipelineAsync.producer_acquire state try_acquire_token
cutlass.pipeline.PipelineAsync.producer_try_acquire state
cutlass.pipeline.PipelineAsync.producer_commit state
cutlass.pipeline.PipelineAsync.consumer_wait state try_wait_token
cutlass.pipeline.PipelineAsync.consumer_try_wait state
cutlass.pipeline.PipelineAsync.consumer_release state
cutlass.pipeline.PipelineAsync.producer_get_barrier state
cutlass.pipeline.PipelineAsync.producer_tail state
cutlass.pipeline.PipelineCpAsync.create barrier_storage num_stages producer_group consumer_group producer_mask consumer_mask defer_sync
cutlass.pipeline.agent_sync group is_relaxed
cutlass.pipeline.arrive barrier_id num_threads
cutlass.pipeline.arrive_unaligned barrier_id num_threads
cutlass.pipeline.arrive_and_wait barrier_id num_threads
cutlass.pipeline.wait barrier_id num_threads
cutlass.pipeline.wait_unaligned barrier_id num_threads
cutlass.pipeline.sync barrier_id
cutlass.pipeline.make_pipeline_state type stages
"""  # noqa: E501


def documented() -> list[tuple[str, list[str]]]:
    """Name and parameters of each function."""
    return [(name, parameters) for name, *parameters in map(str.split, FUNCTIONS.strip().splitlines())]
