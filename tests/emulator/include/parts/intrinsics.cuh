// cuda_src/parts/intrinsics.cuh for the emulated machine: the same functions.
#ifndef GPUALGO_PARTS_INTRINSICS_CUH
#define GPUALGO_PARTS_INTRINSICS_CUH

#include "kernel_calls.h"
#include "parts/types.cuh"

// Inlined, so that a place in a report is the caller's.
#define STEP __attribute__((always_inline)) inline

namespace gpualgo::ptx {

// --- lanes of a warp ------------------------------------------------------------------------

STEP void syncwarp() { emu_warp_step(emu_sync, 0xffffffffu, 0, 0, 32); }
STEP uint32 activemask() { return emu_active_lanes(); }

STEP uint32 shfl_sync(uint32 lanes, uint32 value, int lane) {
  return emu_warp_step(emu_shuffle, lanes, value, uint32(lane), 32);
}
STEP uint32 shfl_up_sync(uint32 lanes, uint32 value, int delta) {
  return emu_warp_step(emu_shuffle_up, lanes, value, uint32(delta), 32);
}
STEP uint32 shfl_down_sync(uint32 lanes, uint32 value, int delta) {
  return emu_warp_step(emu_shuffle_down, lanes, value, uint32(delta), 32);
}
STEP uint32 shfl_xor_sync(uint32 lanes, uint32 value, int mask) {
  return emu_warp_step(emu_shuffle_xor, lanes, value, uint32(mask), 32);
}

STEP uint32 ballot_sync(uint32 lanes, bool is_true) {
  return emu_warp_step(emu_ballot, lanes, is_true, 0, 32);
}
STEP int any_sync(uint32 lanes, bool is_true) {
  return int(emu_warp_step(emu_any, lanes, is_true, 0, 32));
}
STEP int all_sync(uint32 lanes, bool is_true) {
  return int(emu_warp_step(emu_all, lanes, is_true, 0, 32));
}
STEP uint32 redux_sync_add(uint32 value) {
  for (int mask = 1; mask < 32; mask *= 2) value += shfl_xor_sync(0xffffffffu, value, mask);
  return value;
}
STEP uint32 redux_sync_max(uint32 value) {
  for (int mask = 1; mask < 32; mask *= 2) {
    const uint32 other = shfl_xor_sync(0xffffffffu, value, mask);
    if (value < other) value = other;
  }
  return value;
}
STEP uint32 match_any_sync(uint32 lanes, uint32 value) {
  return emu_warp_step(emu_match, lanes, value, 0, 32);
}

STEP uint32 opaque_ones() { return 0xffffffffu; }
template <uint32 bit>
STEP uint32 ballot_agreeing(uint32 x, uint32) {
  const uint32 lanes = ballot_sync(0xffffffffu, x & bit);
  return x & bit ? lanes : ~lanes;
}
STEP uint32 lanemask_le() { return 0xffffffffu >> (31 - threadIdx.x % 32); }

// --- arithmetic -----------------------------------------------------------------------------

STEP int popc(uint32 x) { return __builtin_popcount(x); }
STEP int ffs(uint32 x) { return __builtin_ffs(int32(x)); }
STEP int clz(uint32 x) { return x == 0 ? 32 : __builtin_clz(x); }

STEP uint32 umulhi(uint32 a, uint32 b) { return uint32(uint64(a) * b >> 32); }
STEP uint64 umulhi(uint64 a, uint64 b) { return uint64((unsigned __int128)a * b >> 64); }

template <class Word>
STEP Word sub_borrow(Word a, Word b, uint32& number) {
  number -= a < b;
  return a - b;
}

STEP float add_f32(float a, float b) {
  const float sum = a + b;
  return sum == sum ? sum : __builtin_bit_cast(float, 0x7fffffffu);
}

STEP float fma_rd(float a, float b, float c) { return emu_fma_down_float(a, b, c); }
STEP double fma_rd(double a, double b, double c) { return emu_fma_down_double(a, b, c); }

STEP int32 dp4a(int32 a, int32 b, int32 sum) {
  for (int i = 0; i < 32; i += 8) sum += int8(a >> i) * int8(b >> i);
  return sum;
}
STEP uint32 dp4a(uint32 a, uint32 b, uint32 sum) {
  for (int i = 0; i < 32; i += 8) sum += (a >> i & 255) * (b >> i & 255);
  return sum;
}

STEP uint32 funnelshift_l(uint32 low, uint32 high, uint32 count) {
  return uint32((uint64(high) << 32 | low) << (count & 31) >> 32);
}
STEP uint32 funnelshift_r(uint32 low, uint32 high, uint32 count) {
  return uint32((uint64(high) << 32 | low) >> (count & 31));
}
STEP uint32 byte_perm(uint32 low, uint32 high, uint32 selector) {
  const uint64 bytes = uint64(high) << 32 | low;
  uint32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32 choice = selector >> 4 * i & 15;
    uint32 byte = uint32(bytes >> 8 * (choice & 7)) & 255;
    if (choice & 8) byte = byte & 128 ? 255 : 0;  // its sign, eight times
    result |= byte << 8 * i;
  }
  return result;
}
STEP uint32 lop3_and(uint32 a, uint32 b, uint32 c) { return a & b & c; }
template <int count>
STEP uint32 opaque_shr(uint32 x) {
  return x >> count;
}
template <int count>
STEP int64 opaque_shr(int64 x) {
  return x >> count;
}
STEP uint32 computed_now(uint32 x) { return x; }

STEP float cvt_f32_f16(uint16 bits) {
  const uint32 sign = uint32(bits & 0x8000u) << 16, exponent = bits >> 10 & 31;
  const uint32 fraction = bits & 0x3ffu;
  if (exponent == 31) return __uint_as_float(fraction ? 0x7fffffffu : sign | 0x7f800000u);
  const float value = exponent == 0 ? ldexpf(float(fraction), -24)
                                    : ldexpf(float(fraction | 0x400u), int(exponent) - 25);
  return sign ? -value : value;
}

STEP uint16 cvt_rn_f16_f32(float x) {
  const uint32 bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u;
  if (x != x) return 0x7fff;  // as the instruction does
  const float size = __uint_as_float(bits & 0x7fffffffu);
  if (size >= 65520.0f) return uint16(sign | 0x7c00u);
  // Adding moves the bits that stay to the end of the fraction, and rounds as it does.
  if (size < 6.103515625e-05f) return uint16(sign | (__float_as_uint(size + 0.5f) & 0x7ffu));
  const uint32 rounded = (bits & 0x7fffffffu) + 0xfffu + (bits >> 13 & 1);
  return uint16(sign | ((rounded >> 13) - (112u << 10)));
}

}  // namespace gpualgo::ptx

#undef STEP

#endif
