; float to half, to nearest, ties to even.
define internal i32 @half_bits(i32 %bits) {
  %magnitude = and i32 %bits, 2147483647
  %shifted = lshr i32 %bits, 16
  %sign = and i32 %shifted, 32768
  ; Normal: move the exponent's bias from 127 to 15, round off 13 bits.
  %rebiased = sub i32 %magnitude, 939524096
  %last = lshr i32 %rebiased, 13
  %odd = and i32 %last, 1
  %almost_half = add i32 %odd, 4095
  %raised = add i32 %rebiased, %almost_half
  %normal = lshr i32 %raised, 13
  ; Subnormal: adding 0.5, whose last place is that of a subnormal half, rounds.
  %float = bitcast i32 %magnitude to float
  %sum = fadd float %float, 0.5
  %sum_bits = bitcast float %sum to i32
  %subnormal = sub i32 %sum_bits, 1056964608
  %is_subnormal = icmp ult i32 %magnitude, 947912704
  %finite = select i1 %is_subnormal, i32 %subnormal, i32 %normal
  %is_large = icmp uge i32 %magnitude, 1199566848
  %bounded = select i1 %is_large, i32 31744, i32 %finite
  %is_nan = icmp ugt i32 %magnitude, 2139095040
  %result = select i1 %is_nan, i32 32256, i32 %bounded
  %signed = or i32 %result, %sign
  ret i32 %signed
}

; float to bfloat, to nearest, ties to even.
define internal i32 @bfloat_bits(i32 %bits) {
  %upper = lshr i32 %bits, 16
  %odd = and i32 %upper, 1
  %almost_half = add i32 %odd, 32767
  %raised = add i32 %bits, %almost_half
  %rounded = lshr i32 %raised, 16
  %quiet = or i32 %upper, 64
  %magnitude = and i32 %bits, 2147483647
  %is_nan = icmp ugt i32 %magnitude, 2139095040
  %result = select i1 %is_nan, i32 %quiet, i32 %rounded
  ret i32 %result
}

; The bits of a float that keeps a trace of what it lost, so that rounding it again is exact. Rounding twice to
; nearest is not: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding
; to odd", 2008.
define internal i32 @round_to_odd(double %value) {
  %near = fptrunc double %value to float
  %back = fpext float %near to double
  %value_bits = bitcast double %value to i64
  %back_bits = bitcast double %back to i64
  %size = and i64 %value_bits, 9223372036854775807
  %near_size = and i64 %back_bits, 9223372036854775807
  %is_number = fcmp ord double %value, %value
  %above = icmp ugt i64 %near_size, %size
  %step_back = and i1 %above, %is_number
  %step = zext i1 %step_back to i32
  %bits = bitcast float %near to i32
  %toward_zero = sub i32 %bits, %step
  %lost = fcmp one double %back, %value
  %trace = zext i1 %lost to i32
  %result = or i32 %toward_zero, %trace
  ret i32 %result
}

define i16 @__tw_half(double %value) {
  %odd = call i32 @round_to_odd(double %value)
  %bits = call i32 @half_bits(i32 %odd)
  %result = trunc i32 %bits to i16
  ret i16 %result
}

define i16 @__tw_bfloat(double %value) {
  %odd = call i32 @round_to_odd(double %value)
  %bits = call i32 @bfloat_bits(i32 %odd)
  %result = trunc i32 %bits to i16
  ret i16 %result
}

define float @__truncdfhf2(double %value) {
  %odd = call i32 @round_to_odd(double %value)
  %bits = call i32 @half_bits(i32 %odd)
  %result = bitcast i32 %bits to float
  ret float %result
}

define float @__truncdfbf2(double %value) {
  %odd = call i32 @round_to_odd(double %value)
  %bits = call i32 @bfloat_bits(i32 %odd)
  %result = bitcast i32 %bits to float
  ret float %result
}

define float @__truncsfhf2(float %value) {
  %value_bits = bitcast float %value to i32
  %bits = call i32 @half_bits(i32 %value_bits)
  %result = bitcast i32 %bits to float
  ret float %result
}

define float @__truncsfbf2(float %value) {
  %value_bits = bitcast float %value to i32
  %bits = call i32 @bfloat_bits(i32 %value_bits)
  %result = bitcast i32 %bits to float
  ret float %result
}

; half to float: exact. Subnormals are made normal by subtracting what the shift pretended.
define float @__extendhfsf2(float %value) {
  %raw = bitcast float %value to i32
  %sign_bit = and i32 %raw, 32768
  %sign = shl i32 %sign_bit, 16
  %magnitude = and i32 %raw, 32767
  %shifted = shl i32 %magnitude, 13
  %exponent = and i32 %shifted, 260046848
  %rebiased = add i32 %shifted, 939524096
  %special_bits = add i32 %shifted, 1879048192
  %is_special = icmp eq i32 %exponent, 260046848
  %normal = select i1 %is_special, i32 %special_bits, i32 %rebiased
  %pretended = add i32 %rebiased, 8388608
  %float = bitcast i32 %pretended to float
  %difference = fsub float %float, 0x3F10000000000000
  %subnormal = bitcast float %difference to i32
  %is_subnormal = icmp eq i32 %exponent, 0
  %chosen = select i1 %is_subnormal, i32 %subnormal, i32 %normal
  %bits = or i32 %chosen, %sign
  %result = bitcast i32 %bits to float
  ret float %result
}
