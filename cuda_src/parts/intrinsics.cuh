// The other half of parts/ptx.cuh: what the lanes of a warp tell each other, and arithmetic.
#ifndef GPUALGO_PARTS_INTRINSICS_CUH
#define GPUALGO_PARTS_INTRINSICS_CUH

#include "parts/types.cuh"

namespace gpualgo::ptx {

// --- lanes of a warp ------------------------------------------------------------------------

// `lanes` are those that take part, as bits: each of them calls the function, and no other does.
// Only syncwarp orders memory.
__device__ inline void syncwarp() { __syncwarp(); }
__device__ inline uint32 activemask() { return __activemask(); }

__device__ inline uint32 shfl_sync(uint32 lanes, uint32 value, int lane) {
  return __shfl_sync(lanes, value, lane);
}
__device__ inline uint32 shfl_up_sync(uint32 lanes, uint32 value, int delta) {
  return __shfl_up_sync(lanes, value, delta);
}
__device__ inline uint32 shfl_down_sync(uint32 lanes, uint32 value, int delta) {
  return __shfl_down_sync(lanes, value, delta);
}
__device__ inline uint32 shfl_xor_sync(uint32 lanes, uint32 value, int mask) {
  return __shfl_xor_sync(lanes, value, mask);
}

__device__ inline uint32 ballot_sync(uint32 lanes, bool is_true) {
  return __ballot_sync(lanes, is_true);
}
__device__ inline int any_sync(uint32 lanes, bool is_true) { return __any_sync(lanes, is_true); }
__device__ inline int all_sync(uint32 lanes, bool is_true) { return __all_sync(lanes, is_true); }
// The lanes with this one's value.
__device__ inline uint32 match_any_sync(uint32 lanes, uint32 value) {
  return __match_any_sync(lanes, value);
}

// Of all lanes of a warp, from sm_80 on.
__device__ inline uint32 redux_sync_add(uint32 value) {
  uint32 sum;
  asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(value));
  return sum;
}
__device__ inline uint32 redux_sync_max(uint32 value) {
  uint32 most;
  asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(most) : "r"(value));
  return most;
}

// All bits, which the compiler does not know.
__device__ inline uint32 opaque_ones() {
  uint32 up_to_this, behind;
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(up_to_this));
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(behind));
  return up_to_this | behind;
}
// The lanes of a whole warp that agree with this one in a bit of x. Left to itself, the compiler
// spends twice as many instructions. ~lanes is lanes * ones + ones: votes and logic share a pipe
// of half rate, which bounds a ranking; multiplications have another one.
template <uint32 bit>
__device__ inline uint32 ballot_agreeing(uint32 x, uint32 ones) {
  uint32 lanes;
  asm volatile(
      "{\n"
      ".reg .pred is_set;\n"
      ".reg .b32 masked;\n"
      "and.b32 masked, %1, %2;\n"
      "setp.ne.u32 is_set, masked, 0;\n"
      "vote.sync.ballot.b32 %0, is_set, 0xffffffff;\n"
      "@!is_set mad.lo.u32 %0, %0, %3, %3;\n"
      "}"
      : "=&r"(lanes)
      : "r"(x), "n"(bit), "r"(ones));
  return lanes;
}

// This lane and the ones before it.
__device__ inline uint32 lanemask_le() {
  uint32 lanes;
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(lanes));
  return lanes;
}

// --- arithmetic -----------------------------------------------------------------------------

__device__ inline int popc(uint32 x) { return __popc(x); }
__device__ inline int ffs(uint32 x) { return __ffs(int32(x)); }  // from 1 on; 0: no bit is set
__device__ inline int clz(uint32 x) { return __clz(int32(x)); }

// The upper half of a product.
__device__ inline uint32 umulhi(uint32 a, uint32 b) { return __umulhi(a, b); }
__device__ inline uint64 umulhi(uint64 a, uint64 b) { return __umul64hi(a, b); }

// a - b, which wraps around; subtracts 1 from `number` if a < b: the borrow, without a comparison.
__device__ inline uint32 sub_borrow(uint32 a, uint32 b, uint32& number) {
  uint32 difference;
  asm("sub.cc.u32 %0, %2, %3;\n\tsubc.u32 %1, %1, 0;"
      : "=&r"(difference), "+r"(number)
      : "r"(a), "r"(b));
  return difference;
}
__device__ inline uint64 sub_borrow(uint64 a, uint64 b, uint32& number) {
  number -= a < b;
  return a - b;
}

// The sum; a NaN is the canonical one, 0x7fffffff.
__device__ inline float add_f32(float a, float b) { return a + b; }

// Rounded towards minus infinity once, at the end.
__device__ inline float fma_rd(float a, float b, float c) { return __fmaf_rd(a, b, c); }
__device__ inline double fma_rd(double a, double b, double c) { return __fma_rd(a, b, c); }

// Adds the products of four bytes each to `sum`.
__device__ inline int32 dp4a(int32 a, int32 b, int32 sum) { return __dp4a(a, b, sum); }
__device__ inline uint32 dp4a(uint32 a, uint32 b, uint32 sum) { return __dp4a(a, b, sum); }

// Shifts the 64 bits high:low by count % 32: the upper or the lower half of what results.
__device__ inline uint32 funnelshift_l(uint32 low, uint32 high, uint32 count) {
  return __funnelshift_l(low, high, count);
}
__device__ inline uint32 funnelshift_r(uint32 low, uint32 high, uint32 count) {
  return __funnelshift_r(low, high, count);
}
// Four of the eight bytes of high:low, each chosen by four bits of the selector.
__device__ inline uint32 byte_perm(uint32 low, uint32 high, uint32 selector) {
  return __byte_perm(low, high, selector);
}

// a & b & c in one instruction, which the compiler does not take apart.
__device__ inline uint32 lop3_and(uint32 a, uint32 b, uint32 c) {
  uint32 result;
  asm("lop3.b32 %0, %1, %2, %3, 0x80;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
// x >> count, which the compiler does not see through.
template <int count>
__device__ inline uint32 opaque_shr(uint32 x) {
  uint32 result;
  asm("shr.u32 %0, %1, %2;" : "=r"(result) : "r"(x), "n"(count));
  return result;
}
template <int count>
__device__ inline int64 opaque_shr(int64 x) {
  int64 result;
  asm("shr.s64 %0, %1, %2;" : "=l"(result) : "l"(x), "n"(count));
  return result;
}

// A number that the compiler computes where this stands, not where it is wanted.
__device__ inline uint32 computed_now(uint32 x) {
  asm volatile("" : "+r"(x));
  return x;
}

// Between float and the bits of a float16, rounded to nearest even.
__device__ inline float cvt_f32_f16(uint16 bits) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
  return result;
}
__device__ inline uint16 cvt_rn_f16_f32(float x) {
  uint16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

}  // namespace gpualgo::ptx

#endif
